package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Limits of swaps. Each is part of the contract.
const (
	MaxOpenSwaps       = 50               // of one owner that have not ended
	MaxSwapText        = 500              // characters of a note
	SwapReservation    = 10 * time.Minute // until the first leg is signed
	SwapPayoutPatience = 30 * time.Minute // for the second leg after the first is final, until a refund is considered
)

// Swap changes one stablecoin in a wallet of ours for another, out of the treasury wallet of the network: the first leg collects what
// the owner gives, and when it is final the second pays what the owner gets, into the same wallet.
type Swap struct {
	ID            uuid.UUID
	IntentID      uuid.UUID
	QuoteID       uuid.UUID
	RequestedBy   uuid.UUID
	OwnerID       uuid.UUID // of the wallet; zero for the house
	VendorID      uuid.UUID // the master merchant behind the owner
	WalletID      uuid.UUID
	Network       Network
	Address       string // of the wallet
	HouseWalletID uuid.UUID
	HouseAddress  string
	From          money.Amount
	To            money.Amount
	Fee           money.Amount // of the house, in the asset that is got; To is without it
	Rate          decimal.Decimal
	ProfileID     uuid.UUID    // zero for the zero profile
	Value         money.Amount // in shillings, for limits and the running sums
	Digest        string       // of what officers approve; see Intent
	Status        SwapStatus
	StatusDetail  string
	HoldID        uuid.UUID // of what the owner gives, in the wallet
	ReservationID uuid.UUID // of what the owner gets, in the treasury
	ReturnHoldID  uuid.UUID // of what was collected, in the treasury, as long as it may have to go back
	ResolutionID  uuid.UUID // the change by which two officers had it refunded, or accepted a difference
	Difference    string    // JSON of []SwapBalance; empty when chain and ledger agree or were not compared
	CreatedAt     time.Time
	ExpiresAt     time.Time // unless something is signed before
	CollectedAt   time.Time
	UpdatedAt     time.Time
	CompletedAt   time.Time // or refunded
	Version       int64
}

// Over reports whether the swap has ended.
func (s Swap) Over() bool { return SwapMachine.Terminal(s.Status) }

// Payer is whose money is collected: a merchant's is that of the merchant with its subvendors; zero for the house.
func (s Swap) Payer() uuid.UUID {
	if s.VendorID != uuid.Nil {
		return s.VendorID
	}
	return s.OwnerID
}

// PayoutDue is until when the second leg is waited for before a refund is considered; zero before the first is final.
func (s Swap) PayoutDue() time.Time {
	if s.CollectedAt.IsZero() {
		return time.Time{}
	}
	return s.CollectedAt.Add(SwapPayoutPatience)
}

// Intent is the hash of everything about a swap that an approval covers. It never changes.
func (s Swap) Intent() string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko swap v1\n%s\n%s\n%s\n%s\n%s\n%s %s\n%s %s\n%s\n", s.ID, s.QuoteID, s.RequestedBy, s.Network, s.WalletID, s.From.Asset(), s.From, s.To.Asset(), s.To, s.Rate)
	return hex.EncodeToString(h.Sum(nil))
}

// SwapLegRole is what a payment of a swap does.
type SwapLegRole string

// The roles of legs.
const (
	LegCollect SwapLegRole = "collect" // from the wallet to the treasury
	LegPayout  SwapLegRole = "payout"  // from the treasury to the wallet
	LegRefund  SwapLegRole = "refund"  // what was collected, back to the wallet
)

// SwapLegRoles lists the roles in a fixed order.
func SwapLegRoles() []SwapLegRole { return []SwapLegRole{LegCollect, LegPayout, LegRefund} }

// Purpose is the purpose of the chain payment of a leg.
func (r SwapLegRole) Purpose() ChainPurpose {
	switch r {
	case LegPayout:
		return ForSwapPayout
	case LegRefund:
		return ForSwapRefund
	case LegCollect:
	}
	return ForSwapCollect
}

// SwapLeg is a payment of a swap on the chain.
type SwapLeg struct {
	SwapID    uuid.UUID
	Role      SwapLegRole
	PaymentID uuid.UUID
	TxHash    string
	Status    ChainPaymentStatus
	Amount    money.Amount
	Block     uint64 // of its transaction, zero before
	// Confirmations are the blocks since its transaction, its own included, as long as it is not final; they are computed when it is read.
	Confirmations int
	At            time.Time
}

// SwapBalance is the balance of one asset of one wallet of a swap, by the ledger and by the chain at a final block.
type SwapBalance struct {
	WalletID uuid.UUID   `json:"wallet_id"`
	Asset    money.Asset `json:"asset"`
	Ledger   string      `json:"ledger"`
	Chain    string      `json:"chain"`
	Block    uint64      `json:"block"`
}

// SwapQuoteRequest asks for the price of a swap.
type SwapQuoteRequest struct {
	ID       uuid.UUID
	WalletID uuid.UUID
	From, To money.Asset
	Amount   money.Amount // of one of the two
}

// Check checks a request on its own. CodeInvalid lists every field at fault.
func (r SwapQuoteRequest) Check() error {
	c := checker{}
	c.rule(r.WalletID != uuid.Nil, "/wallet_id", "required", "is required")
	c.rule(r.From.Stablecoin(), "/from_asset", "enum", "must be USDT or USDC")
	c.rule(r.To.Stablecoin(), "/to_asset", "enum", "must be USDT or USDC")
	c.rule(r.From != r.To, "/to_asset", "mismatch", "must be another asset than from_asset")
	c.rule(r.Amount.Positive(), "/amount", "out_of_range", "must be above zero")
	c.rule(r.Amount.Asset() == r.From || r.Amount.Asset() == r.To, "/amount_side", "enum", "must be from or to")
	return Invalid(c.bad...)
}

// SwapRequest asks for a swap at the price of a quote, which says everything about it.
type SwapRequest struct {
	ID      uuid.UUID
	QuoteID uuid.UUID
}

// Terms are what the request asks for. Its id is the object of the intent, and who asks is its principal.
func (r SwapRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *SwapRequest) terms() []term { return []term{idTerm("quote_id", &r.QuoteID)} }

// SwapRequestOf is the request that an intent states.
func SwapRequestOf(i Intent) (SwapRequest, error) {
	r := SwapRequest{ID: i.ObjectID}
	err := readTerms(i, r.terms())
	return r, err
}

// Check checks a request on its own. CodeInvalid lists every field at fault.
func (r SwapRequest) Check() error {
	c := checker{}
	c.rule(r.QuoteID != uuid.Nil, "/quote_id", "required", "is required: it has the price")
	return Invalid(c.bad...)
}

// SwapStanding is a swap with what it needs before its first leg may be signed.
type SwapStanding struct {
	Swap
	Needed    int // officers, as the rule of all that leaves was judged last
	Approvals int // of officers that count
	PaymentID uuid.UUID
}

// SwapOutcome is how officers resolve a swap that needs a review.
type SwapOutcome string

// The outcomes. One officer has a payout tried again; the others need two.
const (
	SwapRetryPayout SwapOutcome = "retry_payout"
	SwapRefund      SwapOutcome = "refund"
	SwapAccept      SwapOutcome = "accept_difference"
)

// SwapOutcomes lists the outcomes in a fixed order.
func SwapOutcomes() []SwapOutcome { return []SwapOutcome{SwapRetryPayout, SwapRefund, SwapAccept} }

// ByOne reports whether one officer is enough for the outcome.
func (o SwapOutcome) ByOne() bool { return o == SwapRetryPayout }

// SwapMarks are the water marks of an asset in the treasury wallet of a network: what is available should lie between them.
type SwapMarks struct {
	ID        uuid.UUID
	Network   Network
	Asset     money.Asset
	Low       money.Amount
	High      money.Amount
	LowSince  time.Time // when too little was found; zero while there is enough
	ChangeID  uuid.UUID // by which two officers agreed to them
	UpdatedAt time.Time
	Version   int64
}

// Check checks marks on their own. CodeInvalid lists every field at fault.
func (m SwapMarks) Check() error {
	c := checker{}
	c.rule(m.Network.Valid(), "/network", "enum", "must be a network")
	c.rule(m.Asset.Stablecoin(), "/asset", "enum", "must be USDT or USDC")
	c.rule(m.Low.Asset() == m.Asset && m.High.Asset() == m.Asset && m.Low.Sign() >= 0, "/low", "out_of_range", "must not be below zero")
	if len(c.bad) == 0 {
		c.rule(m.Low.Cmp(m.High) <= 0, "/high", "out_of_range", "must not be below the low mark")
	}
	return Invalid(c.bad...)
}

// SwapInventory is what the treasury wallet of a network has of an asset for swaps, and for all else that leaves it.
type SwapInventory struct {
	Network   Network
	Asset     money.Asset
	WalletID  uuid.UUID
	Address   string
	Posted    money.Amount
	Held      money.Amount
	Available money.Amount
	Low       money.Amount // without an asset: no marks
	High      money.Amount
	LowSince  time.Time
	Sources   []InventorySource // those with the most first
}

// Marked reports whether officers agreed on marks.
func (i SwapInventory) Marked() bool { return i.Low.Asset() != "" }

// IsLow reports whether less is available than the low mark.
func (i SwapInventory) IsLow() bool { return i.Marked() && i.Available.Cmp(i.Low) < 0 }

// Move is what brings the wallet back between its marks: above zero, so much has to come; below zero, so much can go elsewhere.
func (i SwapInventory) Move() money.Amount {
	switch {
	case i.IsLow():
		return i.High.Sub(i.Available)
	case i.Marked() && i.Available.Cmp(i.High) > 0:
		return i.High.Sub(i.Available)
	}
	return money.Zero(i.Asset)
}
