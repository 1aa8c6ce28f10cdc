package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// What the sidecar adds to manifests of several shapes, what it leaves, and
// that a second time changes nothing.
func TestSidecar(t *testing.T) {
	for _, c := range []struct {
		name   string
		s      sidecar
		in     string
		want   []string // lines that are there afterwards
		absent []string
		fault  string
	}{
		{
			name: "a Deployment and its Service", s: sidecar{image: "i:1", path: "/mcp", configMap: "cm"},
			in: deploymentText + "---\n" + serviceText,
			want: []string{
				"            initContainers:\n              - name: mcp-refit\n                image: i:1\n                restartPolicy: Always # a native sidecar\n",
				"                  - --listen=:8081\n", "                  - http://127.0.0.1:8080/mcp\n", "                  - --config=/etc/mcp-refit/policy.yaml\n",
				"            volumes:\n              - name: mcp-refit-policy\n                configMap:\n                  name: cm\n",
				"            labels: {mcp-refit: \"true\", app: mine, tier: x}\n", "      targetPort: mcp-refit # by name\n", "    - port: 8080\n      targetPort: mcp-refit\n", "    - {port: 81, targetPort: mcp-refit}\n", "      targetPort: 9\n",
			},
		},
		{
			name: "beside other init containers and volumes, before which it comes", s: sidecar{image: "i:1", path: "/mcp", configMap: "cm", serverPort: 3000},
			in: "kind: StatefulSet\nspec:\n  template:\n    spec:\n      initContainers:\n      - name: first # mine\n        image: x\n      volumes:\n      - {name: v, emptyDir: {}}\n      containers:\n      - {name: s, image: y}",
			want: []string{
				"      initContainers:\n      - name: mcp-refit\n        image: i:1\n", "      - name: first # mine\n", "      volumes:\n      - name: mcp-refit-policy\n        configMap:\n          name: cm\n      - {name: v, emptyDir: {}}\n",
				"          - --listen=:8080\n", "    metadata: {labels: {mcp-refit: \"true\"}}\n    spec:\n",
			},
		},
		{
			name: "the second container of a Pod, another Service, and no ConfigMap", s: sidecar{image: "i:1", path: "/x", container: "b", adminPort: 9999},
			in:     "kind: Pod\nmetadata: {labels: {app: p}}\nspec:\n  containers:\n    - name: a\n      ports: [{containerPort: 1}]\n    - name: b\n      ports: [{containerPort: 2}]\n---\nkind: Service\nspec:\n  selector: {app: other}\n  ports:\n    - {port: 80, targetPort: 2}\n",
			want:   []string{"        - http://127.0.0.1:2/x\n", "        - --admin=:9999\n", "metadata: {labels: {mcp-refit: \"true\", app: p}}\n", "    - {port: 80, targetPort: 2}\n"},
			absent: []string{"volume", "--config"},
		},
		{
			name: "labels one a line, after a comment", s: sidecar{serverPort: 1, image: "i:1"},
			in:   "kind: Pod\nmetadata:\n  labels:\n    # mine\n    app: p\nspec:\n  containers:\n    - name: a\n",
			want: []string{"  labels:\n    # mine\n    mcp-refit: \"true\"\n    app: p\n"},
		},
		{
			name: "metadata without labels, behind the spec", s: sidecar{serverPort: 1, image: "i:1"},
			in:   "spec:\n  containers:\n    - name: a\nmetadata:\n  name: p\nkind: Pod\n",
			want: []string{"metadata:\n  labels: {mcp-refit: \"true\"}\n  name: p\n"},
		},
		{
			name: "no metadata at all", s: sidecar{serverPort: 1, image: "i:1"},
			in:   "kind: Pod\nspec:\n  containers:\n    - name: a\n",
			want: []string{"metadata: {labels: {mcp-refit: \"true\"}}\nkind: Pod\n"},
		},
		{
			name: "a label of that name", s: sidecar{serverPort: 1, image: "i:1"},
			in:     "kind: Pod\nmetadata: {labels: {mcp-refit: \"no\"}}\nspec:\n  containers:\n    - name: a\n",
			want:   []string{"metadata: {labels: {mcp-refit: \"no\"}}\n"},
			absent: []string{`"true"`},
		},
		{name: "labels that are an alias", s: sidecar{serverPort: 1}, in: "kind: Pod\nx: &l {app: p}\nmetadata:\n  labels: *l\nspec:\n  containers:\n    - name: a\n", fault: "labels is empty, an alias"},
		{name: "no port", in: "kind: Pod\nspec:\n  containers:\n    - name: a\n", fault: "--server-port"},
		{name: "the same port", s: sidecar{listenPort: 1}, in: "kind: Pod\nspec:\n  containers:\n    - name: a\n      ports: [{containerPort: 1}]\n", fault: "--listen-port"},
		{name: "in braces", s: sidecar{serverPort: 1}, in: "kind: Pod\nspec: {containers: [{name: a}]}\n", fault: "braces"},
		{name: "init containers in brackets", s: sidecar{serverPort: 1}, in: "kind: Pod\nspec:\n  initContainers: [{name: x}]\n  containers:\n    - name: a\n", fault: "brackets"},
		{name: "an empty list", s: sidecar{serverPort: 1}, in: "kind: Pod\nspec:\n  initContainers:\n  containers:\n    - name: a\n", fault: "initContainers"},
		{name: "a Service alone", in: serviceText, fault: "no Deployment"},
		{name: "not YAML", in: "a: [", fault: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := c.s.patch([]byte(c.in))
			if c.want == nil {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Errorf("%v, want %q\n%s", err, c.fault, out)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range c.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("there is no\n%s", w)
				}
			}
			for _, a := range c.absent {
				if strings.Contains(string(out), a) {
					t.Errorf("there is %s", a)
				}
			}
			if t.Failed() {
				t.Logf("%s", out)
			}
			for line := range strings.Lines(c.in) {
				if !strings.Contains(line, "targetPort") && !strings.Contains(line, "labels: {") && !strings.Contains(string(out), strings.TrimSuffix(line, "\n")) {
					t.Errorf("lost: %s", line)
				}
			}
			again, err := c.s.patch(out)
			if err != nil || !bytes.Equal(again, out) {
				t.Errorf("a second time it is another: %v\n%s", err, again)
			}
		})
	}
}

const deploymentText = `# My server.
apiVersion: apps/v1
kind: Deployment
metadata: {name: mine}
spec:
    selector: {matchLabels: {app: mine}}
    template:
        metadata:
            labels: {app: mine, tier: x}
        spec:
            # the server
            containers:
                - name: server   # as it is
                  image: "example.com/mine:1"
                  ports: [{containerPort: 8080, name: http}]
`

const serviceText = `apiVersion: v1
kind: Service
metadata: {name: mine}
spec:
  selector: {app: mine}
  ports:
    - port: 80
      targetPort: http # by name
    - port: 8080
    - {port: 81, targetPort: 8080}
    - port: 9
      targetPort: 9
`

// The sidecar of the overlay is the one that the command puts in.
func TestSidecarOverlay(t *testing.T) {
	data, err := os.ReadFile("../../deploy/kubernetes/overlays/sidecar/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	from, to := strings.Index(text, "      volumes:\n"), strings.Index(text, "      containers:\n")
	before, sidecarText, after := text[:from], text[from:to], text[to:]
	s := sidecar{image: "ghcr.io/mcp-refit/mcp-refit:latest", path: "/mcp", configMap: "mcp-refit-policy"}
	out, err := s.patch([]byte(before + after))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.TrimSuffix(strings.TrimPrefix(string(out), before), after)
	// The order of the two keys is not the same.
	for line := range strings.Lines(sidecarText) {
		if !strings.Contains(got, line) {
			t.Errorf("the command does not put in: %s", line)
		}
	}
	if len(got) != len(sidecarText) {
		t.Errorf("the command puts in\n%s", got)
	}
}
