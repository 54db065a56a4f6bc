package activities

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// numberedReader is a network with nonces, with a sight for each transaction.
type numberedReader struct {
	reader
	nonces  chain.Nonces
	seen    map[string]sight
	offered []string
}

func (r *numberedReader) Network() exchange.Network { return exchange.Ethereum }

func (r *numberedReader) Nonces(context.Context, string) (chain.Nonces, error) { return r.nonces, nil }

func (r *numberedReader) Locate(_ context.Context, txID string) (chain.Location, error) {
	r.looks++
	s := r.seen[txID]
	return s.at, s.err
}

func (r *numberedReader) Broadcast(_ context.Context, raw []byte) (chain.Broadcast, error) {
	r.offered = append(r.offered, string(raw))
	return chain.Broadcast{State: chain.BroadcastAccepted}, nil
}

// sequencePair returns a transaction and its replacement, both with the nonce 5.
func sequencePair() *chainRows {
	wallet := uuid.New()
	at := func(n int, txID string, status exchange.ChainAttemptStatus) exchange.ChainAttempt {
		return exchange.ChainAttempt{
			ID: uuid.New(), N: n, TxID: txID, Raw: []byte(txID), NonceWallet: wallet, Nonce: 5, Status: status, CreatedAt: signedAt,
		}
	}
	return &chainRows{
		payment: exchange.ChainPayment{ID: uuid.New(), WalletID: wallet, FromAddress: "TFrom", ToAddress: "TTo", Amount: tenUSDT},
		attempt: at(2, "second", exchange.TxBroadcast),
		others:  []exchange.ChainAttempt{at(1, "first", exchange.TxReplaced)},
	}
}

func deliverNumbered(t *testing.T, rows *chainRows, network *numberedReader, now, bumpAfter time.Time) (Delivery, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	c := &Chain{Store: rows, Client: network, Poll: time.Second, StuckTimeout: time.Minute, Now: func() time.Time { return now }}
	env.RegisterActivity(c)
	value, err := env.ExecuteActivity(c.DeliverPayment, DeliverInput{PaymentID: rows.payment.ID, BumpAfter: bumpAfter})
	if err != nil {
		return Delivery{}, err
	}
	var d Delivery
	return d, value.Get(&d)
}

// TestDeliveryWatchesAllWithOneNumber finds whichever of two transactions the network included. Giving one up because
// the other is not there would pay twice or park a payment that was made.
func TestDeliveryWatchesAllWithOneNumber(t *testing.T) {
	absent, pending, in, final := seen(chain.StageAbsent, signedAt), seen(chain.StagePending, signedAt), seen(chain.StageIncluded, signedAt), seen(chain.StageFinal, signedAt)
	reverted := seen(chain.StageFinal, signedAt)
	reverted.at.OK, reverted.at.Transfers = false, nil
	mine := chain.Nonces{Latest: 5, Final: 5}
	used := chain.Nonces{Latest: 6, Final: 6}
	for name, c := range map[string]struct {
		first, second sight
		nonces        chain.Nonces
		recorded      []string
		end, tx       string
	}{
		"the higher bid is final":             {first: absent, second: final, nonces: used, recorded: []string{"completed"}, end: DeliveryCompleted, tx: "second"},
		"the lower bid is final":              {first: final, second: absent, nonces: used, recorded: []string{"completed"}, end: DeliveryCompleted, tx: "first"},
		"the lower bid failed":                {first: reverted, second: absent, nonces: used, recorded: []string{"failed"}, end: DeliveryFailed, tx: "first"},
		"the lower bid is in a block":         {first: in, second: absent, nonces: chain.Nonces{Latest: 6, Final: 5}, recorded: []string{"included"}},
		"both wait":                           {first: pending, second: pending, nonces: mine},
		"the node forgot both":                {first: absent, second: absent, nonces: mine, recorded: []string{"broadcast"}},
		"somebody else used the number":       {first: absent, second: absent, nonces: used, recorded: []string{"expired"}, end: DeliveryExpired, tx: "second"},
		"used, and a node still has one":      {first: pending, second: absent, nonces: used, recorded: []string{"broadcast"}},
		"used by the newest block, not final": {first: absent, second: absent, nonces: chain.Nonces{Latest: 6, Final: 5}, recorded: []string{"broadcast"}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := sequencePair()
			network := &numberedReader{nonces: c.nonces, seen: map[string]sight{"first": c.first, "second": c.second}}
			d, err := deliverNumbered(t, rows, network, signedAt.Add(time.Second), signedAt)
			if !slices.Equal(rows.recorded, c.recorded) || d.End != c.end || d.TxID != c.tx || (err == nil) != (c.end != "") {
				t.Errorf("recorded %v and ended %+v (%v); want %v, %q of %q", rows.recorded, d, err, c.recorded, c.end, c.tx)
			}
		})
	}
}

// TestOnlyTheFirstOfASequenceIsBumped makes the later ones wait, and broadcasts the first instead of them.
func TestOnlyTheFirstOfASequenceIsBumped(t *testing.T) {
	late := signedAt.Add(2 * time.Minute)
	for name, c := range map[string]struct {
		latest  uint64
		now     time.Time
		after   time.Time
		stuck   bool
		offered []string
	}{
		"its turn, for long":               {latest: 5, now: late, after: signedAt, stuck: true},
		"its turn, not for long":           {latest: 5, now: signedAt.Add(30 * time.Second), after: signedAt},
		"its turn, and the ceiling is hit": {latest: 5, now: late, after: late.Add(time.Second)},
		"for a flow that can't bump fees":  {latest: 5, now: late},
		"behind another":                   {latest: 4, now: late, after: signedAt, offered: []string{"blocker"}},
		"already counted":                  {latest: 6, now: late, after: signedAt},
	} {
		t.Run(name, func(t *testing.T) {
			rows := sequencePair()
			rows.blocker = exchange.ChainAttempt{ID: uuid.New(), Raw: []byte("blocker")}
			waiting := seen(chain.StagePending, signedAt)
			network := &numberedReader{nonces: chain.Nonces{Latest: c.latest, Final: 4}, seen: map[string]sight{"first": waiting, "second": waiting}}
			d, err := deliverNumbered(t, rows, network, c.now, c.after)
			if c.stuck != (d.End == DeliveryStuck && d.N == 2 && d.TxID == "second") || !slices.Equal(network.offered, c.offered) || len(rows.recorded) != 0 {
				t.Errorf("ended %+v (%v), offered %v, recorded %v", d, err, network.offered, rows.recorded)
			}
		})
	}
}

// TestFinalityIsWaitedForAtOnce requests one check when the missing blocks exist, not one for each block.
func TestFinalityIsWaitedForAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		block, final uint64
		latest       uint64        // with span after the final block; 0: unknown
		span         time.Duration // between the final and the newest block
		want         time.Duration
	}{
		"short slots":      {block: 130, final: 100, latest: 132, span: 12800 * time.Millisecond, want: time.Second + 29*400*time.Millisecond},
		"a slow hour":      {block: 103, final: 100, latest: 103, span: time.Hour, want: 3 * time.Second},
		"eighteen blocks":  {block: 118, final: 100, want: 18 * time.Second},
		"one block":        {block: 101, final: 100, want: time.Second},
		"due":              {block: 100, final: 100, want: time.Second},
		"beyond all bound": {block: 1 << 40, final: 100, want: maxFinalityWait},
	} {
		t.Run(name, func(t *testing.T) {
			rows := sequencePair()
			in := seen(chain.StageIncluded, signedAt)
			in.at.Block.Number, in.at.Head.Final.Number = c.block, c.final
			in.at.Head.Latest = chain.Block{Number: c.latest, Time: in.at.Head.Final.Time.Add(c.span)}
			_, err := deliverNumbered(t, rows, &numberedReader{seen: map[string]sight{"second": in}}, signedAt, signedAt)
			pending, ok := errors.AsType[*temporal.ApplicationError](err)
			if !ok || pending.Type() != TypePending || pending.NextRetryDelay() != c.want {
				t.Errorf("got %v, want a wait of %s", err, c.want)
			}
		})
	}
}

// gasSigner refuses because of missing gas.
type gasSigner struct{ err error }

func (s gasSigner) SignPayment(context.Context, uuid.UUID) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{}, s.err
}

func (s gasSigner) BumpPaymentFee(context.Context, uuid.UUID, int) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{TxID: "higher", N: 3}, s.err
}

// parking is the database of the signer's activities.
type parking struct {
	payment exchange.ChainPayment
	parked  string
	hold    exchange.SigningHold
	waited  bool
}

func (p *parking) ChainPayment(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return p.payment, nil
}

func (p *parking) ParkChainPayment(_ context.Context, _ uuid.UUID, detail string) (exchange.ChainPayment, error) {
	p.parked = detail
	return exchange.ChainPayment{}, nil
}

func (p *parking) SigningHold(context.Context, uuid.UUID) (exchange.SigningHold, error) {
	return p.hold, nil
}

func (p *parking) AwaitSignature(context.Context, uuid.UUID, exchange.SigningHold) error {
	p.waited = true
	return nil
}

func (p *parking) SetOrderDetail(context.Context, uuid.UUID, string) error { return nil }

// TestHolds checks that nothing is signed: a temporary hold waits, any other parks the payment.
func TestHolds(t *testing.T) {
	for _, c := range []struct {
		hold   exchange.SigningHold
		status exchange.ChainPaymentStatus
		want   SignedPayment
	}{
		{exchange.HoldWatch, exchange.ChainApproved, SignedPayment{Waits: "watch_behind"}},
		{exchange.HoldForeign, exchange.ChainApproved, SignedPayment{Parked: "foreign_send"}},
		{exchange.HoldSentBefore, exchange.ChainApproved, SignedPayment{Parked: "sent_before"}},
		{exchange.HoldUnexpected, exchange.ChainApproved, SignedPayment{Parked: "unexpected_send"}},
		{exchange.HoldUnexpected, exchange.ChainCompleted, SignedPayment{Completed: true}}, // an earlier run got this far
	} {
		rows := &parking{payment: exchange.ChainPayment{Status: c.status}, hold: c.hold}
		refusing := gasSigner{exchange.Errorf(exchange.CodeStateConflict, "not approved")}
		got, err := (&Signing{Signer: refusing, Store: rows}).SignPayment(t.Context(), SignInput{})
		if err != nil || got != c.want || rows.parked != c.want.Parked || rows.waited != (c.want.Waits != "") {
			t.Errorf("%s: %+v, %v; parked %q, waited %v", c.hold, got, err, rows.parked, rows.waited)
		}
	}
}

// TestHoldThatComesLate names the reason of the database's refusal, not only that it refused.
func TestHoldThatComesLate(t *testing.T) {
	rows := &parking{payment: exchange.ChainPayment{Status: exchange.ChainApproved}}
	late := lateHold{rows}
	got, err := (&Signing{Signer: late, Store: rows}).SignPayment(t.Context(), SignInput{})
	if err != nil || got.Parked != string(exchange.HoldForeign) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// lateHold is a signer whose signature the database refuses because of a hold that was placed meanwhile.
type lateHold struct{ rows *parking }

func (s lateHold) SignPayment(context.Context, uuid.UUID) (exchange.ChainAttempt, error) {
	s.rows.hold = exchange.HoldForeign
	return exchange.ChainAttempt{}, exchange.Errorf(exchange.CodeStateConflict, "refused")
}

func (s lateHold) BumpPaymentFee(context.Context, uuid.UUID, int) (exchange.ChainAttempt, error) {
	return exchange.ChainAttempt{}, nil
}

// TestMissingGas checks that missing gas is reported where a top-up can help, and parks the payment everywhere else.
func TestMissingGas(t *testing.T) {
	short := &chain.Error{Reason: chain.ReasonGas, Detail: "no gas", Missing: money.Must(money.ETH, "0.01")}
	for name, c := range map[string]struct {
		payment exchange.ChainPayment
		in      SignInput
		missing string
		parked  string
	}{
		"reported":               {payment: exchange.ChainPayment{Purpose: exchange.ForOrder, Network: exchange.Ethereum}, in: SignInput{ReportGas: true}, missing: "0.010000000000000000"},
		"an older flow":          {payment: exchange.ChainPayment{Purpose: exchange.ForOrder, Network: exchange.Ethereum}, parked: "insufficient_gas"},
		"after the limit":        {payment: exchange.ChainPayment{Purpose: exchange.ForOrder, Network: exchange.Ethereum}, in: SignInput{GasReason: GasLimit}, parked: GasLimit},
		"gas for gas":            {payment: exchange.ChainPayment{Purpose: exchange.ForGas, Network: exchange.Ethereum}, in: SignInput{ReportGas: true}, parked: "insufficient_gas"},
		"where the house signs":  {payment: exchange.ChainPayment{Purpose: exchange.ForOrder, Network: exchange.Solana}, in: SignInput{ReportGas: true}, parked: "insufficient_gas"},
		"the house's wallet":     {payment: exchange.ChainPayment{Purpose: exchange.ForOrder, Network: exchange.Solana, FeePayer: "house"}, in: SignInput{ReportGas: true}, parked: GasWalletShort},
		"of an unforeseen asset": {payment: exchange.ChainPayment{Purpose: exchange.ForOrder, Network: exchange.Tron}, in: SignInput{ReportGas: true}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := &parking{payment: c.payment}
			got, err := (&Signing{Signer: gasSigner{short}, Store: rows}).SignPayment(t.Context(), c.in)
			if err != nil || rows.parked != c.parked || got.Parked != c.parked || (got.Gas != nil) != (c.parked == "") || (got.Gas != nil && got.Gas.Missing != c.missing) {
				t.Errorf("got %+v, %v; parked %q", got, err, rows.parked)
			}
		})
	}
}

// TestBumpThatIsRefused keeps the existing transaction.
func TestBumpThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want Bump
		fail bool
	}{
		"made":            {want: Bump{TxID: "higher", N: 3}},
		"at the ceiling":  {err: chain.Errorf(chain.ReasonFeeTooHigh, "ceiling"), want: Bump{Kept: "fee_too_high"}},
		"no gas for more": {err: chain.Errorf(chain.ReasonGas, "gas"), want: Bump{Kept: "insufficient_gas"}},
		"over meanwhile":  {err: exchange.Errorf(exchange.CodeStateConflict, "over"), want: Bump{Over: true}},
		"no node":         {err: chain.Errorf(chain.ReasonUnavailable, "away"), fail: true},
	} {
		got, err := (&Signing{Signer: gasSigner{c.err}, Store: &parking{}}).BumpPaymentFee(t.Context(), BumpInput{N: 2})
		if got != c.want || (err != nil) != c.fail {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestTopUpAmounts gives the missing amount and a margin, within the policy.
func TestTopUpAmounts(t *testing.T) {
	policy := GasPolicy{Floor: money.Must(money.ETH, "0.004"), Cap: money.Must(money.ETH, "0.05"), Limit: 2}
	for name, c := range map[string]struct {
		policy   GasPolicy
		missing  string
		topUp    error
		ahead    exchange.ChainPaymentStatus // of gas that was brought ahead of need
		recorded []string
		want     string
		fail     bool
	}{
		"unknown":          {policy: policy, recorded: []string{"topped up 0.004000000000000000"}},
		"little":           {policy: policy, missing: "0.0001", recorded: []string{"topped up 0.004000000000000000"}},
		"with a margin":    {policy: policy, missing: "0.008", recorded: []string{"topped up 0.010000000000000000"}},
		"near the cap":     {policy: policy, missing: "0.049", recorded: []string{"topped up 0.050000000000000000"}},
		"above the cap":    {policy: policy, missing: "0.0500001", want: GasAboveCap},
		"no policy":        {missing: "0.1", want: "insufficient_gas"},
		"nonsense":         {policy: policy, missing: "-1", fail: true},
		"the limit":        {policy: policy, topUp: exchange.Errorf(exchange.CodeInsufficientFunds, "x"), recorded: []string{"topped up 0.004000000000000000"}, want: GasLimit},
		"no gas wallet":    {policy: policy, topUp: exchange.Errorf(exchange.CodeUnsupported, "x"), recorded: []string{"topped up 0.004000000000000000"}, want: "insufficient_gas"},
		"signed meanwhile": {policy: policy, topUp: exchange.Errorf(exchange.CodeStateConflict, "x"), recorded: []string{"topped up 0.004000000000000000"}},
		"on its way":       {policy: policy, ahead: exchange.ChainBroadcast, recorded: []string{"topped up 0.004000000000000000"}},
		"an officer's":     {policy: policy, ahead: exchange.ChainParked, recorded: []string{"topped up 0.004000000000000000"}, want: GasFailed},
		"database is away": {policy: policy, topUp: exchange.Errorf(exchange.CodeUnavailable, "x"), recorded: []string{"topped up 0.004000000000000000"}, fail: true},
	} {
		t.Run(name, func(t *testing.T) {
			rows := &chainRows{payment: exchange.ChainPayment{ID: uuid.New()}, topUp: c.topUp}
			if c.ahead != "" {
				rows.payment = exchange.ChainPayment{ID: uuid.New(), Purpose: exchange.ForGas, ObjectID: uuid.New(), Status: c.ahead}
			}
			a := &Chain{Store: rows, Client: &numberedReader{}, Gas: c.policy}
			got, err := a.ApproveTopUp(t.Context(), TopUpInput{PaymentID: uuid.New(), Missing: c.missing})
			if got.Refused != c.want || (err != nil) != c.fail || !slices.Equal(rows.recorded, c.recorded) {
				t.Errorf("got %+v, %v; %v", got, err, rows.recorded)
			}
			if waits := c.ahead == exchange.ChainBroadcast; got.Waits != waits {
				t.Errorf("it waits: %v", got.Waits)
			}
			if approved := err == nil && c.topUp == nil && c.want == "" && c.ahead == ""; (got.PaymentID != uuid.Nil) != approved {
				t.Errorf("the payment is %s", got.PaymentID)
			}
		})
	}
}
