//go:build !unix

package icon

func limitCPU(uint32) {} // the parent's clock holds
