package sandbox

// Band is one band of a tariff: a payout above the previous band's UpTo, and at most this UpTo, costs Charge.
type Band struct {
	UpTo   int64 `json:"up_to"`
	Charge int64 `json:"charge"`
}

// DefaultTariff is the disbursement tariff published for 2026 (from the integrators' "Disbursement tariff"). Its last band
// has no end here.
func DefaultTariff() []Band {
	return []Band{
		{100, 0},
		{500, 7},
		{1_000, 13},
		{1_500, 23},
		{2_500, 33},
		{3_500, 56},
		{5_000, 57},
		{7_500, 70},
		{10_000, 90},
		{15_000, 110},
		{20_000, 130},
		{25_000, 150},
		{35_000, 175},
		{50_000, 200},
		{70_000, 250},
		{250_000, 330},
	}
}

// charge is our charge for a payout of that amount.
func (c Config) charge(amount int64) int64 {
	var last int64
	for _, b := range c.Tariff {
		if last = b.Charge; amount <= b.UpTo {
			break
		}
	}
	return last
}
