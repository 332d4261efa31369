package calls

// Looked is how many calls m looks at.
func Looked(m *Minder) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
