package rewrite

import (
	"iter"
	"math/bits"
	"slices"
)

// A rule is one thing that may be done to the schema of a property, or of a
// property's items.
type rule struct {
	bit   Rules
	where place
	apply func(f *field) outcome
}

// A place says which schemas a rule is for.
type place uint8

const (
	inProperty place = 1 << iota
	inItems
)

// An outcome is what a rule did, or why the property cannot be expressed
// (then it passes unchanged). Both empty: the rule has nothing to do here.
type outcome struct{ did, cannot string }

// unfolding are the rules that bring a property's real schema to light. They
// are applied in turns until none has anything left to do.
var unfolding = []rule{
	{RuleLocalRef, inProperty | inItems, inlineRef},
	{RuleNullable, inProperty, dropNull},
}

// reshaping are the rules that follow, in the order in which they are applied.
// The items of an array go through all of theirs before RuleFormats.
var reshaping = []rule{
	{RuleConst, inProperty | inItems, constToEnum},
	{RuleAnyOf, inProperty, anyOfToOneOf},
	{RuleItemOneOf, inItems, itemOneOfToAnyOf},
	{RuleEnumBesideOneOf, inProperty | inItems, dropEnumBesideOneOf},
	{RuleTypedEnums, inProperty | inItems, typedToStrings},
	{RuleOptions, inProperty | inItems, tidyOptions},
	{RuleEnumNames, inProperty, enumNamesToOneOf},
	{RuleItemEnumNames, inItems, enumNamesToAnyOf},
	{RuleMissingType, inProperty | inItems, addType},
}

// finishing are the rules that need to know what became of the rest.
var finishing = []rule{
	{RuleFormats, inProperty, dropFormat},
	{RuleDefaults, inProperty, mendDefault},
}

// ruleNames are the names of the rules by the place of their bit.
var ruleNames = [...]string{
	"enum-names", "item-enum-names", "missing-type", "any-of", "item-one-of", "nullable", "local-ref",
	"const", "typed-enums", "formats", "defaults", "enum-beside-one-of", "options",
}

// name is the name of a single rule.
func (on Rules) name() string { return ruleNames[bits.TrailingZeros32(uint32(on))] }

// Names yields the names of the rules in a set, as they stand in the policy
// and in [Change.Rule].
func (on Rules) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i, name := range ruleNames {
			if on&(1<<i) != 0 && !yield(name) {
				return
			}
		}
	}
}

// RuleByName returns the rule of a name, such as "enum-names".
func RuleByName(name string) (rule Rules, ok bool) {
	i := slices.Index(ruleNames[:], name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}
