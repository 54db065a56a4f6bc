package demo

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
)

const (
	destinationsPath = "/api/v1/auth/otc/destinations"
	withdrawalsPath  = "/api/v1/auth/otc/withdrawals"
	quotesPath       = "/api/v1/auth/pricing/quotes"
)

// takenFrom is the network whose USDT the merchant withdraws. Its blocks are final soonest.
const takenFrom = exchange.Ethereum

// deskWithdrawal has the fields of a withdrawal that the demo reads.
type deskWithdrawal struct {
	ID       uuid.UUID `json:"id"`
	Merchant uuid.UUID `json:"merchant_id"`
	Status   string    `json:"status"`
	Detail   string    `json:"status_detail"`
	Source   string    `json:"source_amount"`
	Payout   string    `json:"payout_amount"`
	Receipt  string    `json:"momo_receipt_number"`
	TxHash   string    `json:"tx_hash"`
}

// withdrawal sells crypto of the merchant's wallet to the treasury, which pays shillings to a saved phone. One officer approves it
// and another executes it.
func (d *desk) withdrawal(ctx context.Context) error {
	node, runs := d.node(takenFrom)
	if !runs {
		return fmt.Errorf("no node of %s runs", takenFrom)
	}
	j := job{Stack: d.Stack, node: node, buyer: person(VendorEmail), say: d.tells("Withdrawal")}
	if err := d.terms(ctx, j.say); err != nil {
		return err
	}
	to, err := d.destination(ctx, j)
	if err != nil {
		return err
	}
	source, err := d.oneWallet(ctx, d.merchant, url.Values{"network": {string(takenFrom)}, "owner_id": {to.Merchant.String()}, "is_default": {"true"}})
	if err != nil {
		return err
	}
	o, err := d.request(ctx, j, to.ID, source.ID)
	if err != nil {
		return err
	}
	path := withdrawalsPath + "/" + o.ID.String()
	if o, err = d.followWithdrawal(ctx, j, o, exchange.WithdrawalPending); err != nil {
		return err
	}
	if err := d.treasury.Decide(ctx, path+"/approve", "demo-approve-"+uuid.NewString(), nil, &o); err != nil {
		return fmt.Errorf("approve: %w", err)
	}
	j.say("Njeri approves it")
	if o, err = d.followWithdrawal(ctx, j, o, exchange.WithdrawalApproved); err != nil {
		return err
	}
	if err := verb(ctx, d.colleague, path, "execute", nil, &o); err != nil {
		return err
	}
	j.say("Otieno, who did not approve it, executes it")
	if o, err = d.followWithdrawal(ctx, j, o, exchange.WithdrawalCompleted); err != nil {
		return err
	}
	return d.withdrawalIsPaid(ctx, j, o)
}

// place has the fields of a destination that the demo reads.
type place struct {
	ID       uuid.UUID `json:"id"`
	Merchant uuid.UUID `json:"merchant_id"`
	Rests    time.Time `json:"rests_until"`
}

// destination returns the merchant's phone as a confirmed destination, which it saves when it has none.
func (d *desk) destination(ctx context.Context, j job) (saved place, err error) {
	var known struct {
		Places []place `json:"destinations"`
	}
	if err := d.merchant.Get(ctx, destinationsPath+"?page_id=1&page_size=1&kind=phone&status=confirmed", &known); err != nil {
		return saved, err
	}
	if len(known.Places) > 0 {
		j.say("Baraka's phone is a destination since an earlier run, and has rested")
		return known.Places[0], nil
	}
	in := map[string]any{"kind": "phone", "phone_number": j.buyer.Phone, "label": "the shop's phone"}
	if err := d.merchant.Post(ctx, destinationsPath, "demo-destination-"+uuid.NewString(), in, &saved); err != nil {
		return saved, fmt.Errorf("the destination: %w", err)
	}
	j.say("Baraka saves the phone %s as a destination", j.buyer.Phone)
	if err := d.merchant.Post(ctx, destinationsPath+"/"+saved.ID.String()+"/confirm", "demo-confirm-"+uuid.NewString(), nil, &saved); err != nil {
		return saved, fmt.Errorf("confirm the destination: %w", err)
	}
	j.say("Baraka, the master merchant, confirms it with a fresh proof of identity; it rests until %s UTC", saved.Rests.UTC().Format(time.TimeOnly))
	return saved, nil
}

// oneWallet returns the first wallet that fits a filter.
func (d *desk) oneWallet(ctx context.Context, c *client.Client, filter url.Values) (wallet, error) {
	var have struct {
		Wallets []wallet `json:"wallets"`
	}
	if err := c.Get(ctx, walletsPath+"&"+filter.Encode(), &have); err != nil {
		return wallet{}, err
	}
	if len(have.Wallets) == 0 {
		return wallet{}, fmt.Errorf("there is no wallet with %s", filter.Encode())
	}
	return have.Wallets[0], nil
}

// request locks a price and requests the withdrawal at it.
func (d *desk) request(ctx context.Context, j job, to, source uuid.UUID) (o deskWithdrawal, err error) {
	var quote struct {
		ID      uuid.UUID `json:"id"`
		Rate    string    `json:"rate"`
		Fiat    string    `json:"fiat_amount"`
		Expires time.Time `json:"expires_at"`
	}
	in := map[string]any{"purpose": "otc_withdrawal", "offer_type": "BUY", "asset": "USDT", "network": takenFrom, "amount": taken, "method": "momo"}
	if err := d.merchant.Post(ctx, quotesPath, "demo-quote-"+uuid.NewString(), in, &quote); err != nil {
		return o, fmt.Errorf("the quote: %w", err)
	}
	j.say("Baraka takes a quote: %s USDT for KES %s, at %s; it holds until %s UTC", taken, quote.Fiat, quote.Rate, quote.Expires.UTC().Format("2006-01-02 15:04"))
	in = map[string]any{"destination_id": to, "source_asset": "USDT", "source_wallet_id": source, "payout_asset": "KES", "fx_rate_quote_id": quote.ID}
	if err := d.merchant.Post(ctx, withdrawalsPath, "demo-withdrawal-"+uuid.NewString(), in, &o); err != nil {
		return o, fmt.Errorf("the withdrawal: %w", err)
	}
	j.say("Baraka requests withdrawal %s: the USDT are held in the wallet", o.ID)
	return o, nil
}

// withdrawalWords describes each state of a withdrawal.
var withdrawalWords = map[string]string{
	"requested/screening":               "its destination is checked",
	"pending_approval/approval":         "waiting for an officer",
	"pending_approval/second_approval":  "waiting for another officer",
	"pending_approval/destination_rest": "waiting until the destination has rested",
	"approved/execution":                "the destination has rested; another officer executes it",
	"executing/shillings":               "the treasury's shillings for it are held",
	"executing/collection":              "the USDT go from the merchant's wallet to the treasury; waiting until the block is final",
	"executing/payout":                  "the USDT are final, and sold",
	"executing/float":                   "waiting for float at the operator",
	"confirming/payout":                 "the shillings go to the phone",
}

// followWithdrawal prints every change of the withdrawal until it has a status.
func (d *desk) followWithdrawal(ctx context.Context, j job, o deskWithdrawal, until exchange.WithdrawalStatus) (deskWithdrawal, error) {
	last := ""
	for {
		if now := o.Status + "/" + o.Detail; now != last {
			last = now
			if text := withdrawalWords[now]; text != "" {
				j.say("%s: %s", o.Status, text)
			}
		}
		switch status := exchange.WithdrawalStatus(o.Status); {
		case status == until:
			return o, nil
		case exchange.WithdrawalMachine.Terminal(status):
			return o, fmt.Errorf("the withdrawal ended %s (%s)", o.Status, o.Detail)
		}
		if err := j.again(ctx, d.treasury, withdrawalsPath+"/"+o.ID.String(), &o); err != nil {
			return o, fmt.Errorf("the withdrawal is still %s (%s): %w", o.Status, o.Detail, err)
		}
	}
}

// withdrawalIsPaid checks with the chain, the operator and the merchant's statement that the money moved once.
func (d *desk) withdrawalIsPaid(ctx context.Context, j job, o deskWithdrawal) error {
	j.say("completed: KES %s paid out, receipt %s", o.Payout, o.Receipt)
	coffer, err := d.oneWallet(ctx, d.admin, url.Values{"network": {string(takenFrom)}, "purpose": {string(exchange.HouseTreasury)}})
	if err != nil {
		return err
	}
	if err := j.arrived(ctx, o.TxHash, coffer.Address, o.Source); err != nil {
		return err
	}
	if err := j.shillingsCame(ctx, o.Payout, o.Receipt); err != nil {
		return err
	}
	lines, err := d.onStatement(ctx, o.Merchant, o.ID)
	if err != nil {
		return err
	}
	if len(lines) != 2 || lines[0].Credit != o.Payout || lines[1].Debit != o.Payout {
		return fmt.Errorf("the merchant's statement has %+v, not KES %s once in and once out", lines, o.Payout)
	}
	j.say("Baraka's statement has it once: KES %s came for the USDT and went to the phone, the balance is KES %s", o.Payout, lines[1].Balance)
	return nil
}
