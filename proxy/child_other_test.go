//go:build unix && !linux

package proxy

func helperMainOS(string, []string) int { return 99 }
