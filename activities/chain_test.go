package activities

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// chainRows is the database of these tests: one payment with one transaction, and what was recorded of it.
type chainRows struct {
	payment  exchange.ChainPayment
	attempt  exchange.ChainAttempt
	others   []exchange.ChainAttempt
	blocker  exchange.ChainAttempt
	topUp    error
	recorded []string
	frozen   bool
	sighting exchange.TxSighting
}

func (r *chainRows) Sighting(context.Context, exchange.Network, []string) (exchange.TxSighting, error) {
	return r.sighting, nil
}

func (r *chainRows) Frozen(context.Context) (bool, error) { return r.frozen, nil }

func (r *chainRows) note(what string) { r.recorded = append(r.recorded, what) }

func (r *chainRows) ChainPayment(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return r.payment, nil
}

func (r *chainRows) LiveAttempts(context.Context, uuid.UUID) ([]exchange.ChainAttempt, error) {
	var live []exchange.ChainAttempt
	for _, a := range append([]exchange.ChainAttempt{r.attempt}, r.others...) {
		if a.Alive() {
			live = append(live, a)
		}
	}
	return live, nil
}

func (r *chainRows) AttemptAt(context.Context, uuid.UUID, uint64) (exchange.ChainAttempt, bool, error) {
	return r.blocker, r.blocker.ID != uuid.Nil, nil
}

func (r *chainRows) ApproveTopUp(_ context.Context, _ uuid.UUID, amount money.Amount, _ int) (exchange.ChainPayment, error) {
	r.note("topped up " + amount.String())
	return r.payment, r.topUp
}

func (r *chainRows) RecordBroadcast(_ context.Context, _ uuid.UUID, _ string, accepted bool) (exchange.ChainPayment, error) {
	if accepted {
		r.note("broadcast")
	} else {
		r.note("offered")
	}
	return r.payment, nil
}

func (r *chainRows) RecordIncluded(context.Context, uuid.UUID, uint64, string) (exchange.ChainPayment, error) {
	r.note("included")
	return exchange.ChainPayment{}, nil
}

func (r *chainRows) RecordVanished(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	r.note("vanished")
	return exchange.ChainPayment{}, nil
}

func (r *chainRows) RecordExpired(context.Context, uuid.UUID, string) (exchange.ChainPayment, error) {
	r.note("expired")
	return exchange.ChainPayment{}, nil
}

func (r *chainRows) RecordFinal(_ context.Context, _ uuid.UUID, ok bool, _ uint64, _ string, _ money.Amount, _ string) (exchange.ChainPayment, error) {
	if ok {
		r.note("completed")
	} else {
		r.note("failed")
	}
	return r.payment, nil
}

func (r *chainRows) RecordOutOfGas(_ context.Context, _ uuid.UUID, _ uint64, _ string, _ money.Amount, _ string, _ int) (exchange.ChainPayment, error) {
	r.note("out of gas")
	return r.payment, nil
}

func (r *chainRows) RecordGasArrival(_ context.Context, _ uuid.UUID, block string) error {
	r.note("arrived in " + block)
	return nil
}

// sight is what one check of the network shows.
type sight struct {
	at  chain.Location
	err error
}

// reader returns one sight after the other; the last one repeats.
type reader struct {
	sights []sight
	looks  int
	offer  error
}

func (r *reader) Network() exchange.Network { return exchange.Tron }

func (r *reader) Broadcast(context.Context, []byte) (chain.Broadcast, error) {
	return chain.Broadcast{State: chain.BroadcastAccepted, Code: "SUCCESS"}, r.offer
}

func (r *reader) Locate(context.Context, string) (chain.Location, error) {
	s := r.sights[min(r.looks, len(r.sights)-1)]
	r.looks++
	return s.at, s.err
}

var (
	signedAt = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	lifeEnds = signedAt.Add(time.Minute)
	tenUSDT  = money.Must(money.USDT, "10")
)

// seen returns a sight of the transaction at a stage, with the final chain at a time.
func seen(stage chain.Stage, final time.Time) sight {
	l := chain.Location{Stage: stage, Head: chain.Head{Final: chain.Block{Number: 9, ID: "final", Time: final}}}
	if stage == chain.StageIncluded || stage == chain.StageFinal {
		l.Block, l.OK, l.Code = chain.Block{Number: 7, ID: "seven"}, true, "SUCCESS"
		l.Transfers = []chain.Movement{{TxID: "tx", From: "TFrom", To: "TTo", Amount: tenUSDT}}
	}
	return sight{at: l}
}

// TestDeliveryLooksTwiceBeforeItGivesUp delivers a transaction that seems to be gone. The payment may be signed again only
// after a second check: nodes differ, and a transaction that one of them does not know may be in a block of another.
func TestDeliveryLooksTwiceBeforeItGivesUp(t *testing.T) {
	alive, dead := lifeEnds.Add(-time.Second), lifeEnds.Add(time.Second)
	away := sight{err: chain.Errorf(chain.ReasonUnavailable, "no node")}
	for name, c := range map[string]struct {
		status   exchange.ChainAttemptStatus
		sights   []sight
		looks    int
		recorded []string
		end      string
	}{
		"absent twice":                 {sights: []sight{seen(chain.StageAbsent, dead)}, looks: 2, recorded: []string{"expired"}, end: DeliveryExpired},
		"absent, then pending":         {sights: []sight{seen(chain.StageAbsent, dead), seen(chain.StagePending, dead)}, looks: 2},
		"absent, then in a block":      {sights: []sight{seen(chain.StageAbsent, dead), seen(chain.StageIncluded, dead)}, looks: 2, recorded: []string{"included"}},
		"absent, then final":           {sights: []sight{seen(chain.StageAbsent, dead), seen(chain.StageFinal, dead)}, looks: 2, recorded: []string{"completed"}, end: DeliveryCompleted},
		"absent, then no node answers": {sights: []sight{seen(chain.StageAbsent, dead), away}, looks: 2},
		"absent, then on a node that is behind": {
			sights: []sight{seen(chain.StageAbsent, dead), seen(chain.StageAbsent, alive)}, looks: 2, recorded: []string{"broadcast"},
		},
		"absent within its life": {sights: []sight{seen(chain.StageAbsent, alive)}, looks: 1, recorded: []string{"broadcast"}},
		"out of its block and absent twice": {
			status: exchange.TxIncluded, sights: []sight{seen(chain.StageAbsent, dead)}, looks: 2,
			recorded: []string{"expired"}, end: DeliveryExpired,
		},
		"out of its block within its life": {
			status: exchange.TxIncluded, sights: []sight{seen(chain.StageAbsent, alive)}, looks: 1, recorded: []string{"vanished", "broadcast"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			status := exchange.TxBroadcast
			if c.status != "" {
				status = c.status
			}
			rows := &chainRows{
				payment: exchange.ChainPayment{ID: uuid.New(), FromAddress: "TFrom", ToAddress: "TTo", Amount: tenUSDT},
				attempt: exchange.ChainAttempt{ID: uuid.New(), TxID: "tx", Raw: []byte("tx"), ExpiresAt: lifeEnds, Status: status},
			}
			network := &reader{sights: c.sights}
			d, err := deliver(t, rows, network)
			if network.looks != c.looks || !slices.Equal(rows.recorded, c.recorded) {
				t.Errorf("checked %d times and recorded %v, want %d and %v", network.looks, rows.recorded, c.looks, c.recorded)
			}
			if (err == nil) != (c.end != "") || d.End != c.end {
				t.Errorf("ended %q (%v), want %q", d.End, err, c.end)
			}
		})
	}
}

func deliver(t *testing.T, rows *chainRows, network *reader) (Delivery, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	c := &Chain{Store: rows, Client: network, Poll: time.Second}
	env.RegisterActivity(c)
	value, err := env.ExecuteActivity(c.DeliverPayment, DeliverInput{PaymentID: rows.payment.ID})
	if err != nil {
		return Delivery{}, err
	}
	var d Delivery
	if err := value.Get(&d); err != nil {
		t.Fatal(err)
	}
	return d, nil
}

// TestOfferThatIsNotAnswered interrupts a broadcast. The bytes may have arrived, so the delivery looks them up and
// neither fails nor signs again.
func TestOfferThatIsNotAnswered(t *testing.T) {
	rows := &chainRows{
		payment: exchange.ChainPayment{ID: uuid.New(), FromAddress: "TFrom", ToAddress: "TTo", Amount: tenUSDT},
		attempt: exchange.ChainAttempt{ID: uuid.New(), TxID: "tx", Raw: []byte("tx"), ExpiresAt: lifeEnds, Status: exchange.TxSigned},
	}
	network := &reader{sights: []sight{seen(chain.StageIncluded, signedAt)}, offer: chain.Errorf(chain.ReasonUnavailable, "no answer")}
	if _, err := deliver(t, rows, network); err == nil {
		t.Error("a transaction that is not final has ended")
	}
	if want := []string{"offered", "included"}; !slices.Equal(rows.recorded, want) {
		t.Errorf("recorded %v, want %v", rows.recorded, want)
	}
}

// In a freeze, bytes that no node has seen are not sent, but the delivery still finds out what became of them.
func TestFreezeHoldsSignedBytesBack(t *testing.T) {
	for name, c := range map[string]struct {
		at       chain.Stage
		recorded []string
	}{
		"unseen":         {at: chain.StageAbsent},
		"sent after all": {at: chain.StageIncluded, recorded: []string{"included"}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := &chainRows{
				frozen:  true,
				payment: exchange.ChainPayment{ID: uuid.New(), FromAddress: "TFrom", ToAddress: "TTo", Amount: tenUSDT},
				attempt: exchange.ChainAttempt{ID: uuid.New(), TxID: "tx", Raw: []byte("tx"), ExpiresAt: lifeEnds, Status: exchange.TxSigned},
			}
			if _, err := deliver(t, rows, &reader{sights: []sight{seen(c.at, signedAt)}}); err == nil {
				t.Error("a transaction that was not sent has ended")
			}
			if !slices.Equal(rows.recorded, c.recorded) {
				t.Errorf("recorded %v, want %v", rows.recorded, c.recorded)
			}
		})
	}
}
