package clientconfig

import (
	"path/filepath"
	"slices"
	"strings"
)

// Syntax is the language of a configuration file.
type Syntax uint8

// The two languages. JSON may have comments and trailing commas.
const (
	JSON Syntax = iota
	TOML
)

// A Format says what a file is written in, and where its servers are.
type Format struct {
	Syntax Syntax
	Tables [][]string // paths of tables of servers; "*" is any key
}

// A Client is a program that keeps a list of MCP servers in a file.
type Client struct {
	Name   string // as on the command line
	Title  string
	user   func(System) []File
	folder []File // in a project's folder
}

// A File is one configuration file of a client.
type File struct {
	Path    string
	Format  Format
	Project bool // it belongs to a project, and is often shared with others
}

// System is the part of the surroundings that decides where files are.
type System struct {
	OS     string // as runtime.GOOS
	Home   string
	Dir    string // the project's folder
	Getenv func(string) string
}

var (
	mcpServers = Format{JSON, [][]string{{"mcpServers"}}}
	vsServers  = Format{JSON, [][]string{{"servers"}}}
	// Claude Code keeps the servers of single projects in the user's file, too.
	claudeCode = Format{JSON, [][]string{{"mcpServers"}, {"projects", "*", "mcpServers"}}}
	codex      = Format{TOML, [][]string{{"mcp_servers"}}}
	anyJSON    = Format{JSON, [][]string{{"mcpServers"}, {"servers"}, {"mcp", "servers"}, {"projects", "*", "mcpServers"}}}
)

// Clients are the clients whose files we know, after their documentation.
var Clients = []Client{
	{
		Name: "claude-desktop", Title: "Claude Desktop",
		user: func(s System) []File {
			return []File{{Path: filepath.Join(s.applications(), "Claude", "claude_desktop_config.json"), Format: mcpServers}}
		},
	},
	{
		Name: "claude-code", Title: "Claude Code",
		user: func(s System) []File {
			return []File{{Path: filepath.Join(s.folder("CLAUDE_CONFIG_DIR", ""), ".claude.json"), Format: claudeCode}}
		},
		folder: []File{{Path: ".mcp.json", Format: mcpServers}},
	},
	{
		Name: "vscode", Title: "VS Code",
		user: func(s System) []File {
			return []File{
				{Path: filepath.Join(s.applications(), "Code", "User", "mcp.json"), Format: vsServers},
				{Path: filepath.Join(s.applications(), "Code - Insiders", "User", "mcp.json"), Format: vsServers},
			}
		},
		folder: []File{{Path: filepath.Join(".vscode", "mcp.json"), Format: vsServers}},
	},
	{
		Name: "cursor", Title: "Cursor",
		user: func(s System) []File {
			return []File{{Path: filepath.Join(s.Home, ".cursor", "mcp.json"), Format: mcpServers}}
		},
		folder: []File{{Path: filepath.Join(".cursor", "mcp.json"), Format: mcpServers}},
	},
	{
		Name: "windsurf", Title: "Windsurf",
		user: func(s System) []File {
			return []File{{Path: filepath.Join(s.Home, ".codeium", "windsurf", "mcp_config.json"), Format: mcpServers}}
		},
	},
	{
		Name: "codex", Title: "Codex",
		user: func(s System) []File {
			return []File{{Path: filepath.Join(s.folder("CODEX_HOME", ".codex"), "config.toml"), Format: codex}}
		},
		folder: []File{{Path: filepath.Join(".codex", "config.toml"), Format: codex}},
	},
	{
		Name: "gemini", Title: "Gemini CLI",
		user: func(s System) []File {
			return []File{{Path: filepath.Join(s.Home, ".gemini", "settings.json"), Format: mcpServers}}
		},
		folder: []File{{Path: filepath.Join(".gemini", "settings.json"), Format: mcpServers}},
	},
}

// ClientByName returns the client of that name.
func ClientByName(name string) (Client, bool) {
	i := slices.IndexFunc(Clients, func(c Client) bool { return c.Name == name })
	if i < 0 {
		return Client{}, false
	}
	return Clients[i], true
}

// Files lists where the client's files are: the project's first, whether or
// not they exist.
func (c Client) Files(s System) []File {
	var files []File
	for _, f := range c.folder {
		files = append(files, File{filepath.Join(s.Dir, f.Path), f.Format, true})
	}
	for _, f := range c.user(s) {
		if !slices.Contains(paths(files), f.Path) { // the home folder is a project, too
			files = append(files, f)
		}
	}
	return files
}

func paths(files []File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

// FileAt returns a file by its path: one of a client's if it is that, and any
// other as what its name says.
func FileAt(path string, s System) File {
	for _, c := range Clients {
		for _, f := range c.Files(s) {
			if f.Path == path {
				return f
			}
		}
	}
	if strings.EqualFold(filepath.Ext(path), ".toml") {
		return File{Path: path, Format: codex}
	}
	return File{Path: path, Format: anyJSON}
}

// applications is where desktop applications keep their settings.
func (s System) applications() string {
	switch s.OS {
	case "windows":
		return s.folder("APPDATA", "AppData", "Roaming")
	case "darwin":
		return filepath.Join(s.Home, "Library", "Application Support")
	}
	return s.folder("XDG_CONFIG_HOME", ".config")
}

// folder is what an environment variable names, or else a folder in Home.
func (s System) folder(variable string, inHome ...string) string {
	if dir := s.Getenv(variable); dir != "" {
		return dir
	}
	return filepath.Join(append([]string{s.Home}, inHome...)...)
}
