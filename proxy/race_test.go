//go:build race

package proxy

func init() { raceDetector = true }
