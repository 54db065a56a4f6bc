package workflows_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// thrifty is a signer that signs nothing which the house's coins in the sending wallet do not cover, as the real one.
type thrifty struct {
	*network
	house func(context.Context, exchange.ChainPayment) (money.Amount, bool, error)
}

func (s thrifty) SignPayment(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	if a, ok, err := s.store.LiveAttempt(ctx, id); err != nil || ok {
		return a, err
	}
	p, err := s.store.ChainPayment(ctx, id)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	share, bounded, err := s.house(ctx, p)
	if err != nil {
		return exchange.ChainAttempt{}, err
	}
	if missing := money.Must(money.TRX, "30").Sub(share); bounded && missing.Positive() {
		short := chain.Errorf(chain.ReasonGas, "the house has %s", share)
		short.Missing = missing
		return exchange.ChainAttempt{}, short
	}
	return s.network.SignPayment(ctx, id)
}

// newDryHarness is a harness whose vendor has no coins for fees. The outcomes are those of the transactions that are signed, one
// after the other: the first brings gas.
func newDryHarness(t testing.TB, outcomes ...outcome) *harness {
	t.Helper()
	w := newStage(t, exchange.Tron)
	w.market = storetest.NewMarketWith(t, w.store.Store, exchange.Tron, func(owner exchange.User) exchange.Wallet { return storetest.Wallet(t, w.store.Store, owner) })
	storetest.Gas(t, w.store.Store, storetest.GasWallet(t, w.store.Store, exchange.Tron).ID, money.Must(money.TRX, "1000"))
	if _, err := w.store.StartDeposits(t.Context(), exchange.Tron, exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.start}); err != nil {
		t.Fatal(err)
	}
	w.request = exchange.OrderRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-000000000001"), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID,
		Crypto: money.Must(money.USDT, "10"), Phone: "254712345678", ExpiresAt: w.start.Add(exchange.OrderLife),
	}
	w.signs.order, w.signs.shillings = &w.request, price
	w.store.reads = true
	w.chain.script = func(n int) outcome {
		if n > len(outcomes) {
			return outcome{}
		}
		return outcomes[n-1]
	}
	w.env.RegisterActivityWithOptions(&activities.Signing{
		Signer: thrifty{w.chain, w.store.HouseGas}, Store: w.store, Recipients: &activities.Recipients{Store: w.store},
	}, replaced(""))
	w.env.RegisterActivityWithOptions(&activities.Chain{
		Store: w.store, Client: w.chain, Poll: blockTime,
		Gas: activities.GasPolicy{Floor: money.Must(money.TRX, "1"), Cap: money.Must(money.TRX, "300"), Limit: 3},
	}, replaced(""))
	return w
}

// signedTx is a transaction of the order's payment, or of a top-up of it.
type signedTx struct {
	purpose exchange.ChainPurpose
	status  exchange.ChainAttemptStatus
	code    string
}

// allSigned lists the transactions in the order in which they were signed.
func (w *harness) allSigned() (all []signedTx) {
	w.eachAttempt(func(rows *sql.Rows) error {
		var s signedTx
		err := rows.Scan(&s.purpose, &s.status, &s.code)
		all = append(all, s)
		return err
	}, `SELECT p.purpose, a.status, CASE a.status WHEN 'failed' THEN a.last_code ELSE '' END FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
		ORDER BY a.created_at, p.purpose`)
	return all
}

// signedAfter is how long after the first top-up's signature the order's payment was signed for the first time.
func (w *harness) signedAfter() (d time.Duration) {
	w.eachAttempt(func(rows *sql.Rows) error {
		var first, second time.Time
		err := rows.Scan(&first, &second)
		d = second.Sub(first)
		return err
	}, `SELECT min(a.created_at) FILTER (WHERE p.purpose = 'gas'), min(a.created_at) FILTER (WHERE p.purpose = 'order')
		FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id`)
	return d
}

func (w *harness) eachAttempt(read func(*sql.Rows) error, query string) {
	w.t.Helper()
	rows, err := storetest.Owner(w.t, w.store.Store).QueryContext(context.Background(), query)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := read(rows); err != nil {
			w.t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
}

// TestGasInABlock signs a payment as soon as a block has its top-up. Whatever becomes of that block, the crypto is paid once, and
// no officer has to decide anything.
func TestGasInABlock(t *testing.T) {
	const gas, order = exchange.ForGas, exchange.ForOrder
	const done, lapsed, failed = exchange.TxSucceeded, exchange.TxExpired, exchange.TxFailed
	for name, c := range map[string]struct {
		outcomes []outcome
		want     []signedTx
		late     bool // the first top-up is in no block
	}{
		"it stays": {want: []signedTx{{gas, done, ""}, {order, done, ""}}},
		"it is undone, and the payment fails without its gas": {outcomes: []outcome{{reorg: true}, {starved: true}}, want: []signedTx{{gas, done, ""}, {order, failed, "OUT_OF_ENERGY"}, {order, done, ""}}},
		"it is undone, and no block takes the payment":        {outcomes: []outcome{{reorg: true}, {dropped: true}}, want: []signedTx{{gas, done, ""}, {order, lapsed, ""}, {order, done, ""}}},
		"it is undone, and no other takes the top-up":         {outcomes: []outcome{{undone: true}, {dropped: true}}, want: []signedTx{{gas, lapsed, ""}, {order, lapsed, ""}, {gas, done, ""}, {order, done, ""}}},
		"no block takes the top-up":                           {late: true, outcomes: []outcome{{dropped: true}}, want: []signedTx{{gas, lapsed, ""}, {gas, done, ""}, {order, done, ""}}},
		"the fee did not suffice":                             {outcomes: []outcome{{}, {starved: true}, {starved: true}}, want: []signedTx{{gas, done, ""}, {order, failed, "OUT_OF_ENERGY"}, {order, failed, "OUT_OF_ENERGY"}, {order, done, ""}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDryHarness(t, c.outcomes...)
			w.run(t)
			delivered(t, w)
			w.sound(t)
			if got := w.allSigned(); !slices.Equal(got, c.want) {
				t.Errorf("sent %+v, want %+v", got, c.want)
			}
			overdue := func(p string) bool { return strings.HasSuffix(p, " "+string(workflows.ReasonPayoutOverdue)) } // it ends by itself
			if parked := slices.DeleteFunc(w.store.wasParked, overdue); len(parked) > 0 {
				t.Errorf("parked: %v", parked)
			}
			if d := w.signedAfter(); !c.late && d >= blockTime+finalAfter {
				t.Errorf("the payment was signed %s after its top-up, which is final after %s", d, blockTime+finalAfter)
			}
		})
	}
}

// TestGasThatNeverSuffices parks a payment whose third transaction lacked gas, with the runbook of a failed transfer.
func TestGasThatNeverSuffices(t *testing.T) {
	c := &parkedCommand{reason: workflows.ReasonPayoutFailed, verb: activities.VerbRetry}
	w := newDryHarness(t)
	w.chain.script = func(n int) outcome { return outcome{starved: n > 1 && !c.mended()} }
	c.await(t, w.env, w.signs, workflows.OnRampID(w.request.ID), func() { w.command(c.verb) })
	w.run(t)
	delivered(t, w)
	failures := 0
	for _, s := range w.allSigned() {
		if s.status == exchange.TxFailed {
			failures++
		}
	}
	if failures != 3 || !slices.ContainsFunc(w.store.wasParked, func(p string) bool { return strings.HasSuffix(p, " payout-failed") }) {
		t.Errorf("%d transactions failed; parked: %v", failures, w.store.wasParked)
	}
}
