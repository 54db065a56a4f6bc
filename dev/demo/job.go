package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// order has the fields of an order that the demo reads.
type order struct {
	ID            uuid.UUID `json:"id"`
	Status        string    `json:"status"`
	StatusDetail  string    `json:"status_detail"`
	CryptoAmount  string    `json:"crypto_amount"`
	FiatAmount    string    `json:"fiat_amount"`
	WalletAddress string    `json:"wallet_address"`
	Receipt       nullable  `json:"momo_receipt_number"`
	TxHash        nullable  `json:"blockchain_txn_hash"`
	Escrow        nullable  `json:"escrow_wallet_address"`
}

type nullable struct {
	String string
	Valid  bool
}

// jobTime bounds the main job: a prompt and its answer, a payout and its answer, and finality four times, which takes
// TRON nineteen blocks of three seconds and the others less.
const jobTime = 9 * time.Minute

// buy is the amount of each purchase of the main job in USDT, sent the amount of its transfer.
const (
	buy  = "10"
	sent = "2.5"
)

// buyers names the buyer on each network. Each one has a different phone.
var buyers = map[exchange.Network]string{exchange.Tron: CustomerEmail, exchange.Ethereum: SecondEmail, exchange.Solana: ThirdEmail}

// job is a purchase on one network, and what it prints.
type job struct {
	Stack
	node  Node
	buyer Person
	say   func(format string, args ...any)
}

// MainJob runs one purchase on each network in parallel, from the offer to the tokens in the wallet, and prints each
// step. The buyer on Solana, or without Solana the one on Ethereum, sends some USDT to another customer. Then each
// buyer sells some USDT back for shillings on the phone, and swaps some for USDC.
func MainJob(ctx context.Context, w Stack) error {
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	sender := exchange.Solana
	if _, runs := w.node(sender); !runs {
		sender = exchange.Ethereum
	}
	if err := w.swapTerms(ctx); err != nil {
		return err
	}
	began := time.Now()
	w.Say("\nThe main job: on each network a customer buys %s USDT with shillings from a phone, sells %s of them back, and swaps %s for USDC.", buy, sold, swapped)
	group, inner := errgroup.WithContext(ctx)
	for _, n := range w.Nodes() {
		j := job{Stack: w, node: n, buyer: person(buyers[n.Network]), say: w.lines(began, networkNames[n.Network])}
		group.Go(func() error {
			var bought order
			c, err := w.caller().Login(inner, j.buyer.Email, Password)
			if err == nil {
				bought, err = j.purchase(inner, c)
			}
			if err == nil && n.Network == sender {
				err = j.sendOn(inner, c)
			}
			if err == nil {
				err = j.sellAndSwap(inner, c, bought.WalletAddress)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", networkNames[n.Network], err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	w.Say("  %5.1f s  every chain and the operator's sandbox confirm the payments", time.Since(began).Seconds())
	return nil
}

// person finds a demo account.
func person(email string) Person {
	for _, p := range People() {
		if p.Email == email {
			return p
		}
	}
	panic("demo: there is no account " + email)
}

// sellAndSwap does both at once, out of one wallet.
func (j job) sellAndSwap(ctx context.Context, c *client.Client, address string) error {
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return j.sell(inner, c, address) })
	group.Go(func() error { return j.swap(inner, c, address) })
	return group.Wait()
}

func (j job) purchase(ctx context.Context, c *client.Client) (order, error) {
	offer, err := j.pick(ctx, c, exchange.OfferSell, buy)
	if err != nil {
		return order{}, err
	}
	var o order
	in := map[string]any{"offer_id": offer, "crypto_amount": buy}
	if err := c.Post(ctx, "/api/v1/auth/orders", "demo-order-"+uuid.NewString(), in, &o); err != nil {
		return order{}, fmt.Errorf("opening the order: %w", err)
	}
	j.say("%s opens order %s: %s USDT for KES %s, to %s", j.buyer.First, o.ID, o.CryptoAmount, o.FiatAmount, o.WalletAddress)
	if o, err = j.follow(ctx, c, o); err != nil {
		return order{}, err
	}
	if err := j.sayHowFast(ctx, c, o.ID); err != nil {
		return order{}, err
	}
	return o, j.arrived(ctx, o.TxHash.String, o.WalletAddress, o.CryptoAmount)
}

// sayHowFast prints the time from the proof of the payment, which approves the crypto's, to its broadcast.
func (j job) sayHowFast(ctx context.Context, c *client.Client, id uuid.UUID) error {
	var line struct {
		Events []struct {
			Type string    `json:"type"`
			At   time.Time `json:"at"`
		} `json:"events"`
	}
	if err := c.Get(ctx, "/api/v1/auth/orders/"+id.String()+"/timeline", &line); err != nil {
		return err
	}
	var proven time.Time
	for _, e := range line.Events {
		switch e.Type {
		case "chain_payment.approved":
			proven = e.At
		case "chain_payment.broadcast":
			j.say("from the proof of the payment to the broadcast it took %d ms", e.At.Sub(proven).Milliseconds())
			return nil
		}
	}
	return fmt.Errorf("the timeline of order %s has no broadcast", id)
}

// pick takes the first active offer of USDT on the network.
func (j job) pick(ctx context.Context, c *client.Client, kind exchange.OfferType, amount string) (uuid.UUID, error) {
	query := url.Values{
		"page_id": {"1"}, "page_size": {"5"}, "offer_type": {string(kind)}, "asset": {"USDT"}, "network": {string(j.node.Network)},
		"status": {"active"}, "amount": {amount},
	}
	var offers []account
	if err := c.Get(ctx, "/api/v1/auth/offers?"+query.Encode(), &offers); err != nil {
		return uuid.Nil, err
	}
	if len(offers) == 0 {
		return uuid.Nil, fmt.Errorf("no %s offer has %s USDT left: run `make clean-data` to start again", kind, amount)
	}
	return offers[0].ID, nil
}

// words describes each state of an order.
var words = map[string]string{
	"pending/prompt":       "a prompt goes to the phone",
	"pending/payment":      "the prompt is on the phone; the payer types the PIN",
	"pending/outcome":      "asking the operator for the prompt's outcome",
	"pending/receipt":      "paid; waiting for the operator's receipt",
	"processing/signature": "the payment is proven by two sources; the vendor's wallet signs",
	"processing/broadcast": "signed; being sent to the network",
	"confirming/finality":  "broadcast; waiting until the block is final",
}

// look is the pause between two polls.
const look = 250 * time.Millisecond

// follow prints every change of the order until it ends.
func (j job) follow(ctx context.Context, c *client.Client, o order) (order, error) {
	last := ""
	for {
		if now := o.Status + "/" + o.StatusDetail; now != last {
			last = now
			text := words[now]
			if now == "processing/signature" && o.Receipt.Valid {
				text += " (receipt " + o.Receipt.String + ")"
			}
			if text != "" {
				j.say("%s: %s", o.Status, text)
			}
		}
		switch o.Status {
		case "completed":
			j.say("completed: transaction %s", o.TxHash.String)
			return o, nil
		case "cancelled", "failed":
			return o, fmt.Errorf("the order ended %s (%s)", o.Status, o.StatusDetail)
		}
		select {
		case <-ctx.Done():
			return o, fmt.Errorf("the order is still %s (%s): %w", o.Status, o.StatusDetail, ctx.Err())
		case <-time.After(look):
		}
		if err := c.Get(ctx, "/api/v1/auth/orders/"+o.ID.String(), &o); err != nil {
			return o, err
		}
	}
}

// changes returns an address's movements from the chain's node. It waits for a node that was killed.
func (j job) changes(ctx context.Context, address string) ([]Change, error) {
	for {
		all, err := j.node.Changes(ctx, address)
		if _, unanswered := errors.AsType[*url.Error](err); !unanswered || pause(ctx) != nil {
			return all, err
		}
	}
}

// arrived checks with the chain's node, not with Kivuko, that the tokens came.
func (j job) arrived(ctx context.Context, tx, address, amount string) error {
	want, err := money.Parse(money.USDT, amount)
	if err != nil {
		return err
	}
	changes, err := j.changes(ctx, address)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if !strings.EqualFold(c.Transaction, tx) || c.Amount.Asset() != money.USDT {
			continue
		}
		if !c.Amount.Equal(want) {
			return fmt.Errorf("%s arrived on the chain, not %s", c.Amount, want)
		}
		j.say("the chain confirms it: %s USDT arrived at %s", amount, address)
		return nil
	}
	return fmt.Errorf("transaction %s has no transfer to %s on the chain", tx, address)
}

// transfer has the fields of a transfer that the demo reads.
type transfer struct {
	ID        uuid.UUID `json:"id"`
	Status    string    `json:"status"`
	Detail    string    `json:"status_detail"`
	Amount    string    `json:"amount"`
	ToAddress string    `json:"to_address"`
	TxHash    string    `json:"tx_hash"`
}

// sendOn sends some of the purchase to another customer, named by phone number.
func (j job) sendOn(ctx context.Context, c *client.Client) error {
	to := person(CustomerEmail)
	in := map[string]any{
		"network": j.node.Network, "asset": "USDT", "amount": sent, "recipient": map[string]string{"phone_number": to.Phone}, "note": "thanks",
	}
	var t transfer
	if err := c.Post(ctx, "/api/v1/auth/transfers", "demo-transfer-"+uuid.NewString(), in, &t); err != nil {
		return fmt.Errorf("sending to another customer: %w", err)
	}
	j.say("%s sends %s USDT to %s's phone number: transfer %s", j.buyer.First, sent, to.First, t.ID)
	for t.Status != "completed" {
		switch t.Status {
		case "cancelled", "rejected", "blocked", "failed":
			return fmt.Errorf("the transfer ended %s (%s)", t.Status, t.Detail)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the transfer is still %s (%s): %w", t.Status, t.Detail, ctx.Err())
		case <-time.After(look):
		}
		if err := c.Get(ctx, "/api/v1/auth/transfers/"+t.ID.String(), &t); err != nil {
			return err
		}
	}
	j.say("the transfer is completed: transaction %s", t.TxHash)
	return j.arrived(ctx, t.TxHash, t.ToAddress, t.Amount)
}
