package clientconfig

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	real := filepath.Join(dir, "dotfiles", "mcp.json")
	link := filepath.Join(dir, "mcp.json")
	if err := os.Mkdir(filepath.Dir(real), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(real, []byte("was"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	backup, err := Write(link, []byte("was"), []byte("is"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{real: "is", link: "is", backup: "was"} {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{real, backup} {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o640 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link was replaced by a file")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "dotfiles", "*")); len(left) != 2 {
		t.Error("left behind:", left)
	}
}

func TestWriteRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(path, []byte("was"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(path, []byte("was before"), []byte("is")); err == nil || !strings.Contains(err.Error(), "changed in the meantime") {
		t.Error(err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(path, []byte("was"), []byte("is")); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "was" {
		t.Errorf("%q", got)
	}
	if _, err := Read(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

// TestFiles holds the places to what the clients' documentation says.
func TestFiles(t *testing.T) {
	env := map[string]string{}
	for _, test := range []struct {
		client, os string
		want       []string
	}{
		{"claude-desktop", "linux", []string{"/h/.config/Claude/claude_desktop_config.json"}},
		{"claude-desktop", "darwin", []string{"/h/Library/Application Support/Claude/claude_desktop_config.json"}},
		{"claude-desktop", "windows", []string{"/h/AppData/Roaming/Claude/claude_desktop_config.json"}},
		{"claude-code", "linux", []string{"/src/.mcp.json", "/h/.claude.json"}},
		{"claude-code", "darwin", []string{"/src/.mcp.json", "/h/.claude.json"}},
		{"claude-code", "windows", []string{"/src/.mcp.json", "/h/.claude.json"}},
		{"vscode", "linux", []string{"/src/.vscode/mcp.json", "/h/.config/Code/User/mcp.json", "/h/.config/Code - Insiders/User/mcp.json"}},
		{"vscode", "darwin", []string{"/src/.vscode/mcp.json", "/h/Library/Application Support/Code/User/mcp.json", "/h/Library/Application Support/Code - Insiders/User/mcp.json"}},
		{"vscode", "windows", []string{"/src/.vscode/mcp.json", "/h/AppData/Roaming/Code/User/mcp.json", "/h/AppData/Roaming/Code - Insiders/User/mcp.json"}},
		{"cursor", "linux", []string{"/src/.cursor/mcp.json", "/h/.cursor/mcp.json"}},
		{"cursor", "darwin", []string{"/src/.cursor/mcp.json", "/h/.cursor/mcp.json"}},
		{"cursor", "windows", []string{"/src/.cursor/mcp.json", "/h/.cursor/mcp.json"}},
		{"windsurf", "linux", []string{"/h/.codeium/windsurf/mcp_config.json"}},
		{"windsurf", "darwin", []string{"/h/.codeium/windsurf/mcp_config.json"}},
		{"windsurf", "windows", []string{"/h/.codeium/windsurf/mcp_config.json"}},
		{"codex", "linux", []string{"/src/.codex/config.toml", "/h/.codex/config.toml"}},
		{"codex", "darwin", []string{"/src/.codex/config.toml", "/h/.codex/config.toml"}},
		{"codex", "windows", []string{"/src/.codex/config.toml", "/h/.codex/config.toml"}},
		{"gemini", "linux", []string{"/src/.gemini/settings.json", "/h/.gemini/settings.json"}},
		{"gemini", "darwin", []string{"/src/.gemini/settings.json", "/h/.gemini/settings.json"}},
		{"gemini", "windows", []string{"/src/.gemini/settings.json", "/h/.gemini/settings.json"}},
	} {
		client, ok := ClientByName(test.client)
		if !ok {
			t.Fatal(test.client)
		}
		s := System{OS: test.os, Home: "/h", Dir: "/src", Getenv: func(name string) string { return env[name] }}
		var got []string
		for _, f := range client.Files(s) {
			got = append(got, filepath.ToSlash(f.Path))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s on %s: %q", test.client, test.os, got)
		}
	}
	env["CODEX_HOME"], env["XDG_CONFIG_HOME"], env["CLAUDE_CONFIG_DIR"] = "/x", "/c", "/d"
	s := System{OS: "linux", Home: "/h", Dir: "/h", Getenv: func(name string) string { return env[name] }}
	for name, want := range map[string]string{
		"codex": "/x/config.toml", "vscode": "/c/Code/User/mcp.json", "claude-code": "/d/.claude.json",
	} {
		client, _ := ClientByName(name)
		if files := client.Files(s); filepath.ToSlash(files[1].Path) != want {
			t.Errorf("%s: %v", name, files)
		}
	}
	if client, _ := ClientByName("cursor"); len(client.Files(s)) != 1 {
		t.Error("one file is named twice where the project is the home")
	}
}
