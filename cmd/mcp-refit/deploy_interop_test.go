//go:build unix

package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubernetesVersion is the API that the manifests are held to.
const kubernetesVersion = "1.37"

// validManifest puts a manifest through kubernetes-validate, which has the
// API's schemas with it, and reports what it says if it is not content.
func validManifest(t *testing.T, validator string, manifest []byte) (fault string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	write(t, file, string(manifest))
	cmd := exec.CommandContext(t.Context(), validator, "--strict", "-k", kubernetesVersion, file)
	out, err := cmd.CombinedOutput()
	// A kind without a schema is a warning to it, and a fault to us.
	if objects := bytes.Count(manifest, []byte("\nkind: ")); err != nil || bytes.Count(out, []byte(" passed for resource ")) != objects {
		return string(out)
	}
	return ""
}

func TestManifestsValidInterop(t *testing.T) {
	validator := filepath.Join(interop(t, ".venv/bin/kubernetes-validate"), ".venv/bin/kubernetes-validate")
	err := filepath.WalkDir(filepath.Join(deployDir, "kubernetes"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "kustomization.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if fault := validManifest(t, validator, data); err == nil && fault != "" {
			t.Errorf("%s: %s", path, fault)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	patched, err := sidecar{image: "i:1", path: "/mcp", configMap: "cm"}.patch([]byte(deploymentText + "---\n" + serviceText))
	if err != nil {
		t.Fatal(err)
	}
	if fault := validManifest(t, validator, patched); fault != "" {
		t.Errorf("manifest sidecar: %s\n%s", fault, patched)
	}
	misspelt := bytes.Replace(patched, []byte("restartPolicy:"), []byte("restartPolice:"), 1)
	if fault := validManifest(t, validator, misspelt); !strings.Contains(fault, "restartPolice") {
		t.Errorf("a misspelt key went unseen: %s", fault)
	}
}

// kustomize puts the overlays together, and what comes out is valid as well.
func TestKustomizeInterop(t *testing.T) {
	dir := interop(t, "bin/kustomize", ".venv/bin/kubernetes-validate")
	for _, overlay := range []string{"sidecar", "replicas"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "bin/kustomize"), "build", filepath.Join(deployDir, "kubernetes/overlays", overlay))
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(bytes.TrimSpace(out)); err != nil {
			t.Errorf("%s: %v", overlay, err)
		}
		if fault := validManifest(t, filepath.Join(dir, ".venv/bin/kubernetes-validate"), out); fault != "" {
			t.Errorf("%s: %s", overlay, fault)
		}
	}
}

// systemd knows every setting of the unit.
func TestUnitInterop(t *testing.T) {
	analyze := interopProgram(t, "systemd-analyze", "Debian's package systemd")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp-refit.service")
	write(t, file, strings.ReplaceAll(unitText(t), "/usr/local/bin/mcp-refit", self))
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}
