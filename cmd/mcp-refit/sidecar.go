package main

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	yamlparser "github.com/goccy/go-yaml/parser"
)

// A sidecar is the proxy as it is put into a pod, in front of a server that is
// reached on the pod's loopback.
type sidecar struct {
	image      string
	container  string // the server's; "" is the first
	serverPort int    // 0: the container's first
	path       string
	listenPort int // 0: 8080, or the next that is free
	adminPort  int // 0: 9090, or the next that is free
	configMap  string
}

// Names of what is put in.
const (
	sidecarName   = "mcp-refit" // of the container, and of its port
	sidecarVolume = "mcp-refit-policy"
)

// patch puts the sidecar into every workload of a manifest, by splicing lines
// into it.
func (s sidecar) patch(in []byte) ([]byte, error) {
	file, err := yamlparser.ParseBytes(in, 0)
	if err != nil {
		return nil, errors.New(strings.SplitN(err.Error(), "\n", 2)[0])
	}
	var docs []*ast.MappingNode
	for _, doc := range file.Docs {
		if m, ok := doc.Body.(*ast.MappingNode); ok {
			docs = append(docs, m)
		}
	}
	p := &splice{lines: bytes.SplitAfter(in, []byte("\n"))}
	found := false
	var served []pod
	for _, doc := range docs {
		spec := podSpec(doc)
		if spec == nil {
			continue
		}
		found = true
		one, err := s.pod(spec)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", text(doc, "kind"), text(doc, "metadata", "name"), err)
		}
		one.labels = child(spec.template, "metadata", "labels")
		served = append(served, one)
		if !one.has {
			s.inject(p, spec, one)
		}
		if err := label(p, spec.template); err != nil {
			return nil, fmt.Errorf("%s %s: %w", text(doc, "kind"), text(doc, "metadata", "name"), err)
		}
	}
	if !found {
		return nil, errors.New("there is no Deployment, StatefulSet, DaemonSet, Job or Pod in it")
	}
	for _, doc := range docs {
		if text(doc, "kind") == "Service" {
			if err := pointService(p, doc, served); err != nil {
				return nil, fmt.Errorf("the Service %s: %w", text(doc, "metadata", "name"), err)
			}
		}
	}
	return p.apply(), nil
}

// A specAt is a pod's spec, and the template that it stands in.
type specAt struct {
	*ast.MappingNode
	key      *ast.MappingValueNode // spec: itself
	template *ast.MappingNode
}

// podSpec is the pod's spec of a workload, nil for anything else.
func podSpec(doc *ast.MappingNode) *specAt {
	template := doc
	switch text(doc, "kind") {
	case "Deployment", "StatefulSet", "DaemonSet", "Job":
		template, _ = child(doc, "spec", "template").(*ast.MappingNode)
	case "Pod":
	default:
		return nil
	}
	if template == nil {
		return nil
	}
	key := entry(template, "spec")
	if key == nil {
		return nil
	}
	spec, ok := key.Value.(*ast.MappingNode)
	if !ok {
		return nil
	}
	return &specAt{spec, key, template}
}

// A pod is what has to be known of one to put the sidecar into it.
type pod struct {
	has      bool // the sidecar is there already
	port     int  // the server's
	portName string
	listen   int
	admin    int
	labels   ast.Node
}

func (s sidecar) pod(spec *specAt) (pod, error) {
	one := pod{}
	if spec.IsFlowStyle {
		return one, errors.New("the pod's spec is written in braces; write it one key a line")
	}
	for _, key := range []string{"initContainers", "volumes"} {
		if e := entry(spec.MappingNode, key); e != nil {
			if list, ok := e.Value.(*ast.SequenceNode); !ok || list.IsFlowStyle {
				return one, fmt.Errorf("%s is written in brackets or empty; write it one item a line", key)
			}
		}
	}
	taken := map[int]bool{}
	for _, list := range []string{"initContainers", "containers"} {
		for _, c := range items(child(spec.MappingNode, list)) {
			if text(c, "name") == sidecarName {
				one.has = true
				continue
			}
			for _, port := range items(child(c, "ports")) {
				n, _ := strconv.Atoi(text(port, "containerPort"))
				taken[n] = true
			}
			if list != "containers" || one.port != 0 || s.container != "" && text(c, "name") != s.container {
				continue
			}
			one.port = s.serverPort
			for _, port := range items(child(c, "ports")) {
				n, _ := strconv.Atoi(text(port, "containerPort"))
				if one.port == 0 || one.port == n {
					one.port, one.portName = n, text(port, "name")
				}
			}
		}
	}
	if one.port == 0 {
		return one, errors.New("the server's port is not known; say it with --server-port (and which container it is with --container)")
	}
	taken[one.port] = true
	one.listen, one.admin = free(s.listenPort, 8080, taken), free(s.adminPort, 9090, taken)
	if one.listen == one.port {
		return one, fmt.Errorf("the server listens on port %d itself; say another with --listen-port", one.port)
	}
	return one, nil
}

// free is the port that was asked for, or the first free one.
func free(asked, first int, taken map[int]bool) int {
	if asked != 0 {
		return asked
	}
	for taken[first] {
		first++
	}
	taken[first] = true
	return first
}

// inject splices the sidecar in front of the pod's other init containers.
func (s sidecar) inject(p *splice, spec *specAt, one pod) {
	column := spec.Values[0].Key.GetToken().Position.Column - 1
	under := spec.key.Key.GetToken().Position.Line
	put := func(key, item string) {
		e := entry(spec.MappingNode, key)
		if e == nil {
			p.insert(under, key+":\n"+indentLines(item, 2), column)
			return
		}
		p.insert(e.Key.GetToken().Position.Line, item, e.Value.GetToken().Position.Column-1)
	}
	put("initContainers", s.containerYAML(one))
	if s.configMap != "" {
		put("volumes", "- name: "+sidecarVolume+"\n  configMap:\n    name: "+s.configMap+"\n")
	}
}

// label gives a pod's template the label that the NetworkPolicy of deploy/
// selects, unless it has one of that name.
func label(p *splice, template *ast.MappingNode) error {
	const item = sidecarName + `: "true"`
	at, inside := template, ""
	for _, key := range []string{"metadata", "labels"} {
		e := entry(at, key)
		if e == nil {
			return put(p, at, inside, strings.Replace(map[string]string{"metadata": "metadata: {labels: {*}}", "labels": "labels: {*}"}[key], "*", item, 1))
		}
		m, ok := e.Value.(*ast.MappingNode)
		if !ok {
			return fmt.Errorf("%s is empty, an alias or an anchor; write it out, or put the label %s there", key, item)
		}
		at, inside = m, key
	}
	if entry(at, sidecarName) != nil {
		return nil
	}
	return put(p, at, inside, item)
}

// put puts an entry in front of the others of a mapping.
func put(p *splice, m *ast.MappingNode, name, item string) error {
	first := m.Start
	if m.IsFlowStyle {
		if len(m.Values) > 0 {
			item += ", "
		}
		p.insertAt(first.Position.Line, first.Position.Column, item)
		return nil
	}
	if len(m.Values) == 0 {
		return fmt.Errorf("%s is empty", name)
	}
	at := m.Values[0].Key.GetToken().Position
	p.insert(at.Line-1, item+"\n", at.Column-1)
	return nil
}

// containerYAML is the sidecar's container, as an item of a list. It is up
// before the server starts, so only its readiness asks for the server.
func (s sidecar) containerYAML(one pod) string {
	config, mount := "", ""
	if s.configMap != "" {
		config = "    - --config=/etc/mcp-refit/policy.yaml\n"
		mount = "  volumeMounts:\n    - {name: " + sidecarVolume + ", mountPath: /etc/mcp-refit, readOnly: true}\n"
	}
	return fmt.Sprintf(`- name: %[1]s
  image: %[2]s
  restartPolicy: Always # a native sidecar
  args:
    - --listen=:%[3]d
    - --admin=:%[4]d
%[5]s    - http://127.0.0.1:%[6]d%[7]s
  ports:
    - {name: %[1]s, containerPort: %[3]d}
    - {name: refit-admin, containerPort: %[4]d}
  startupProbe:
    httpGet: {path: /healthz, port: refit-admin}
    periodSeconds: 1
    failureThreshold: 30
  livenessProbe:
    httpGet: {path: /healthz, port: refit-admin}
  readinessProbe:
    httpGet: {path: /readyz, port: refit-admin}
  resources:
    requests: {cpu: 50m, memory: 64Mi}
    limits: {memory: 512Mi}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities: {drop: [ALL]}
    seccompProfile: {type: RuntimeDefault}
%[8]s`, sidecarName, s.image, one.listen, one.admin, config, one.port, s.path, mount)
}

// pointService points a Service's ports at the proxy, where they point at the
// server of one of the pods that it selects.
func pointService(p *splice, doc *ast.MappingNode, served []pod) error {
	selector, _ := child(doc, "spec", "selector").(*ast.MappingNode)
	for _, one := range served {
		if selector == nil || !selects(selector, one.labels) {
			continue
		}
		for _, port := range items(child(doc, "spec", "ports")) {
			m, ok := port.(*ast.MappingNode)
			if !ok {
				continue
			}
			target := entry(m, "targetPort")
			switch {
			case target == nil && text(m, "port") == strconv.Itoa(one.port):
				if m.IsFlowStyle {
					return errors.New("a port is written in braces and has no targetPort; write it one key a line")
				}
				at := entry(m, "port").Key.GetToken().Position
				p.insert(at.Line, "targetPort: "+sidecarName+"\n", at.Column-1)
			case target != nil && (value(target.Value) == strconv.Itoa(one.port) || one.portName != "" && value(target.Value) == one.portName):
				p.replace(target.Value, sidecarName)
			}
		}
	}
	return nil
}

// selects reports whether a selector's labels are all among the pod's.
func selects(selector *ast.MappingNode, labels ast.Node) bool {
	m, ok := labels.(*ast.MappingNode)
	return ok && !slices.ContainsFunc(selector.Values, func(e *ast.MappingValueNode) bool {
		have := entry(m, value(e.Key))
		return have == nil || value(have.Value) != value(e.Value)
	})
}
