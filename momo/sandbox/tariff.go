package sandbox

// Band is a part of a tariff: payouts above the band before and up to UpTo shillings cost Charge.
type Band struct {
	UpTo   int64 `json:"up_to"`
	Charge int64 `json:"charge"`
}

// DefaultTariff is the disbursement tariff that was published for 2026 (collected in the integrators' "Disbursement
// tariff"), whose last band is taken to go on.
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

// charge is what a payout of that amount costs us.
func (c Config) charge(amount int64) int64 {
	var last int64
	for _, b := range c.Tariff {
		if last = b.Charge; amount <= b.UpTo {
			break
		}
	}
	return last
}
