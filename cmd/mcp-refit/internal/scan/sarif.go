package scan

import (
	"encoding/json"
	"io"
	"slices"
)

// JSON writes the report as it is.
func (r *Report) JSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

// The parts of a SARIF log (OASIS, version 2.1.0) that a report has.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool      `json:"tool"`
		Results    []sarifResult  `json:"results"`
		Properties map[string]any `json:"properties"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID string `json:"id"`
	}
	sarifResult struct {
		RuleID    string          `json:"ruleId"`
		RuleIndex int             `json:"ruleIndex"`
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		Logical []sarifLogical `json:"logicalLocations"`
	}
	sarifLogical struct {
		Name     string `json:"name"`
		FullName string `json:"fullyQualifiedName,omitempty"`
		Kind     string `json:"kind"`
	}
)

var sarifLevels = map[Level]string{Note: "note", Change: "warning", Fault: "error"}

// SARIF writes the findings as a SARIF log. A server has no source files, so
// the places are logical: the tool or resource, and the path in the message.
func (r *Report) SARIF(w io.Writer, version string) error {
	run := sarifRun{
		Tool: sarifTool{sarifDriver{
			Name: "mcp-refit", Version: version, InformationURI: "https://github.com/mcp-refit/mcp-refit", Rules: []sarifRule{},
		}},
		Results:    []sarifResult{},
		Properties: map[string]any{"target": r.Target, "server": r.Server, "counts": r.Counts},
	}
	rules := &run.Tool.Driver.Rules
	for _, f := range r.Findings {
		rule := slices.Index(*rules, sarifRule{f.Rule})
		if rule < 0 {
			rule = len(*rules)
			*rules = append(*rules, sarifRule{f.Rule})
		}
		text := f.place() + ": " + f.Reason
		if f.Verdict != "" {
			text = f.place() + " would be " + f.Verdict + " (" + f.Rule + "): " + f.Reason
		}
		full := f.Method
		if f.Path != "" {
			full += " " + f.Path
		}
		run.Results = append(run.Results, sarifResult{
			RuleID: f.Rule, RuleIndex: rule, Level: sarifLevels[f.Level], Message: sarifMessage{text},
			Locations: []sarifLocation{{[]sarifLogical{{Name: f.Subject, FullName: full, Kind: "member"}}}},
		})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}
