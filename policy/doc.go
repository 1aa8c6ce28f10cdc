// Package policy decides; it does no I/O. It holds the policy file, the icon
// rules and the check of answers.
package policy
