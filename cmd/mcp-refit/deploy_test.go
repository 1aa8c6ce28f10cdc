package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"

	"github.com/mcp-refit/mcp-refit/policy"
)

const deployDir = "../../deploy"

// kindOf is an empty object of the Kubernetes API.
func kindOf(apiVersion, kind string) any {
	switch apiVersion + " " + kind {
	case "v1 ConfigMap":
		return new(corev1.ConfigMap)
	case "v1 Service":
		return new(corev1.Service)
	case "apps/v1 Deployment":
		return new(appsv1.Deployment)
	case "networking.k8s.io/v1 NetworkPolicy":
		return new(networkingv1.NetworkPolicy)
	case "policy/v1 PodDisruptionBudget":
		return new(policyv1.PodDisruptionBudget)
	case "autoscaling/v2 HorizontalPodAutoscaler":
		return new(autoscalingv2.HorizontalPodAutoscaler)
	}
	return nil
}

// decodeManifest decodes each document strictly: a key that the API doesn't
// know, or a value of another type, is a fault.
func decodeManifest(data []byte) ([]any, error) {
	var objects []any
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var about struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(doc, &about); err != nil {
			return nil, err
		}
		object := kindOf(about.APIVersion, about.Kind)
		if object == nil {
			return nil, fmt.Errorf("an object of a kind that is not known: %+v", about)
		}
		if err := yaml.UnmarshalStrict(doc, object); err != nil {
			return nil, fmt.Errorf("%s: %w", about.Kind, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// manifests are the objects in all files of deploy/kubernetes.
func manifests(t *testing.T) []any {
	t.Helper()
	var all []any
	err := filepath.WalkDir(filepath.Join(deployDir, "kubernetes"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "kustomization.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := decodeManifest(data)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, objects...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every manifest is one that the Kubernetes API knows, its containers are
// hardened and probed, their arguments are flags of ours, and the names in it
// fit together.
func TestManifests(t *testing.T) {
	objects := manifests(t)
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[fmt.Sprintf("%T", o)]++
		switch o := o.(type) {
		case *corev1.ConfigMap:
			if _, err := policy.Parse("policy.yaml", []byte(o.Data["policy.yaml"])); err != nil {
				t.Error(err)
			}
		case *appsv1.Deployment:
			checkPod(t, o)
		case *corev1.Service:
			if got := o.Spec.Ports[0].TargetPort.StrVal; got != "mcp-refit" {
				t.Errorf("the Service %s points at %q", o.Name, got)
			}
		}
	}
	for kind, want := range map[string]int{
		"*v1.ConfigMap": 1, "*v1.Deployment": 2, "*v1.Service": 2, "*v1.NetworkPolicy": 2,
		"*v1.PodDisruptionBudget": 1, "*v2.HorizontalPodAutoscaler": 1,
	} {
		if kinds[kind] != want {
			t.Errorf("%d of %s, want %d", kinds[kind], kind, want)
		}
	}
}

func checkPod(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	spec := d.Spec.Template.Spec
	all := slices.Concat(spec.InitContainers, spec.Containers)
	at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == sidecarName })
	if at < 0 {
		t.Fatalf("%s has no proxy", d.Name)
	}
	c := all[at]
	if sc := c.SecurityContext; sc == nil || !*sc.RunAsNonRoot || *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem ||
		!slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) || sc.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s: the proxy is not hardened", d.Name)
	}
	if c.LivenessProbe.HTTPGet.Path != "/healthz" || c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.StartupProbe.HTTPGet.Path != "/healthz" {
		t.Errorf("%s: the probes ask for something else", d.Name)
	}
	if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		t.Errorf("%s: no memory is asked for", d.Name)
	}
	for _, label := range []string{"app", "mcp-refit"} {
		if d.Spec.Template.Labels[label] == "" {
			t.Errorf("%s: the pods have no label %s", d.Name, label)
		}
	}
	root := rootCommand(stdio{err: io.Discard, out: io.Discard})
	if err := root.ParseFlags(c.Args); err != nil {
		t.Errorf("%s: %v", d.Name, err)
	}
	if to, err := targetOf(root, root.Flags().Args()); err != nil || to == nil || to.url == nil {
		t.Errorf("%s: the target: %v, %v", d.Name, to, err)
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
			t.Errorf("%s: there is no volume %s", d.Name, m.Name)
		}
	}
}

// A key that the API does not know is seen.
func TestManifestsStrict(t *testing.T) {
	if _, err := decodeManifest([]byte("apiVersion: v1\nkind: Service\nspec:\n  sessionAfinity: ClientIP\n")); err == nil {
		t.Error("a misspelt key went unseen")
	}
}

// The command's output is strict, too.
func TestManifestSidecarDecodes(t *testing.T) {
	s := sidecar{image: "i:1", path: "/mcp", configMap: "cm"}
	out, err := s.patch([]byte(deploymentText + "---\n" + serviceText))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeManifest(out)
	if err != nil {
		t.Fatal(err)
	}
	c := objects[0].(*appsv1.Deployment).Spec.Template.Spec.InitContainers[0]
	if c.Name != sidecarName || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("got %+v", c)
	}
}

func unitText(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(deployDir, "mcp-refit.service"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The unit's command line has flags that there are.
func TestUnit(t *testing.T) {
	line := regexp.MustCompile(`(?m)^ExecStart=\S+ (.*) \$\{MCP_REFIT_URL\}$`).FindStringSubmatch(unitText(t))
	if line == nil {
		t.Fatal("there is no ExecStart")
	}
	if err := rootCommand(stdio{err: io.Discard, out: io.Discard}).ParseFlags(strings.Fields(line[1])); err != nil {
		t.Error(err)
	}
}

// The image holds a static program and certificates, and runs as nobody.
func TestDockerfile(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(deployDir, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	last := text[strings.LastIndex(text, "\nFROM "):]
	for _, want := range []string{"\nFROM scratch\n", "ca-certificates.crt /etc/ssl/certs/\n", "\nUSER 65532:65532\n", `ENTRYPOINT ["/mcp-refit"]`} {
		if !strings.Contains(last, want) {
			t.Errorf("the image has no %q", want)
		}
	}
	if strings.Contains(last, "RUN ") || strings.Contains(last, "ADD ") {
		t.Error("the image is built with more than copies")
	}
	if !strings.Contains(text, "CGO_ENABLED=0 go build -trimpath ") || !strings.Contains(text, "FROM golang:"+goRelease(t)+" ") {
		t.Error("the program is not built static, by the Go release of go.mod")
	}
}

// goRelease is the Go release that go.mod asks for, such as 1.26.
func goRelease(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	v := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(data)
	if v == nil {
		t.Fatal(errors.New("go.mod says no release"))
	}
	return string(v[1])
}
