package store

type writer struct{}

func startWriter(*Store, int) *writer { return &writer{} }
func (w *writer) close()              {}
func lanesFor(int) int                { return 1 }
