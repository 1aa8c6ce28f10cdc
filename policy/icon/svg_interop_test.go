package icon

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestInteropIconsLikeResvg draws icons of well-known sets, rebuilt and by our own
// drawing, and compares each pixel with resvg's picture of the original.
func TestInteropIconsLikeResvg(t *testing.T) {
	const (
		edge = 64
		// Bounds on what may differ, of full intensity: renderers sample coverage
		// at edges differently, and strokes on curves tighter than their width
		// (lucide's heart-minus) have no one right inner side.
		worstMean, worstPixel = 0.015, 0.4
	)
	dir := interop(t, "node_modules/@resvg/resvg-js")
	modules := filepath.Join(dir, "node_modules")
	var in bytes.Buffer
	var names []string
	var drawings [][]byte
	lines := json.NewEncoder(&in)
	for _, set := range []struct {
		glob  string
		every int // which of them are drawn
	}{{"lucide-static/icons/*.svg", 9}, {"heroicons/24/*/*.svg", 4}, {"heroicons/20/*/*.svg", 8}, {"simple-icons/icons/*.svg", 25}} {
		files, err := filepath.Glob(filepath.Join(modules, set.glob))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", set.glob, err)
		}
		for i := 0; i < len(files); i += set.every {
			body, err := os.ReadFile(files[i])
			if err != nil {
				t.Fatal(err)
			}
			names, drawings = append(names, filepath.Base(files[i])), append(drawings, body)
			if err := lines.Encode(map[string]any{"svg": string(body), "width": edge}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(drawings) < 500 {
		t.Fatalf("only %d icons: this proves little", len(drawings))
	}
	cmd := exec.CommandContext(t.Context(), "node", "resvg.mjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := json.NewDecoder(bytes.NewReader(out))
	var sum float64
	for i, body := range drawings {
		var answer struct{ PNG, Error string }
		if err := answers.Decode(&answer); err != nil || answer.Error != "" {
			t.Fatalf("%s: %v %s", names[i], err, answer.Error)
		}
		raw, err := base64.StdEncoding.DecodeString(answer.PNG)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		draw, err := decodeSVG(body)
		if err != nil {
			t.Errorf("%s: %v", names[i], err)
			continue
		}
		ours, err := draw(edge)
		if err != nil {
			t.Errorf("%s: %v", names[i], err)
			continue
		}
		mean, worst := difference(ours, theirs)
		sum += mean
		if mean > worstMean || worst > worstPixel {
			t.Errorf("%s differs by %.4f on the average, %.2f at most", names[i], mean, worst)
		}
	}
	t.Logf("%d icons, which differ by %.4f on the average", len(drawings), sum/float64(len(drawings)))
}

// difference compares two pictures in premultiplied colours from 0 to 1.
func difference(a, b image.Image) (mean, worst float64) {
	bounds := a.Bounds()
	if bounds.Size() != b.Bounds().Size() {
		return 1, 1
	}
	for y := range bounds.Dy() {
		for x := range bounds.Dx() {
			r0, g0, b0, a0 := a.At(bounds.Min.X+x, bounds.Min.Y+y).RGBA()
			r1, g1, b1, a1 := b.At(b.Bounds().Min.X+x, b.Bounds().Min.Y+y).RGBA()
			d := 0.0
			for _, c := range [...][2]uint32{{r0, r1}, {g0, g1}, {b0, b1}, {a0, a1}} {
				d = max(d, math.Abs(float64(c[0])-float64(c[1]))/0xffff)
			}
			mean += d
			worst = max(worst, d)
		}
	}
	return mean / float64(bounds.Dx()*bounds.Dy()), worst
}
