package policy

// Policy is a Config compiled. It is immutable and safe for concurrent use,
// so that a reload is the swap of one pointer.
type Policy struct {
	Config  *Config
	Icons   *Icons
	Forms   *Forms
	Answers *Answers
}

// Compile validates the policy and compiles its rules. The Config must not be
// changed afterwards.
func (c *Config) Compile() (*Policy, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	icons, err := NewIcons(c.Icons)
	if err != nil {
		return nil, err
	}
	forms, err := NewForms(c.Forms)
	if err != nil {
		return nil, err
	}
	return &Policy{Config: c, Icons: icons, Forms: forms, Answers: NewAnswers(c.Answers)}, nil
}
