package demo

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange/money"
)

// order is what the demo reads of an order.
type order struct {
	ID            uuid.UUID `json:"id"`
	Status        string    `json:"status"`
	StatusDetail  string    `json:"status_detail"`
	CryptoAmount  string    `json:"crypto_amount"`
	FiatAmount    string    `json:"fiat_amount"`
	WalletAddress string    `json:"wallet_address"`
	Receipt       nullable  `json:"momo_receipt_number"`
	TxHash        nullable  `json:"blockchain_txn_hash"`
}

type nullable struct {
	String string
	Valid  bool
}

// jobTime bounds the main job: a prompt, an answer, and nineteen blocks of three seconds.
const jobTime = 4 * time.Minute

// buy is how much USDT the main job buys.
const buy = "10"

// MainJob runs one purchase from the offer to the tokens in the wallet and prints each step.
func MainJob(ctx context.Context, w World) error {
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	w.Say("\nThe main job: Amina buys %s USDT with shillings from her phone.", buy)
	c, err := client.New(w.API).Login(ctx, CustomerEmail, Password)
	if err != nil {
		return err
	}
	offer, err := pickOffer(ctx, c)
	if err != nil {
		return err
	}
	began := time.Now()
	var o order
	in := map[string]any{"offer_id": offer, "crypto_amount": buy}
	if err := c.Post(ctx, "/api/v1/auth/orders", "demo-order-"+uuid.NewString(), in, &o); err != nil {
		return fmt.Errorf("opening the order: %w", err)
	}
	step := func(format string, args ...any) {
		w.Say("  %5.1f s  "+format, append([]any{time.Since(began).Seconds()}, args...)...)
	}
	step("order %s opened: %s USDT for KES %s, to %s", o.ID, o.CryptoAmount, o.FiatAmount, o.WalletAddress)
	if o, err = follow(ctx, c, o, step); err != nil {
		return err
	}
	return arrived(ctx, w, o, step)
}

// pickOffer takes the first active offer of USDT on TRON.
func pickOffer(ctx context.Context, c *client.Client) (uuid.UUID, error) {
	var offers []struct {
		ID uuid.UUID `json:"id"`
	}
	const path = "/api/v1/auth/offers?page_id=1&page_size=5&offer_type=SELL&asset=USDT&network=tron&status=active&amount=" + buy
	if err := c.Get(ctx, path, &offers); err != nil {
		return uuid.Nil, err
	}
	if len(offers) == 0 {
		return uuid.Nil, fmt.Errorf("no offer sells %s USDT on TRON any more: `make clean-data` starts over", buy)
	}
	return offers[0].ID, nil
}

// words says what each state of the order means.
var words = map[string]string{
	"pending/prompt":       "a prompt goes to the phone",
	"pending/payment":      "the prompt is on the phone; the payer types the PIN",
	"pending/outcome":      "asking the operator what became of the prompt",
	"pending/receipt":      "paid; waiting for the operator's receipt",
	"processing/signature": "the payment is proven by two witnesses; the vendor's wallet signs",
	"processing/broadcast": "signed; on its way to the network",
	"confirming/finality":  "broadcast; waiting until the block is final",
}

// follow prints every change of the order until it ends.
func follow(ctx context.Context, c *client.Client, o order, step func(string, ...any)) (order, error) {
	const pause = 250 * time.Millisecond
	last := ""
	for {
		if now := o.Status + "/" + o.StatusDetail; now != last {
			last = now
			text := words[now]
			if o.Status == "processing" && o.Receipt.Valid && o.StatusDetail == "signature" {
				text += " (receipt " + o.Receipt.String + ")"
			}
			if text != "" {
				step("%s: %s", o.Status, text)
			}
		}
		switch o.Status {
		case "completed":
			step("completed: transaction %s", o.TxHash.String)
			return o, nil
		case "cancelled", "failed":
			return o, fmt.Errorf("the order ended %s (%s)", o.Status, o.StatusDetail)
		}
		select {
		case <-ctx.Done():
			return o, fmt.Errorf("the order is still %s (%s) after %s", o.Status, o.StatusDetail, jobTime)
		case <-time.After(pause):
		}
		if err := c.Get(ctx, "/api/v1/auth/orders/"+o.ID.String(), &o); err != nil {
			return o, err
		}
	}
}

// arrived asks the chain itself, not Kivuko, whether the tokens came.
func arrived(ctx context.Context, w World, o order, step func(string, ...any)) error {
	s := &seeder{World: w}
	var movements []struct {
		Transaction string `json:"transaction"`
		To          string `json:"to"`
		Amount      string `json:"amount"`
	}
	if err := s.control(ctx, http.MethodGet, "/movements?address="+url.QueryEscape(o.WalletAddress), nil, &movements); err != nil {
		return err
	}
	for _, m := range movements {
		if m.Transaction == o.TxHash.String && m.To == o.WalletAddress {
			want, err := money.Parse(money.USDT, o.CryptoAmount)
			if err != nil {
				return err
			}
			if m.Amount != want.Units().String() {
				return fmt.Errorf("the chain says that %s units arrived, not %s", m.Amount, want.Units())
			}
			step("the chain agrees: %s USDT arrived at %s", o.CryptoAmount, o.WalletAddress)
			return nil
		}
	}
	return fmt.Errorf("the chain knows no transfer of %s to %s", o.TxHash.String, o.WalletAddress)
}
