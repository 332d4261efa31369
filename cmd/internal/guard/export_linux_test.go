package guard

// Guardian returns the guardian's id.
func (p *Process) Guardian() int { return p.guardian }
