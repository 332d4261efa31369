package fence

// UnderWay counts the names that g has requests of.
func UnderWay(g *Gate) int {
	g.traffic.mu.Lock()
	defer g.traffic.mu.Unlock()
	return len(g.traffic.names)
}
