package main

import (
	"github.com/mcp-refit/mcp-refit/policy"
	"github.com/mcp-refit/mcp-refit/policy/icon"
)

// newFetcher makes the icon fetcher that the policy asks for. It starts
// nothing before the first icon.
func newFetcher(c *policy.Config) *icon.Fetcher {
	i := &c.Icons
	return &icon.Fetcher{
		Worker:       self(argIconWorker),
		AllowPrivate: i.Private,
		AllowHTTP:    i.AllowHTTP,
		Edge:         int(i.Edge),
		MaxIcon:      int(i.Budget.PerIcon),
		MaxBytes:     int(i.Fetch.MaxSize),
		TotalTimeout: i.Fetch.Timeout.Std(),

		Workers:       int(i.Worker.Processes),
		WorkerMemory:  int64(i.Worker.Memory),
		WorkerTimeout: i.Worker.Timeout.Std(),

		CacheSize: int(i.Cache.MaxSize),
		MinTTL:    i.Cache.MinTTL.Std(),
		MaxTTL:    i.Cache.MaxTTL.Std(),
	}
}
