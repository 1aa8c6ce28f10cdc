package scan

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxSubjects is how many subjects of the same finding a line names.
const maxSubjects = 4

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", oneLine(r.Title()))
	fmt.Fprintf(&b, "%s\n", r.Summary())
	for _, section := range r.sections() {
		fmt.Fprintf(&b, "\n%s\n", section.title)
		for _, g := range section.groups {
			fmt.Fprintf(&b, "  %-7s %-17s %s\n", g.Level, g.what(), oneLine(g.Reason))
			fmt.Fprintf(&b, "  %26s%s\n", "", oneLine(g.where()))
		}
	}
	if len(r.Forms) > 0 {
		fmt.Fprintf(&b, "\nForms\n")
	}
	for _, f := range r.Forms {
		what := "as it is"
		if len(f.Rules) > 0 {
			what = "refitted: " + strings.Join(f.Rules, ", ")
		}
		fmt.Fprintf(&b, "  %s asks %q: %s\n", oneLine(f.Subject), f.Message, what)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Title names the server.
func (r *Report) Title() string {
	title := strings.TrimSpace(r.Server.Name + " " + r.Server.Version)
	if r.Server.Title != "" && r.Server.Title != r.Server.Name {
		title = r.Server.Title + " (" + title + ")"
	}
	if r.Server.Revision != "" {
		title += ", revision " + r.Server.Revision
	}
	return title
}

// Summary says in one line what there is, and how much was found.
func (r *Report) Summary() string {
	c := r.Counts
	return strings.Join([]string{
		count(c.Tools, "tool"), count(c.Resources, "resource"), count(c.ResourceTemplates, "resource template"), count(c.Prompts, "prompt"),
	}, ", ") + ": " + strings.Join([]string{
		count(r.count(Fault), "fault"), count(r.count(Change), "change"), count(r.count(Note), "note"),
	}, ", ")
}

func count(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

type section struct {
	title  string
	groups []*group
}

// A group is findings that differ in their subject alone.
type group struct {
	Finding
	places []string
	more   int
}

// sections sorts the findings by what they are about, and puts equal ones together.
func (r *Report) sections() []section {
	out := []section{{title: "Icons"}, {title: "Schemas of forms"}, {title: "Other"}}
	for _, f := range r.Findings {
		s := &out[2]
		switch {
		case f.isIcon():
			s = &out[0]
		case strings.Contains(f.Path, ".requestedSchema"):
			s = &out[1]
		}
		s.add(f)
	}
	return slices.DeleteFunc(out, func(s section) bool { return len(s.groups) == 0 })
}

func (f *Finding) isIcon() bool {
	return f.Rule == "icon" || f.Rule == "icon-member" || f.Rule == "website"
}

func (s *section) add(f Finding) {
	i := slices.IndexFunc(s.groups, func(g *group) bool {
		return g.Level == f.Level && g.Rule == f.Rule && g.Verdict == f.Verdict && g.Reason == f.Reason
	})
	if i < 0 {
		i = len(s.groups)
		s.groups = append(s.groups, &group{Finding: f})
	}
	g := s.groups[i]
	place := f.place()
	switch {
	case slices.Contains(g.places, place):
	case len(g.places) < maxSubjects:
		g.places = append(g.places, place)
	default:
		g.more++
	}
}

// place is the subject, with what of it is meant.
func (f *Finding) place() string {
	if _, property, ok := strings.Cut(f.Path, ".requestedSchema.properties."); ok {
		return f.Subject + " field " + property
	}
	if f.URL != "" {
		return f.Subject + " " + f.URL
	}
	return f.Subject
}

// what is the rule and, unless it says so already, the verdict.
func (g *group) what() string {
	if g.Rule == "icon" || g.Rule == "website" {
		return g.Rule + " " + g.Verdict
	}
	return g.Rule
}

func (g *group) where() string {
	text := strings.Join(g.places, "; ")
	if g.more > 0 {
		text += fmt.Sprintf("; and %d more", g.more)
	}
	return text
}

// oneLine keeps control characters of the server's away from the terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\ufffd'
		}
		return r
	}, s)
}
