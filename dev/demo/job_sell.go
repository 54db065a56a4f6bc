package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
)

// sold is how much USDT each buyer sells back.
const sold = "5"

// outside is the network on which the seller pays from a wallet outside of Kivuko. On the others the crypto comes
// from the seller's custodial wallet.
const outside = exchange.Ethereum

// sell sells some of the purchase back: the buyer's crypto goes to the order's address, shillings come to the phone,
// and the crypto goes from there to the vendor. The address is the one that the purchase went to.
func (j job) sell(ctx context.Context, c *client.Client, address string) error {
	offer, err := j.pick(ctx, c, exchange.OfferBuy, sold)
	if err != nil {
		return err
	}
	wallet, err := j.ownWallet(ctx, c, address)
	if err != nil {
		return err
	}
	in := map[string]any{"order_type": exchange.OffRampSell, "order_subtype": exchange.StandardOffRamp, "offer_id": offer, "crypto_amount": sold}
	if j.node.Network == outside {
		in["refund_address"] = wallet.Address
	} else {
		in["wallet_id"] = wallet.ID
	}
	var o order
	if err := c.Post(ctx, "/api/v1/auth/orders", "demo-sale-"+uuid.NewString(), in, &o); err != nil {
		return fmt.Errorf("opening the sale: %w", err)
	}
	j.say("%s sells %s USDT for KES %s: sale %s waits at %s", j.buyer.First, o.CryptoAmount, o.FiatAmount, o.ID, o.Escrow.String)
	if j.node.Network == outside {
		paid, err := money.Parse(money.USDT, sold)
		if err != nil {
			return err
		}
		if err := j.node.Fund(ctx, o.Escrow.String, paid); err != nil {
			return fmt.Errorf("paying the order's address: %w", err)
		}
		j.say("%s pays it from a wallet outside of Kivuko", j.buyer.First)
	}
	if o, err = j.followSale(ctx, c, o); err != nil {
		return err
	}
	if err := j.shillingsCame(ctx, o.FiatAmount, o.Receipt.String); err != nil {
		return err
	}
	return j.sweptOn(ctx, o.Escrow.String)
}

// wallet has the fields of a wallet that the demo reads.
type wallet struct {
	ID      uuid.UUID `json:"id"`
	Address string    `json:"address"`
}

// ownWallet returns the customer's wallet with an address.
func (j job) ownWallet(ctx context.Context, c *client.Client, address string) (wallet, error) {
	query := url.Values{"page_id": {"1"}, "page_size": {"100"}, "network": {string(j.node.Network)}}
	var have struct {
		Wallets []wallet `json:"wallets"`
	}
	if err := c.Get(ctx, "/api/v1/auth/wallets?"+query.Encode(), &have); err != nil {
		return wallet{}, err
	}
	for _, w := range have.Wallets {
		if w.Address == address {
			return w, nil
		}
	}
	return wallet{}, fmt.Errorf("%s has no wallet %s on %s", j.buyer.First, address, j.node.Network)
}

// saleWords describes each state of a sale.
var saleWords = map[string]string{
	"pending/deposit":             "waiting for the crypto at the order's address",
	"pending/other_amount":        "another amount came; waiting for the seller's word, or for the amount that was asked for",
	"pending/signature":           "the seller's wallet signs the payment to the order's address",
	"confirming/deposit_finality": "seen on the chain; waiting until the block is final",
	"processing/payout":           "the crypto is final; the shillings go to the phone",
	"processing/payout_outcome":   "the operator took the payout; asking for its outcome",
	"processing/float":            "waiting for float at the operator",
}

// followSale prints every change of the sale until it ends.
func (j job) followSale(ctx context.Context, c *client.Client, o order) (order, error) {
	last := ""
	for {
		if now := o.Status + "/" + o.StatusDetail; now != last {
			last = now
			if text := saleWords[now]; text != "" {
				j.say("sale %s: %s", o.Status, text)
			}
		}
		switch o.Status {
		case "completed":
			j.say("sale completed: KES %s paid out, receipt %s", o.FiatAmount, o.Receipt.String)
			return o, nil
		case "cancelled", "failed":
			return o, fmt.Errorf("the sale ended %s (%s)", o.Status, o.StatusDetail)
		}
		if err := j.again(ctx, c, "/api/v1/auth/orders/"+o.ID.String(), &o); err != nil {
			return o, fmt.Errorf("the sale is still %s (%s): %w", o.Status, o.StatusDetail, err)
		}
	}
}

// again reads a path after a pause.
func (j job) again(ctx context.Context, c *client.Client, path string, out any) error {
	if err := pause(ctx); err != nil {
		return err
	}
	return c.Get(ctx, path, out)
}

func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(look):
		return nil
	}
}

// shillingsCame checks with the operator's sandbox, not with Kivuko, that the person's phone got the shillings once.
func (j job) shillingsCame(ctx context.Context, amount, receipt string) error {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Momo+"/control/books", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read
	var books sandbox.Books
	if err := json.NewDecoder(resp.Body).Decode(&books); err != nil {
		return fmt.Errorf("the operator's books: %w", err)
	}
	want, err := money.Parse(money.KES, amount)
	if err != nil {
		return err
	}
	for _, e := range books.Effects {
		if e.Receipt != receipt || e.Direction != sandbox.Payout {
			continue
		}
		came := money.Must(money.KES, fmt.Sprint(e.Amount))
		if "+"+e.Phone != j.buyer.Phone || !came.Equal(want) {
			return fmt.Errorf("the operator paid %s to %s, not %s to %s", came, e.Phone, want, j.buyer.Phone)
		}
		j.say("the operator confirms it: KES %s came to %s's phone", came, j.buyer.First)
		return nil
	}
	return fmt.Errorf("the operator has no payout with the receipt %q", receipt)
}

// sweptOn waits until the chain shows that the sale's crypto has left the order's address.
func (j job) sweptOn(ctx context.Context, address string) error {
	for {
		changes, err := j.changes(ctx, address)
		if err != nil {
			return err
		}
		left, tx := money.Zero(money.USDT), ""
		for _, c := range changes {
			if c.Amount.Asset() != money.USDT {
				continue
			}
			left = left.Add(c.Amount)
			if !c.Amount.Positive() {
				tx = c.Transaction
			}
		}
		if tx != "" && left.IsZero() {
			j.say("the chain confirms it: the crypto went to the vendor in transaction %s", tx)
			return nil
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("%s USDT are still at the sale's address: %w", left, err)
		}
	}
}
