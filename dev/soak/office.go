package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
)

// The staff. One's requests need another's approval.
const (
	operatorEmail = stack.AdminEmail
	officerEmail  = demo.TreasuryEmail
	secondEmail   = demo.SecondTreasuryEmail
)

// The office's intervals.
const (
	roundEach = 2 * time.Second
	again     = 8 * time.Second // pause between two answers to the same flow
)

// office is the staff: operators who answer parked flows by docs/runbooks.md, and officers who pay at the bank and
// approve refunds. They see only the API, the operator's portal (its books), and the bank.
type office struct {
	*harness
	mu   sync.Mutex
	did  map[string]int       // number of actions, by description
	last map[string]time.Time // time of the last answer, by key
	bank map[uuid.UUID]int64  // the bank's payments by order, in shillings; what came for a deposit is below zero
	turn map[uuid.UUID]bool   // orders whose payment the bank has refused
	// passed has the swaps for which half an hour has passed.
	passed map[uuid.UUID]bool

	served []uuid.UUID // whose deposits and withdrawals are over
}

func (w *harness) openOffice() *office {
	return &office{harness: w, did: map[string]int{}, last: map[string]time.Time{}, bank: map[uuid.UUID]int64{}, turn: map[uuid.UUID]bool{}, passed: map[uuid.UUID]bool{}}
}

// work runs until its context ends. A later round repeats failed calls.
func (o *office) work(ctx context.Context) {
	for ctx.Err() == nil {
		for _, task := range []func(context.Context) error{o.parked, o.exceptions, o.approvals, o.transfers, o.payments, o.desk, o.proposals, o.breaker} {
			if ctx.Err() == nil {
				_ = task(ctx)
			}
		}
		if pause(ctx, roundEach) != nil {
			return
		}
	}
}

// asks makes one call as a member of the staff.
func (o *office) asks(ctx context.Context, email string, do func(context.Context, *client.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	c, err := o.as(ctx, email)
	if err != nil {
		return err
	}
	return do(ctx, c)
}

func (o *office) gets(ctx context.Context, email, path string, out any) error {
	return o.asks(ctx, email, func(ctx context.Context, c *client.Client) error { return c.Get(ctx, "/api/v1/auth/"+path, out) })
}

// says sends a command under a new key, like a user who got no response to the one before.
func (o *office) says(ctx context.Context, email, path, what string, in any) error {
	err := o.asks(ctx, email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/"+path, newKey(), in, nil)
	})
	if err == nil {
		o.note(what)
	}
	return err
}

// decides sends a decision about an object as the officer sees it.
func (o *office) decides(ctx context.Context, email, path, what string) error {
	err := o.asks(ctx, email, func(ctx context.Context, c *client.Client) error {
		return c.Decide(ctx, "/api/v1/auth/"+path, newKey(), nil, nil)
	})
	if err == nil {
		o.note(what)
	}
	return err
}

func (o *office) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.did[what]++
}

// due reports whether again has passed since the last answer, and stores the time of this one.
func (o *office) due(what string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.last[what]) < again {
		return false
	}
	o.last[what] = time.Now()
	return true
}

// records returns the staff's actions and the bank's books.
func (o *office) records() (did map[string]int, bank map[uuid.UUID]int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.did), maps.Clone(o.bank)
}

// exception has the fields of a payment exception that the office reads.
type exception struct {
	ID      uuid.UUID  `json:"id"`
	Kind    string     `json:"kind"`
	Status  string     `json:"status"`
	OrderID *uuid.UUID `json:"order_id"`
	Deposit *uuid.UUID `json:"otc_deposit_id"`
	Asset   string     `json:"asset"`
	Amount  string     `json:"amount"`
}

// of is what the money was for; nil if nothing is known of it.
func (x exception) of() *uuid.UUID { return cmp.Or(x.OrderID, x.Deposit) }

const listed = 100

// payments is the officers' work at the bank: they read the open payouts, pay them, and confirm them with the bank's
// reference; above the limit a second officer confirms too. The bank refuses some payments at first.
func (o *office) payments(ctx context.Context) error {
	var page struct {
		All []struct {
			OrderID uuid.UUID `json:"order_id"`
			Amount  string    `json:"amount"`
			Detail  string    `json:"status_detail"`
		} `json:"bank_payouts"`
	}
	if err := o.gets(ctx, officerEmail, fmt.Sprintf("bank-payouts?page_id=1&page_size=%d&status=processing", listed), &page); err != nil {
		return err
	}
	for _, p := range page.All {
		d, known := o.actionOf(p.OrderID)
		if !known {
			continue
		}
		path := "orders/" + p.OrderID.String()
		if d.step.Refuses && !o.turn[p.OrderID] {
			o.turn[p.OrderID] = o.refuses(ctx, path) == nil // the next round repeats it after an error
			continue
		}
		who, what := officerEmail, "paid at the bank"
		if p.Detail == exchange.WaitBankSecond {
			who, what = secondEmail, "confirmed another officer's payment at the bank"
		}
		if err := o.pays(p.OrderID, p.Amount); err != nil {
			return err
		}
		_ = o.says(ctx, who, path+"/confirm-bank-payout", what, o.bankWords(d, p.Amount)) // the next round repeats it after an error
	}
	return nil
}

// refuses makes two officers say that the bank refused a payment. What waits from an earlier round is found again.
func (o *office) refuses(ctx context.Context, path string) error {
	var waits struct {
		Changes []object `json:"changes"`
	}
	err := o.asks(ctx, officerEmail, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/"+path+"/refuse-bank-payout", newKey(), map[string]any{"note": "the account is closed"}, &waits)
	})
	for _, c := range waits.Changes {
		err = errors.Join(err, o.decides(ctx, secondEmail, "approvals/changes/"+c.ID.String()+"/confirm", "refused by the bank"))
	}
	return err
}

// bankWords is what an officer says of a payment at the bank.
func (o *office) bankWords(d action, amount string) map[string]any {
	return map[string]any{"reference": fmt.Sprintf("FT%08d", d.step.Number), "paid_on": today(), "amount": amount}
}

func today() string { return time.Now().In(time.FixedZone("EAT", 3*60*60)).Format(time.DateOnly) }

// pays makes the bank pay an order, once.
func (o *office) pays(order uuid.UUID, amount string) error {
	paid, err := shillings(amount)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, before := o.bank[order]; !before {
		o.bank[order] = paid
	}
	return nil
}

// approvals makes another officer approve refunds and sales from wallets in our custody, and operators' statements about large payments.
func (o *office) approvals(ctx context.Context) error {
	var page struct {
		Refunds []struct {
			ID     uuid.UUID `json:"object_id"`
			Digest string    `json:"digest"`
		} `json:"refunds"`
		Orders []struct {
			ID uuid.UUID `json:"object_id"`
		} `json:"orders"`
		Changes []object `json:"changes"`
	}
	if err := o.gets(ctx, secondEmail, "approvals/pending", &page); err != nil {
		return err
	}
	for _, r := range page.Refunds {
		if o.due(r.ID.String()) {
			_ = o.decides(ctx, secondEmail, "refunds/"+r.ID.String()+"/approve", "approved a refund")
		}
	}
	for _, s := range page.Orders {
		if o.due(s.ID.String()) {
			_ = o.decides(ctx, secondEmail, "orders/"+s.ID.String()+"/approve", "approved a sale from a wallet")
		}
	}
	for _, c := range page.Changes {
		if o.due(c.ID.String()) {
			_ = o.decides(ctx, secondEmail, "approvals/changes/"+c.ID.String()+"/confirm", "confirmed an operator's statement")
		}
	}
	return nil
}

// transfers makes two other officers approve transfers out of the treasury: above a sum of a day one is not enough.
func (o *office) transfers(ctx context.Context) error {
	for _, email := range []string{secondEmail, operatorEmail} {
		var page struct {
			All []struct {
				ID uuid.UUID `json:"object_id"`
			} `json:"approvals"`
		}
		if err := o.gets(ctx, email, "approvals/pending", &page); err != nil {
			return err
		}
		for _, f := range page.All {
			if o.due(email + " " + f.ID.String()) {
				_ = o.decides(ctx, email, "transfers/"+f.ID.String()+"/approve", "approved a transfer out of the treasury")
			}
		}
	}
	return nil
}

// breaker closes the breaker, as after correcting the credentials.
func (o *office) breaker(ctx context.Context) error {
	var float struct {
		Breaker struct {
			State string `json:"state"`
		} `json:"breaker"`
	}
	if err := o.gets(ctx, operatorEmail, "momo/float", &float); err != nil || float.Breaker.State != "open" {
		return err
	}
	return o.says(ctx, operatorEmail, "momo/breaker/close", "closed the breaker", map[string]any{"note": "the credentials are in order"})
}
