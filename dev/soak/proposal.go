package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Payments from wallets of several owners: a merchant proposes, officers approve, two owners sign, one with a tool of its own, and an officer
// executes. Some are cancelled or rejected, and some are sent by another tool while the officer executes them.

const proposalsPath = "/api/v1/auth/multisig/proposals"

// inCommon is what the wallets of several owners have in hand, and on TRON for fees.
const (
	inCommon      = "3000"
	feesInCommon  = "30000"
	toolsOwnCoins = "1"
)

// club is a wallet of several owners, with two owners who hold their keys themselves. The third one is an officer, whose key the key store has, but
// on TRON.
type club struct {
	demo.Shared
	baraka, safe demo.Owner
}

// openClubs opens a wallet of several owners on each network, with money in it.
func (w *harness) openClubs(ctx context.Context) error {
	if err := w.seed.Share(ctx); err != nil {
		return err
	}
	for _, n := range w.seed.Sharing() {
		c, err := w.clubOn(ctx, n.Network)
		if err != nil {
			return err
		}
		wallet, err := w.store.Wallet(ctx, store.Everything(), c.ID)
		if err != nil {
			return err
		}
		brings := []money.Amount{money.Must(money.USDT, inCommon)}
		if n.Network == exchange.Tron {
			brings = append(brings, money.Must(money.TRX, feesInCommon))
		}
		for _, m := range brings {
			if err := n.Fund(ctx, wallet.Address, m); err != nil {
				return err
			}
		}
		for _, m := range brings {
			if err := demo.Booked(ctx, w.store, wallet, m); err != nil {
				return err
			}
		}
		w.clubs[n.Network] = c
	}
	return nil
}

func (w *harness) clubOn(ctx context.Context, n exchange.Network) (c club, err error) {
	if c.baraka, err = demo.OutsideOwner(n, demo.BarakasKey); err != nil {
		return c, err
	}
	if c.safe, err = demo.OutsideOwner(n, demo.SafeKey); err != nil {
		return c, err
	}
	err = w.insist(ctx, demo.VendorEmail, func(ctx context.Context, as *client.Client) error {
		var found bool
		var err error
		if c.Shared, found, err = demo.SharedWallet(ctx, as, n); err == nil && !found {
			err = fmt.Errorf("there is no wallet of several owners on %s", n)
		}
		return err
	})
	return c, err
}

// proposes has the merchant propose a payment to an address that no other action uses. One that is to be cancelled before owners sign is
// cancelled at once.
func (w *harness) proposes(ctx context.Context, d *action) (err error) {
	d.email = demo.VendorEmail
	if _, has := w.clubs[d.node.Network]; !has { // Ethereum without the contracts of Safe
		d.node = w.seed.Sharing()[0]
	}
	if d.address, err = demo.Stranger(d.node.Network); err != nil {
		return err
	}
	in := map[string]any{"wallet_id": w.clubs[d.node.Network].ID, "asset": money.USDT, "amount": d.amount.String(), "destination": d.address}
	if err := w.opens(ctx, d, "multisig/proposals", in); err != nil {
		return err
	}
	if d.step.Odd == oddCancel && !d.endsSigned() {
		_ = w.cancel(ctx, *d) // the flow decides whether it came in time
	}
	return nil
}

// endsSigned reports whether the action is cancelled after an owner has signed: on Solana, where the gas wallet can make at once impossible
// what was signed. On TRON that takes a day, and on Ethereum another payment.
func (d action) endsSigned() bool {
	return d.step.Odd == oddCancel && d.node.Network == exchange.Solana
}

// elsewhere reports whether another tool sends what the owners signed. On Solana the house's gas wallet signs too, so that none can.
func (d action) elsewhere() bool { return d.step.Inside && d.node.Network != exchange.Solana }

// signable is a payload, and who signed it.
type signable struct {
	demo.Payload
	Signatures []struct {
		Owner string `json:"owner"`
	} `json:"signatures"`
}

func (y signable) signedBy(owner string) bool {
	for _, g := range y.Signatures {
		if g.Owner == owner {
			return true
		}
	}
	return false
}

// proposals has officers and owners take the next step of each proposal. A Safe's are executed in the order of their numbers.
func (o *office) proposals(ctx context.Context) error {
	type waitsFor struct {
		action
		now object
	}
	var all []waitsFor
	for _, d := range o.ofKind(Proposal) {
		if slices.Contains(o.served, d.id) {
			continue
		}
		var now object
		if err := o.gets(ctx, officerEmail, strings.TrimPrefix(d.path(), "/api/v1/auth/"), &now); err != nil {
			return err
		}
		if now.over() {
			o.served = append(o.served, d.id)
			continue
		}
		all = append(all, waitsFor{d, now})
	}
	slices.SortStableFunc(all, func(a, b waitsFor) int { return cmp.Compare(a.now.number(), b.now.number()) })
	first := true // of those with numbers: only a Safe's have them
	for _, p := range all {
		numbered := p.now.Sequence != nil
		inLine := numbered && !first
		first = first && !numbered
		if p.now.Ending != "" || !o.due(p.id.String()+p.now.Status+p.now.Detail) {
			continue
		}
		if err := o.carries(ctx, p.action, p.now, inLine); err != nil {
			o.refused(err)
		}
	}
	return nil
}

// number is the place of a proposal in its Safe's line; zero without one.
func (o object) number() uint64 {
	if o.Sequence == nil {
		return 0
	}
	return *o.Sequence
}

// ofKind returns the actions of a kind.
func (o *office) ofKind(k Kind) (all []action) {
	o.harness.mu.Lock()
	defer o.harness.mu.Unlock()
	for _, d := range o.actions {
		if d.step.Kind == k {
			all = append(all, d)
		}
	}
	return all
}

// carries takes the next step of a proposal.
func (o *office) carries(ctx context.Context, d action, now object, inLine bool) error {
	path := strings.TrimPrefix(d.path(), "/api/v1/auth/")
	switch exchange.ProposalStatus(now.Status) {
	case exchange.ProposalApproving:
		if now.PaymentID != nil {
			return nil // what the owners sign is being prepared
		}
		if d.step.Refuses {
			return o.asks(ctx, operatorEmail, func(ctx context.Context, c *client.Client) error {
				return c.Decide(ctx, d.path()+"/reject", newKey(), map[string]any{"note": "the invoice is wrong"}, nil)
			})
		}
		for _, email := range []string{officerEmail, secondEmail, operatorEmail} {
			_ = o.decides(ctx, email, path+"/approve", "approved a proposal") // one may have approved it before
		}
	case exchange.ProposalSigning:
		return o.owners(ctx, d)
	case exchange.ProposalReady:
		if inLine {
			return nil
		}
		if d.elsewhere() {
			if err := o.sendsElsewhere(ctx, d); err != nil {
				o.note("another tool could not send a proposal: " + err.Error())
			}
		}
		return o.says(ctx, secondEmail, path+"/execute", "executed a proposal", map[string]any{})
	default: // nothing is for people
	}
	return nil
}

// owners have two owners sign: those who hold their keys with tools of their own, and the officer with the key store.
func (o *office) owners(ctx context.Context, d action) error {
	c := o.clubs[d.node.Network]
	y, err := o.payload(ctx, d)
	if err != nil {
		return err
	}
	if !y.signedBy(c.baraka.Address) {
		if err := o.brings(ctx, d, c.baraka, y); err != nil {
			return err
		}
	}
	if d.endsSigned() {
		return o.asks(ctx, d.email, func(ctx context.Context, as *client.Client) error {
			return as.Post(ctx, d.path()+"/cancel", newKey(), map[string]any{}, nil)
		})
	}
	kept := c.KeptKey()
	if kept == "" || d.elsewhere() { // another tool gets no signature of a key that is ours
		if y.signedBy(c.safe.Address) {
			return nil
		}
		return o.brings(ctx, d, c.safe, y)
	}
	if y.signedBy(kept) {
		return nil
	}
	return o.says(ctx, officerEmail, strings.TrimPrefix(d.path(), "/api/v1/auth/")+"/confirm", "signed with an officer's key",
		map[string]any{"payload_id": y.ID, "digest": y.Confirmation})
}

// payload is what the two owners sign who sign this proposal.
func (o *office) payload(ctx context.Context, d action) (signable, error) {
	var all struct {
		Payloads []signable `json:"payloads"`
	}
	c := o.clubs[d.node.Network]
	if err := o.gets(ctx, officerEmail, strings.TrimPrefix(d.path(), "/api/v1/auth/")+"/payload", &all); err != nil {
		return signable{}, err
	}
	for _, y := range all.Payloads {
		if y.Status == string(exchange.PayloadOpen) && (len(y.Signers) == 0 || slices.Contains(y.Signers, c.baraka.Address) && slices.Contains(y.Signers, c.KeptKey())) {
			return y, nil
		}
	}
	return signable{}, errors.New("there is nothing to sign yet")
}

func (o *office) agreement(d action) demo.Agreement {
	return demo.Agreement{From: o.clubs[d.node.Network].Address, To: d.address, Amount: d.amount}
}

// brings has an owner's own tool sign, and the merchant send the signature.
func (o *office) brings(ctx context.Context, d action, by demo.Owner, y signable) error {
	signature, err := by.Sign(y.Payload, o.agreement(d))
	if err != nil {
		return err
	}
	return o.says(ctx, d.email, strings.TrimPrefix(d.path(), "/api/v1/auth/")+"/confirm", "signed with an owner's own tool",
		map[string]any{"payload_id": y.ID, "signature": signature})
}

// sendsElsewhere has another tool send what two owners sign, for which it needs nothing of ours.
func (o *office) sendsElsewhere(ctx context.Context, d action) error {
	y, err := o.payload(ctx, d)
	if err != nil {
		return err
	}
	c := o.clubs[d.node.Network]
	var signatures []string
	for _, by := range []demo.Owner{c.baraka, c.safe} {
		one, err := by.Sign(y.Payload, o.agreement(d))
		if err != nil {
			return err
		}
		signatures = append(signatures, one)
	}
	limit, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if d.node.Network == exchange.Tron {
		err = o.sendsOnTron(limit, y.Payload, signatures)
	} else {
		err = o.sendsOnEthereum(limit, d, y.Payload, c, signatures)
	}
	if err == nil {
		o.note("another tool sent a proposal on " + string(d.node.Network))
	}
	return err
}

// paid is what a transaction brought to the recipient of a proposal.
type paid struct {
	tx     string
	amount money.Amount
}

// paidFor reads from the chain what came to the recipient of a proposal.
func (w *harness) paidFor(ctx context.Context, d action) (all []paid, err error) {
	changes, err := d.node.Changes(ctx, d.address)
	for _, c := range changes {
		if c.Amount.Asset().Stablecoin() {
			all = append(all, paid{c.Transaction, c.Amount})
		}
	}
	return all, err
}

// judgeProposal checks that a proposal was executed once, by the transaction that it names, or ended and moved nothing: never both. Only one that
// people ended may end otherwise than executed.
func (e evidence) judgeProposal(say sayer) {
	for _, p := range e.paid {
		if !p.amount.Equal(e.crypto) {
			say("%s came, not %s", p.amount, e.crypto)
		}
		if !strings.EqualFold(p.tx, e.tx) {
			say("it was paid by %s and names %q", p.tx, e.tx)
		}
	}
	executed := e.status == string(exchange.ProposalExecuted)
	step := e.action.step
	ends := map[string]bool{
		string(exchange.ProposalExecuted): true, string(exchange.ProposalCancelled): step.Odd == oddCancel, string(exchange.ProposalRejected): step.Refuses,
	}
	switch n := len(e.paid); {
	case n > 1:
		say("it was paid %d times", n)
	case executed && n == 0:
		say("it is executed, and nothing came")
	case !executed && n > 0:
		say("it is %s, and was paid", e.status)
	case !ends[e.status]:
		say("it is %s, which nothing in the plan explains", e.status)
	}
	if e.held != 0 {
		say("%d of its holds are left", e.held)
	}
}

// heldFor counts what is still held for a proposal.
func (w *harness) heldFor(ctx context.Context, id uuid.UUID) (n int, err error) {
	err = w.db.QueryRowContext(ctx, `SELECT count(*) FROM holds WHERE object_id = $1 AND status = 'held'`, id).Scan(&n)
	return n, err
}
