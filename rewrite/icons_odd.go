package rewrite

// Odd says what in an icon's other members clients fail on, and [IconSet.Edit]
// therefore puts right where the icon stays: one sentence each.
func (ic *Icon) Odd(raw []byte) []string {
	if raw[ic.at.Start] != '{' {
		return nil
	}
	o, _, _ := (&carriers{raw: raw}).iconObject(ic.at.Start)
	var odd []string
	for _, m := range []struct {
		mend func(raw []byte, e *Edits)
		text string
	}{
		{o.mendSizes, o.oddSizes(raw)},
		{o.mendTheme, "theme is neither light nor dark; clients of 2025-11-25 fail on it"},
		{o.mendMimeType, "mimeType is no string; clients fail on it"},
	} {
		var e Edits
		if m.mend(raw, &e); e.Len() > 0 {
			odd = append(odd, m.text)
		}
	}
	return odd
}

func (o *iconObject) oddSizes(raw []byte) string {
	if m := o[iconSizes]; !m.at.Empty() && raw[m.value.Start] == '"' {
		return "sizes is one string, the form of SEP-973's first draft; clients of 2025-11-25 fail on it"
	}
	return "sizes is no array of strings; clients of 2025-11-25 fail on it"
}
