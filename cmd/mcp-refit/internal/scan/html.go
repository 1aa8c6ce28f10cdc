package scan

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"io"
	"strings"
	"sync"
)

//go:embed page.html
var pageText string

// pageTemplate is parsed when it is first used, for of all commands only scan uses it.
var pageTemplate = sync.OnceValue(func() *template.Template { return template.Must(template.New("page").Parse(pageText)) })

// maxIcons is how many icons the page shows.
const maxIcons = 1000

// A pageData is what the page shows.
type pageData struct {
	*Report
	Icons    []pageIcon
	MoreIcon int
	Forms    []pageForm
	Sections []pageSection
}

type pageIcon struct {
	Finding
	Before, After template.URL // a data: URI of our own making, or empty
}

type pageForm struct {
	Form
	Old, New     []field
	OldText      string
	NewText      string
	OldUnseen    bool // there are fields that a client can't show
	NewUnseen    bool
	RulesApplied string
}

type pageSection struct {
	Title string
	Rows  []pageRow
}

type pageRow struct {
	Level        Level
	What, Reason string
	Where        string
}

// HTML writes the report as one page that needs nothing else and runs no
// script. The only pictures in it are ones that we have made.
func (r *Report) HTML(w io.Writer) error {
	page := pageData{Report: r}
	for _, f := range r.Findings {
		if f.Rule != "icon" {
			continue
		}
		if len(page.Icons) == maxIcons {
			page.MoreIcon++
			continue
		}
		icon := pageIcon{Finding: f, Before: template.URL(f.Picture)}
		if f.Verdict == "inlined" {
			icon.After = icon.Before
		}
		page.Icons = append(page.Icons, icon)
	}
	for _, f := range r.Forms {
		page.Forms = append(page.Forms, newPageForm(f))
	}
	for _, s := range r.sections() {
		ps := pageSection{Title: s.title}
		for _, g := range s.groups {
			if g.Rule != "icon" { // they have a table of their own
				ps.Rows = append(ps.Rows, pageRow{g.Level, g.what(), g.Reason, g.where()})
			}
		}
		if len(ps.Rows) > 0 {
			page.Sections = append(page.Sections, ps)
		}
	}
	var b bytes.Buffer
	if err := pageTemplate().Execute(&b, page); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}

func newPageForm(f Form) pageForm {
	p := pageForm{Form: f, Old: fields(f.Before), New: fields(f.After), OldText: indented(f.Before), NewText: indented(f.After)}
	p.OldUnseen, p.NewUnseen = unseen(p.Old), unseen(p.New)
	p.RulesApplied = strings.Join(f.Rules, ", ")
	return p
}

func unseen(list []field) bool {
	for _, f := range list {
		if f.Kind == "" {
			return true
		}
	}
	return false
}

func indented(raw []byte) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}
