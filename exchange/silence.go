package exchange

// CallbackSilence says of how many requests to the operator no callback told the outcome. Single callbacks are lost by
// every operator, and nothing depends on them. When most of them are, the operator posts to an address that is dead:
// orders go on by questions alone, more slowly, and nobody notices.
type CallbackSilence struct {
	Submitted int // requests that the operator took on
	Silent    int // of them, those about which nothing was posted
}

// MinSilent is how many requests must have gone without a callback before their share says anything.
const MinSilent = 5

// Alarming tells that more than half of the callbacks are missing.
func (c CallbackSilence) Alarming() bool { return c.Silent >= MinSilent && 2*c.Silent > c.Submitted }
