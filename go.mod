module github.com/mcp-refit/mcp-refit

go 1.26
