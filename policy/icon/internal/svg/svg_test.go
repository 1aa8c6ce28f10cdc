package svg

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"strings"
	"testing"
	"unicode/utf16"
)

// wrap puts markup into a document.
func wrap(inner string) string {
	return `<svg xmlns="` + namespace + `" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 24 24">` + inner + `</svg>`
}

const square = `<path d="M4 4 L20 4 L20 20 L4 20 Z" fill="#ff0000"/>`

// TestAbsent: what is not allowed is not in the rebuilt document, and what is
// allowed beside it is.
func TestAbsent(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"script":               {`<script>alert(1)</script>` + square, square},
		"script by reference":  {`<script href="https://evil.example/x.js"/><script xlink:href="data:,alert(1)"/>` + square, square},
		"script in CDATA":      {`<script><![CDATA[alert(1)]]></script>` + square, square},
		"prefixed script":      {`<s:script xmlns:s="` + namespace + `">alert(1)</s:script>` + square, square},
		"XHTML script":         {`<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>` + square, square},
		"handlers":             {`<g onload="alert(1)" ONLOAD="alert(1)" onbegin="alert(1)" onmouseover="x"/>`, `<g/>`},
		"animate":              {`<path d="M0 0L1 1"><animate attributeName="href" values="javascript:alert(1)"/></path>`, `<path d="M0 0 L1 1"/>`},
		"set":                  {`<g><set attributeName="onmouseover" to="alert(1)"/></g>`, `<g/>`},
		"use":                  {`<use href="data:image/svg+xml,x#x"/><use xlink:href="https://evil.example/#x"/><use href="#a"/>` + square, square},
		"image":                {`<image href="https://evil.example/t.png"/><image href="data:image/svg+xml;base64,PHN2Zy8+"/><feImage href="x"/>` + square, square},
		"link":                 {`<a href="javascript:alert(1)"><path d="M0 0h1"/></a>` + square, square},
		"external fill":        {`<path d="M0 0 L1 1" fill="url(https://evil.example/#x)" stroke="url('//evil.example')" mask="url(x.svg#m)" filter="url(https://evil.example/)"/>`, `<path d="M0 0 L1 1"/>`},
		"local gradient":       {`<path d="M0 0 L1 1" fill="url(#a)" mask="url('#m')" filter="url(#f)"/>`, `<path d="M0 0 L1 1" fill="url(#a)" mask="url(#m)"/>`},
		"fallback":             {`<path d="M0 0 L1 1" fill="url(#a) url(https://evil.example/)"/>`, `<path d="M0 0 L1 1" fill="url(#a)"/>`},
		"style element":        {`<style>@import url(https://evil.example/)</style>` + square, square},
		"style attribute":      {`<path d="M0 0 L1 1" style="fill:red;background:url(https://evil.example/);stroke:expression(1)!important;behavior:url(x)"/>`, `<path d="M0 0 L1 1" fill="#ff0000"/>`},
		"foreign content":      {`<foreignObject><iframe src="https://evil.example/"/><div xmlns="http://www.w3.org/1999/xhtml">x</div></foreignObject>` + square, square},
		"nested svg":           {`<svg onload="alert(1)"><path d="M0 0h1"/></svg>` + square, square},
		"title and desc":       {`<title><![CDATA[</title><img src=x onerror=alert(1)>]]></title><desc><p title="&lt;/desc>&lt;script>"/></desc>` + square, square},
		"text":                 {`x<text>y</text>z` + square + `&lt;script&gt;`, square},
		"comment":              {`<!-- <script> -->` + square, square},
		"metadata":             {`<metadata><rdf:RDF xmlns:rdf="x"/></metadata>` + square, square},
		"unknown":              {`<path d="M0 0 L1 1" data-x="1" class="a" aria-label="&quot;&gt;&lt;script&gt;" xml:base="https://evil.example/" tabindex="0"/>`, `<path d="M0 0 L1 1"/>`},
		"id that needs quotes": {`<g id="a&quot;b"/><g id="a b"/><g id="good"/>`, `<g/><g/><g id="good"/>`},
		"id twice":             {`<g id="a"/><g id="a"/>`, `<g id="a"/><g/>`},
		"hidden":               {`<g display="none"><path d="M0 0L1 1"/></g><g style="display:none"/>` + square, square},
		"child of a shape":     {`<path d="M0 0 L1 1"><path d="M5 5h1"/></path>`, `<path d="M0 0 L1 1"/>`},
		"gradient by template": {
			`<linearGradient id="a" xlink:href="#b" x1="1"/><linearGradient id="b" href="#a" x2="50%"><stop offset="0.5" stop-color="red"/></linearGradient>`,
			`<linearGradient id="a" x1="1" x2="50%"><stop offset="0.5" stop-color="#ff0000"/></linearGradient><linearGradient id="b" x1="1" x2="50%"><stop offset="0.5" stop-color="#ff0000"/></linearGradient>`,
		},
		"entities": {`<path d="M0 0 L1 &#x31;" fill="&#114;ed"/>`, `<path d="M0 0 L1 1" fill="#ff0000"/>`},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(wrap(c.in)))
			if err != nil {
				t.Fatal(err)
			}
			want := `<svg xmlns="` + namespace + `" viewBox="0 0 24 24">` + c.want + `</svg>`
			if got := string(d.Markup()); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			checkRebuilt(t, d)
		})
	}
}

// TestAfterTheRoot: neither a second root nor text after the first is there.
func TestAfterTheRoot(t *testing.T) {
	for _, after := range []string{`<svg onload="x"/>`, `<script>alert(1)</script>`, `alert(1)`, `<!-- x -->`, `<`, `<?php x ?>`} {
		d, err := Parse([]byte(wrap(square) + after))
		if err != nil {
			t.Errorf("%q: %v", after, err)
			continue
		}
		if want := wrap(square); !strings.HasSuffix(string(d.Markup()), square+"</svg>") {
			t.Errorf("%q: %s, want %s", after, d.Markup(), want)
		}
	}
}

func TestRefused(t *testing.T) {
	utf16le := func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune("\ufeff" + s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	laughs := `<!DOCTYPE svg [<!ENTITY a "lol">`
	for i := range 9 {
		laughs += fmt.Sprintf(`<!ENTITY %c "%s">`, 'b'+i, strings.Repeat(fmt.Sprintf("&%c;", 'a'+i), 10))
	}
	for name, in := range map[string]string{
		"empty":                "",
		"text":                 "hello",
		"html":                 `<html><body/></html>`,
		"other root":           `<g xmlns="` + namespace + `"/>`,
		"root of another":      `<svg xmlns="http://www.w3.org/1999/xhtml" viewBox="0 0 1 1"/>`,
		"style instruction":    `<?xml-stylesheet href="https://evil.example/x.css"?>` + wrap(""),
		"instruction inside":   wrap(`<?xml-stylesheet href="x"?>`),
		"late declaration":     wrap(`<?xml version="1.0"?>`),
		"doctype":              `<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">` + wrap(""),
		"external entity":      `<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>` + wrap("&x;"),
		"unknown entity":       wrap("&x;"),
		"a billion laughs":     laughs + `]>` + wrap("&j;"),
		"UTF-16":               utf16le(wrap("")),
		"UTF-7":                `<?xml version="1.0" encoding="UTF-7"?>` + wrap("+ADw-script+AD4-"),
		"ISO-2022-JP":          `<?xml version="1.0" encoding="ISO-2022-JP"?>` + wrap("\x1b$B"),
		"NUL":                  wrap("\x00"),
		"bad UTF-8":            wrap("\xff"),
		"gzip":                 "\x1f\x8b\x08\x00",
		"unclosed":             `<svg xmlns="` + namespace + `" viewBox="0 0 1 1"><g>`,
		"wrongly closed":       wrap(`<g></path>`),
		"no size":              `<svg xmlns="` + namespace + `"/>`,
		"viewBox NaN":          `<svg xmlns="` + namespace + `" viewBox="0 0 NaN NaN"/>`,
		"viewBox infinite":     `<svg xmlns="` + namespace + `" viewBox="0 0 1e400 1"/>`,
		"viewBox huge":         `<svg xmlns="` + namespace + `" viewBox="0 0 1e9 1"/>`,
		"huge polygon":         wrap(`<polygon points="0,0 1e9,1"/>`),
		"viewBox of nothing":   `<svg xmlns="` + namespace + `" viewBox="0 0 0 0"/>`,
		"viewBox turned":       `<svg xmlns="` + namespace + `" viewBox="0 0 -1 1"/>`,
		"viewBox of two":       `<svg xmlns="` + namespace + `" viewBox="1 1"/>`,
		"viewBox of a million": `<svg xmlns="` + namespace + `" viewBox="` + strings.Repeat("1 ", 1000) + `"/>`,
		"huge radius":          wrap(`<circle r="1e12"/>`),
		"huge width":           wrap(`<rect width="99999999999" height="1"/>`),
		"huge point":           wrap(`<path d="M0 0L1e9 1"/>`),
		"sum of points":        wrap(`<path d="M0 0` + strings.Repeat("l900000 0", 2) + `"/>`),
		"huge transform":       wrap(`<g transform="scale(1e5) scale(1e5)"/>`),
		"long dash list":       wrap(`<path d="M0 0h1" stroke-dasharray="` + strings.Repeat("1 ", 1000) + `"/>`),
		"long transform":       wrap(`<g transform="` + strings.Repeat("scale(1)", 1000) + `"/>`),
		"nested":               wrap(strings.Repeat("<g>", 100) + strings.Repeat("</g>", 100)),
		"nested and skipped":   wrap(strings.Repeat("<x>", 200) + strings.Repeat("</x>", 200)),
		"many elements":        wrap(strings.Repeat("<g/>", maxElements+1)),
		"many tokens":          wrap(strings.Repeat("<x/>", maxTokens)),
		"many segments":        wrap(`<path d="M0 0` + strings.Repeat("h1", maxSegments) + `"/>`),
		"many paths":           wrap(strings.Repeat(`<path d="M0 0`+strings.Repeat("h1", 100)+`"/>`, maxSegments/100)),
	} {
		t.Run(name, func(t *testing.T) {
			if d, err := Parse([]byte(in)); !errors.Is(err, ErrRefused) {
				t.Errorf("%v %v", d, err)
			}
		})
	}
}

// TestTooMuchWork: a document in bounds can still ask for more than drawing is
// worth.
func TestTooMuchWork(t *testing.T) {
	spiral := strings.Repeat("L24 24L0 0", 4000)
	for name, in := range map[string]string{
		"dashes":    `<path d="M0 0h24" stroke="red" stroke-width=".01" stroke-dasharray=".001"/>`,
		"outline":   `<path d="M0 0` + spiral[:len(spiral)/8] + `"/>`,
		"crossings": strings.Repeat(`<path d="M0 0`+spiral[:len(spiral)/20]+`"/>`, 50),
		"far away":  `<g transform="scale(1e6)"><path d="M0 0L1 1"/></g>`,
		"wide":      `<path d="M0 0h1" stroke="red" stroke-width="1e6"/>`,
		"masks": `<mask id="a"><g mask="url(#b)">` + strings.Repeat(`<g mask="url(#b)"/>`, 90) + `</g></mask><mask id="b">` +
			strings.Repeat(`<g mask="url(#a)"/>`, 90) + `</mask><g mask="url(#a)"/><g mask="url(#a)"/><g mask="url(#a)"/>`,
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Parse([]byte(wrap(in)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Draw(128); !errors.Is(err, ErrRefused) {
				t.Errorf("drawn: %v", err)
			}
		})
	}
}

// TestUseCycle: the 269 bytes that took a rasteriser to its memory limit draw
// nothing here.
func TestUseCycle(t *testing.T) {
	d, err := Parse([]byte(wrap(`<g id="a"><use href="#b"/><use href="#b"/></g><g id="b"><use href="#a"/><use href="#a"/></g><use href="#a"/>`)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Draw(64)
	if err != nil || !bytes.Equal(m.Pix, make([]byte, len(m.Pix))) {
		t.Error(err)
	}
}

// checkRebuilt checks the properties of every rebuilt document: parsing it
// makes the same one, and it holds no more than the allowlist.
func checkRebuilt(t testing.TB, d *Document) {
	t.Helper()
	markup := d.Markup()
	again, err := Parse(markup)
	if err != nil {
		t.Fatalf("%s\nis refused: %v", markup, err)
	}
	if !bytes.Equal(again.Markup(), markup) {
		t.Fatalf("%s\nis rebuilt as\n%s", markup, again.Markup())
	}
	decoder := xml.NewDecoder(bytes.NewReader(markup))
	for {
		token, err := decoder.Token()
		if token == nil {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if geometry[e.Name.Local] == nil || e.Name.Space != namespace {
				t.Fatalf("element %v", e.Name)
			}
			for _, a := range e.Attr {
				known := properties[a.Name.Local] != nil || geometry[e.Name.Local][a.Name.Local] != nil || a.Name.Local == "viewBox" || a.Name.Local == "xmlns" && a.Value == namespace
				if !known || a.Name.Space != "" {
					t.Fatalf("attribute %v", a.Name)
				}
				if i := strings.Index(a.Value, "url("); i >= 0 && !strings.HasPrefix(a.Value, "url(#") || strings.ContainsAny(a.Value, `<>&"'\`) {
					t.Fatalf("%s=%q", a.Name.Local, a.Value)
				}
			}
		case xml.EndElement:
		default:
			t.Fatalf("token %T", token)
		}
	}
}

// FuzzParse holds every document to the properties of a rebuilt one, and draws
// it.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		wrap(square),
		wrap(`<linearGradient id="a" gradientTransform="rotate(45)"><stop offset="10%" stop-color="hsl(10 50% 50%/.5)"/></linearGradient><circle r="10" fill="url(#a)" stroke="red" stroke-dasharray="1 2"/>`),
		wrap(`<radialGradient id="a" href="#b" fx="1"/><mask id="m"><rect width="100%" height="1em" rx="2"/></mask><g mask="url(#m)" opacity=".5" transform="skewX(10)"><polygon points="1,2 3,4 5"/></g>`),
		wrap(`<clipPath id="c"><ellipse rx="1" ry="2"/></clipPath><line x2="5" clip-path="url(#c)"/><path d="M1 1a1 2 3 01-4 5zs1 2 3 4t5 6q1 2 3 4z" style="stroke:#abc"/>`),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := Parse(src)
		if err != nil {
			if !errors.Is(err, ErrRefused) {
				t.Fatal(err)
			}
			return
		}
		checkRebuilt(t, d)
		m, err := d.Draw(32)
		if err == nil && max(m.Bounds().Dx(), m.Bounds().Dy()) > 32 {
			t.Fatal(m.Bounds())
		}
	})
}

// draw draws markup at 24 pixels.
func draw(t testing.TB, inner string) *image.NRGBA {
	t.Helper()
	d, err := Parse([]byte(wrap(inner)))
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.Draw(24)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
