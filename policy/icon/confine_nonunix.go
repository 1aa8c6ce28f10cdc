//go:build !unix

package icon

func catchCPU() {}

func limitCPU(uint32) {} // the parent's clock holds
