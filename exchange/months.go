package exchange

// Months is how the log of events and the ledger are cut into months.
type Months struct {
	Made     []string `json:"made,omitempty"`     // months whose parts were made now, as "2026-12"
	Begun    string   `json:"begun,omitempty"`    // the month that began now
	Archived []string `json:"archived,omitempty"` // months whose events left the log now
	Needed   bool     `json:"needed,omitempty"`   // the next one would leave it too, but deliveries still need its events
	Ahead    int      `json:"ahead"`              // months after this one that have their parts
	Outside  bool     `json:"outside,omitempty"`  // what is written now belongs to no month
}

// MonthsAhead is how many months after this one have their parts as long as the schedule runs.
const MonthsAhead = 4

// LeastEventMonths is how many whole months events stay in the log at least.
const LeastEventMonths = 3
