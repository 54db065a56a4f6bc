package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Limits bound what customers may request. Each order reserves a vendor's crypto while it waits, and each prompt rings
// a phone that need not be the customer's own. Each transfer costs the house the network's fee, however small its
// amount, and on Solana the rent of an account that the recipient may close and keep.
type Limits struct {
	CustomerOrders  int           // pending orders of a verified customer
	UserOrders      int           // pending orders of an unverified user
	PromptsPerPhone int           // prompts to one phone within PromptWindow, over all requesters
	PromptWindow    time.Duration // how long a prompt counts

	CustomerTransfers int // transfers per day of a verified customer
	UserTransfers     int // transfers per day of an unverified user
	MerchantTransfers int // transfers per day of a merchant with its subvendors, and of the house

	// The most that networks may take in fees per day, in their coin: for the orders and transfers of an unverified
	// user, of a verified customer, of a merchant with its subvendors (including orders against its offers), and for
	// all that the house sends.
	UserFees, CustomerFees, MerchantFees, HouseFees map[money.Asset]money.Amount

	SwapUSDCOnTron bool // whether USDC is swapped on TRON, where its issuer does not support it any more
}

// DefaultLimits are the limits of a store that is configured with none.
func DefaultLimits() Limits {
	return Limits{
		CustomerOrders: 10, UserOrders: 3, PromptsPerPhone: 12, PromptWindow: time.Hour,
		CustomerTransfers: 50, UserTransfers: 10, MerchantTransfers: 1000,
		UserFees: defaultFees("0.03", "300", "0.05"), CustomerFees: defaultFees("0.15", "1500", "0.25"),
		MerchantFees: defaultFees("5", "50000", "10"), HouseFees: defaultFees("20", "200000", "50"),
	}
}

// orDefault fills in missing limits, so that a forgotten field never means no limit.
func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	if l.CustomerOrders <= 0 {
		l.CustomerOrders = d.CustomerOrders
	}
	if l.UserOrders <= 0 {
		l.UserOrders = d.UserOrders
	}
	if l.PromptsPerPhone <= 0 {
		l.PromptsPerPhone = d.PromptsPerPhone
	}
	if l.PromptWindow <= 0 {
		l.PromptWindow = d.PromptWindow
	}
	if l.CustomerTransfers <= 0 {
		l.CustomerTransfers = d.CustomerTransfers
	}
	if l.UserTransfers <= 0 {
		l.UserTransfers = d.UserTransfers
	}
	if l.MerchantTransfers <= 0 {
		l.MerchantTransfers = d.MerchantTransfers
	}
	l.UserFees, l.CustomerFees = bounded(l.UserFees, d.UserFees), bounded(l.CustomerFees, d.CustomerFees)
	l.MerchantFees, l.HouseFees = bounded(l.MerchantFees, d.MerchantFees), bounded(l.HouseFees, d.HouseFees)
	return l
}

// orders is how many pending orders a role may have.
func (l Limits) orders(r exchange.Role) int {
	if r == exchange.RoleUser {
		return l.UserOrders
	}
	return l.CustomerOrders
}

// A customer may open more unpaid sales per day than may wait at a time, but not many more: each keeps its escrow
// address out of use while that rests, so a single account could use up the pool. A sale whose crypto went back because it was
// another amount counts as unpaid: it also costs the house the fee of what it returned.
const (
	unpaidWindow      = 24 * time.Hour
	unpaidPerWaiting  = 5  // own unpaid sales of a customer, for each that may wait
	unpaidPerMerchant = 10 // unpaid sales of a merchant, for each of a customer's that may wait
)

// unpaidSales is how many unpaid sales a role may open per day.
func (l Limits) unpaidSales(r exchange.Role, vendorOpens bool) int {
	if vendorOpens {
		return unpaidPerMerchant * l.CustomerOrders
	}
	return unpaidPerWaiting * l.orders(r)
}

// transfers is how many transfers a role may send per day.
func (l Limits) transfers(r exchange.Role) int {
	switch r {
	case exchange.RoleUser:
		return l.UserTransfers
	case exchange.RoleCustomer:
		return l.CustomerTransfers
	case exchange.RoleVendor, exchange.RoleSubvendor, exchange.RoleTreasury, exchange.RoleAdmin, exchange.RoleOTCOfficer:
	}
	return l.MerchantTransfers
}

// Limits of what one account may own. Each wallet is a key in the key store, each subvendor a login.
const (
	MaxWalletsPerOwner     = 50
	MaxSubvendorsPerVendor = 100
)

const (
	countWallets    = `SELECT count(*) FROM wallets WHERE owner_id = $1`
	countSubvendors = `SELECT count(*) FROM users WHERE vendor_id = $1`
)

// below returns CodeLimitReached when the owner already has limit objects of a query. The owner's row is locked
// before, so that two concurrent requests can't both take the last place.
func (t unitTx) below(ctx context.Context, limit int, query string, owner uuid.UUID, what string) error {
	var n int
	if err := t.Get(ctx, &n, query, owner); err != nil || n < limit {
		return err
	}
	return exchange.Errorf(exchange.CodeLimitReached, "At most %d %s are allowed.", limit, what)
}

// lockCustomer reads and locks a customer, so that its orders are opened one after the other: two concurrent requests
// can't exceed a limit that is counted after it.
const lockCustomer = readUser + ` FOR NO KEY UPDATE`

// unpaid is said by two indexes in the same words.
const unpaid = `(status IN ('pending', 'cancelled') OR status = 'failed' AND status_detail = '` + exchange.DetailMismatch + `')`

// What is counted of a customer ($1), or of the customers of a vendor ($2), since a time ($3).
const (
	waitingOrders = `(SELECT count(*) FROM orders WHERE customer_id = $1 AND status = 'pending' AND order_type IN ('ON_RAMP_BUY', 'OFF_RAMP_SELL'))`
	unpaidOwn     = `(SELECT count(*) FROM orders WHERE customer_id = $1 AND order_type = 'OFF_RAMP_SELL' AND ` + unpaid + ` AND created_at > $3)`
	unpaidAsked   = `(SELECT count(*) FROM orders WHERE vendor_id = $2 AND order_type = 'OFF_RAMP_BUY' AND ` + unpaid + ` AND created_at > $3)`
)

const countOpen = `
SELECT (SELECT is_active FROM users WHERE id = $2) AS vendor, (SELECT type = 'cold' FROM wallets WHERE id = $6) AS cold, ` + waitingOrders + ` AS orders,
    (SELECT count(*) FROM orders WHERE customer_id = $1 AND vendor_id = $2
        AND (order_type = 'ON_RAMP_SELL' AND status = 'pending' OR order_type = 'OFF_RAMP_BUY' AND status IN ('pending', 'confirming'))) AS asked,
    CASE WHEN $7 THEN ` + unpaidAsked + ` ELSE ` + unpaidOwn + ` END AS unpaid,
    (SELECT count(*) FROM payment_attempts WHERE phone = $4 AND direction = 'collection' AND status <> 'refused' AND created_at > $5) AS prompts`

// underLimits refuses an order against an inactive vendor or a cold wallet, and one beyond the pending orders of its
// customer, whose row is locked. Orders that merchants open for a customer don't count against the customer's own
// limit; each merchant may have one such order waiting. The count of prompts here only informs the customer early:
// BeginCollection enforces the limit.
func (t unitTx) underLimits(ctx context.Context, role exchange.Role, o exchange.Order) error {
	var open struct {
		Vendor, Cold                   bool
		Orders, Asked, Unpaid, Prompts int
	}
	err := t.Get(ctx, &open, countOpen, o.CustomerID, o.VendorID, t.s.now().Add(-unpaidWindow), o.PaymentPhone.Digits(), t.promptsSince(), o.WalletID, o.Kind().VendorOpens)
	if err != nil {
		return err
	}
	if !open.Vendor && o.VendorID != exchange.PlatformTreasury {
		return exchange.Errorf(exchange.CodeStateConflict, "The merchant of the offer is not active.")
	}
	if o.Kind().VendorOpens && open.Asked > 0 {
		return exchange.Errorf(exchange.CodeLimitReached, "An order that you opened for this customer already waits for its payment.")
	}
	if most := t.s.limits.orders(role); !o.Kind().VendorOpens && open.Orders >= most {
		return exchange.Errorf(exchange.CodeLimitReached, "At most %d orders may wait for their payment at a time. Pay or cancel one.", most)
	}
	if o.OffRamp() { // it is paid into a wallet, without a prompt
		if most := t.s.limits.unpaidSales(role, o.Kind().VendorOpens); open.Unpaid >= most {
			return exchange.Errorf(exchange.CodeLimitReached, "%d of your sales within %s were not paid, or not with their amount. Try again later.", open.Unpaid, unpaidWindow)
		}
		return t.withinShare(ctx, role, o)
	}
	if open.Cold {
		return exchange.Errorf(exchange.CodeStateConflict, "The offer sells from a cold wallet, which can't pay orders.")
	}
	if open.Prompts >= t.s.limits.PromptsPerPhone {
		return exchange.Errorf(exchange.CodeLimitReached, "This phone has received %d payment prompts within %s. Try again later.",
			open.Prompts, t.s.limits.PromptWindow)
	}
	return nil
}

const shareUsed = `
SELECT count(*) >= (SELECT most * user_percent / 100 FROM escrow_policy WHERE network = $1)
FROM escrow_leases l JOIN orders o ON o.id = l.order_id JOIN users u ON u.id = o.customer_id
WHERE o.network = $1 AND o.order_type = 'OFF_RAMP_SELL' AND u.role = 'user' AND (l.ended_at IS NULL OR l.rest_until > $2)`

// withinShare refuses a sale by an unverified user while such sales use their share of the escrow pool: accounts that anybody
// may open must not use it up.
func (t unitTx) withinShare(ctx context.Context, role exchange.Role, o exchange.Order) error {
	if role != exchange.RoleUser || o.Kind().VendorOpens {
		return nil
	}
	var used bool
	if err := t.Get(ctx, &used, shareUsed, o.Network, t.s.now()); err != nil || !used {
		return err
	}
	return exchange.Errorf(exchange.CodeLimitReached, "Too many sales of unverified accounts wait on %s. Verify your account, or try again later.", o.Network)
}

func (t unitTx) promptsSince() time.Time { return t.s.now().Add(-t.s.limits.PromptWindow) }

const countPrompts = `SELECT prompts_of($1, $2)`

// prompts counts the recent prompts of a phone, and locks the phone against further prompts until the transaction
// ends.
func (t unitTx) prompts(ctx context.Context, phone exchange.Phone) (int, error) {
	var n int
	return n, t.Get(ctx, &n, countPrompts, phone.Digits(), t.promptsSince())
}

// The result codes of prompts that were not sent.
const (
	PromptLimit = "prompt_limit" // the phone has reached the limit
	PromptMoved = "database"     // the database is another one than before
)

// unsent stores that a prompt is not sent.
func (t unitTx) unsent(ctx context.Context, x momoObject, created exchange.PaymentAttempt, code, text string) (exchange.PaymentAttempt, error) {
	a := created
	a.CallbackToken, a.StatusToken = "", ""
	a.Status, a.ResultCode, a.ResultText = exchange.AttemptRefused, code, text
	a.SettledAt = t.s.now()
	return t.saveAttempt(ctx, x, created, a)
}
