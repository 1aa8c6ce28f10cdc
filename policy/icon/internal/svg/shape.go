package svg

// outline returns the path of a shape.
func (n *node) outline() path {
	var p path
	switch n.name {
	case "path":
		return n.attrs["d"].path
	case "rect":
		x, y, w, h := n.number("x", 0), n.number("y", 0), n.number("width", 0), n.number("height", 0)
		if w <= 0 || h <= 0 {
			return nil
		}
		rx, ry := n.number("rx", -1), n.number("ry", -1)
		if rx < 0 {
			rx = ry
		}
		if ry < 0 {
			ry = rx
		}
		p.rect(x, y, w, h, min(max(rx, 0), w/2), min(max(ry, 0), h/2))
	case "circle":
		r := n.number("r", 0)
		p.ellipse(n.number("cx", 0), n.number("cy", 0), r, r)
	case "ellipse":
		rx, ry := n.number("rx", -1), n.number("ry", -1)
		if rx < 0 {
			rx = ry
		}
		if ry < 0 {
			ry = rx
		}
		p.ellipse(n.number("cx", 0), n.number("cy", 0), rx, ry)
	case "line":
		p.add('M', point{n.number("x1", 0), n.number("y1", 0)})
		p.add('L', point{n.number("x2", 0), n.number("y2", 0)})
	case "polyline", "polygon":
		list := n.attrs["points"].numbers
		for i := 0; i+1 < len(list); i += 2 {
			op := byte('L')
			if i == 0 {
				op = 'M'
			}
			p.add(op, point{list[i], list[i+1]})
		}
		if n.name == "polygon" && len(p) > 0 {
			p.add('Z')
		}
	}
	return p
}

func (p *path) rect(x, y, w, h, rx, ry float64) {
	if rx == 0 || ry == 0 {
		p.add('M', point{x, y})
		p.add('L', point{x + w, y})
		p.add('L', point{x + w, y + h})
		p.add('L', point{x, y + h})
		p.add('Z')
		return
	}
	p.add('M', point{x + rx, y})
	for _, corner := range [...][2]point{
		{{x + w - rx, y}, {x + w, y + ry}},
		{{x + w, y + h - ry}, {x + w - rx, y + h}},
		{{x + rx, y + h}, {x, y + h - ry}},
		{{x, y + ry}, {x + rx, y}},
	} {
		p.add('L', corner[0])
		p.arc(corner[0], corner[1], rx, ry, 0, false, true)
	}
	p.add('Z')
}

func (p *path) ellipse(cx, cy, rx, ry float64) {
	if rx <= 0 || ry <= 0 {
		return
	}
	right, left := point{cx + rx, cy}, point{cx - rx, cy}
	p.add('M', right)
	p.arc(right, left, rx, ry, 0, false, true)
	p.arc(left, right, rx, ry, 0, false, true)
	p.add('Z')
}
