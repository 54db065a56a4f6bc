package activities

import "context"

// HouseStore is the database interface of house money.
type HouseStore interface {
	MatchLines(ctx context.Context) (int, error)
}

// House settles what is known about the house's own money. It makes no network call.
type House struct{ Store HouseStore }

// linesAtOnce is how many lines one activity settles at least, if there are as many.
const linesAtOnce = 500

// MatchedLines is how many statement lines and statements were settled.
type MatchedLines struct {
	Settled int `json:"settled"`
	// More is set when there may be more.
	More bool `json:"more,omitempty"`
}

// MatchStatements matches lines of banks' statements with what explains them, and sets the others aside. A second run continues
// with those that are left.
func (h *House) MatchStatements(ctx context.Context) (MatchedLines, error) {
	var all MatchedLines
	for all.Settled < linesAtOnce {
		n, err := h.Store.MatchLines(ctx)
		if err != nil {
			return all, Failure(ctx, err)
		}
		if n == 0 {
			return all, nil
		}
		all.Settled += n
	}
	all.More = true
	return all, nil
}
