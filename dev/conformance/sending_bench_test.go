package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// The load of the benchmark. Each sender pays several times before the next block, as in a burst.
const (
	benchSenders = 8
	benchEach    = 10 // payments of one sender in a round
	benchRounds  = 5
	benchAmount  = "5"
)

// benchNode is a node with its driver that gives coins without waiting for a block.
type benchNode interface {
	chaintest.Harness
	give(t testing.TB, address string, amount money.Amount)
}

// BenchmarkSending measures transfers per second up to broadcast: signed by the real signer from an approved row,
// stored, broadcast by the real driver, and the response recorded. The baseline is the same driver with a key in
// memory and no database. Both send to the same kind of node in turns, from one wallet and from several in parallel;
// blocks are made between the turns. At the end the watch reads all deposits, compared with the driver alone reading
// the same blocks.
func BenchmarkSending(b *testing.B) {
	for _, n := range []struct {
		network exchange.Network
		gas     string // of each sender, in the native coin
		open    func(*testing.B) benchNode
	}{
		{exchange.Tron, "20000", func(b *testing.B) benchNode { return startTron(b, money.USDT) }},
		{exchange.Ethereum, "50", func(b *testing.B) benchNode { return startEthereum(b) }},
		{exchange.Solana, "5", func(b *testing.B) benchNode { return startSolana(b, solanaPrograms(b)) }},
	} {
		b.Run(string(n.network), func(b *testing.B) {
			s := newSending(b, n.open(b), money.Must(n.network.NativeCoin(), n.gas))
			for b.Loop() {
				s.measure(b)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// sending is the product's side of one network.
type sending struct {
	benchNode
	office
	markets []storetest.Market
	bare    []*bareSender
}

// bareSender sends with a driver alone. It counts its nonces in memory.
type bareSender struct {
	client  chain.Client
	account chaintest.Account
	payer   chaintest.Account // of fees, on a sponsored network
	to      string
	next    uint64
}

func newSending(b *testing.B, n benchNode, gas money.Amount) *sending {
	b.Helper()
	s := &sending{benchNode: n, office: openOffice(b, n.Client())}
	var payer chaintest.Account
	if n.Client().Traits().Sponsored {
		house := s.wallet(b, exchange.WalletRequest{OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas})
		payer = n.NewAccount(b)
		for _, address := range []string{house.Address, payer.Address} {
			n.give(b, address, gas)
		}
	}
	for range benchSenders {
		m := storetest.NewMarketWith(b, s.db, n.Client().Network(), func(owner exchange.User) exchange.Wallet { return s.ownedWallet(b, owner) })
		bare := &bareSender{client: n.Client(), account: n.NewAccount(b), payer: payer, to: m.CustomerWallet.Address}
		s.markets, s.bare = append(s.markets, m), append(s.bare, bare)
		for _, address := range []string{m.VendorWallet.Address, bare.account.Address} {
			n.give(b, address, gas)
			n.give(b, address, money.Must(money.USDT, "1500"))
		}
		if payer.Address == "" {
			s.forFees(b, m.VendorWallet, gas)
		}
	}
	s.Mine(b, 1)
	s.Finalise(b)
	head, err := n.Client().Head(b.Context())
	if err == nil {
		_, err = s.db.StartDeposits(b.Context(), n.Client().Network(), exchange.ChainBlock{
			Number: head.Final.Number, ID: head.Final.ID, Parent: head.Final.Parent, Time: head.Final.Time,
		})
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// forFees books coins that arrived before the watch as the house's: fees are paid from those only.
func (s *sending) forFees(b *testing.B, w exchange.Wallet, gas money.Amount) {
	b.Helper()
	err := s.db.Post(b.Context(), exchange.Posting{Entries: []exchange.Entry{{
		Key: "bench:fees:" + w.ID.String(), Kind: "bench.fees", ObjectType: "wallet", ObjectID: w.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.Owned(exchange.AccCustody, w.ID, gas.Asset()), gas),
			exchange.Credit(exchange.House(exchange.AccCapital, gas.Asset()), gas),
		},
	}}})
	if err != nil {
		b.Fatal(err)
	}
}

// measure alternates between the product and the baseline.
func (s *sending) measure(b *testing.B) {
	b.Helper()
	rounds := benchRounds
	if testing.Short() {
		rounds = 1
	}
	for _, n := range []int{1, benchSenders} { // the first payment to a recipient costs more than the next
		s.round(b, n, true)
		s.round(b, n, false)
	}
	arrived := 0
	for _, senders := range []int{1, benchSenders} {
		var ours, bare, ratio []float64
		for r := range rounds {
			var speed [2]float64
			for turn := range speed { // the order alternates, because the first side runs on a machine in another state
				side := (turn + r) % len(speed)
				speed[side] = s.round(b, senders, side == 0)
			}
			ours, bare, ratio = append(ours, speed[0]), append(bare, speed[1]), append(ratio, speed[0]/speed[1])
		}
		b.ReportMetric(middle(ratio), fmt.Sprintf("x_bare_%d", senders))
		b.ReportMetric(middle(ours), fmt.Sprintf("sent/s_%d", senders))
		b.ReportMetric(middle(bare), fmt.Sprintf("bare/s_%d", senders))
		arrived += (rounds + 1) * senders * benchEach
	}
	s.watch(b, arrived)
}

// round lets a number of senders pay in parallel, each one payment after the other, and returns the payments per
// second. Then it makes a block.
func (s *sending) round(b *testing.B, senders int, ours bool) float64 {
	b.Helper()
	payments := make([][]exchange.ChainPayment, senders)
	if ours {
		var group sync.WaitGroup
		for i := range payments {
			group.Go(func() {
				for range benchEach {
					payments[i] = append(payments[i], s.payment(b, s.markets[i], benchAmount))
				}
			})
		}
		group.Wait()
	}
	began := time.Now()
	var group sync.WaitGroup
	for i := range senders {
		group.Go(func() {
			for n := range benchEach {
				var err error
				if ours {
					err = s.send(b.Context(), payments[i][n])
				} else {
					err = s.bare[i].send(b.Context())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(began)
	if b.Failed() {
		b.FailNow()
	}
	s.Mine(b, 1)
	return float64(senders*benchEach) / took.Seconds()
}

// send signs one payment and runs the first step of its delivery.
func (s *sending) send(ctx context.Context, p exchange.ChainPayment) error {
	a, err := s.signer.SignPayment(ctx, p.ID)
	if err != nil {
		return err
	}
	answer, err := offer(ctx, s.client, a.Raw)
	if err != nil {
		return err
	}
	_, err = s.db.RecordBroadcast(ctx, a.ID, answer.Code, true)
	return err
}

// send pays without a database.
func (s *bareSender) send(ctx context.Context) error {
	d := chain.Draft{Transfer: chain.Transfer{From: s.account.Address, To: s.to, Amount: money.Must(money.USDT, benchAmount)}}
	signers := []chain.Key{s.account.Key}
	if s.client.Traits().Sponsored {
		d.FeePayer, signers = s.payer.Address, append(signers, s.payer.Key)
	}
	if s.client.Traits().Sequenced {
		d.Nonce = s.next
		s.next++
	}
	unsigned, err := s.client.Prepare(ctx, d)
	if err != nil {
		return err
	}
	signed, err := s.client.Sign(unsigned, signers...)
	if err != nil {
		return err
	}
	_, err = offer(ctx, s.client, signed.Raw)
	return err
}

// offer broadcasts and fails unless the node accepts.
func offer(ctx context.Context, c chain.Client, raw []byte) (chain.Broadcast, error) {
	answer, err := c.Broadcast(ctx, raw)
	if err == nil && answer.State != chain.BroadcastAccepted {
		err = fmt.Errorf("the node answers %+v", answer)
	}
	return answer, err
}

// watch lets the watch read and book everything that was sent, and compares its time with a driver reading as many of
// the same blocks in parallel. It must find all deposits of the baseline's senders, and only those.
func (s *sending) watch(b *testing.B, arrived int) {
	b.Helper()
	s.Finalise(b)
	network := s.client.Network()
	cursor, _, err := s.db.DepositCursor(b.Context(), network)
	if err != nil {
		b.Fatal(err)
	}
	d := &activities.Deposits{Store: s.db, Client: s.client, Poll: time.Second}
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(quiet{})
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(d)
	began := time.Now()
	for f := (activities.Followed{}); f.Final == 0 || f.Lag() > 0; {
		value, err := env.ExecuteActivity(d.FollowDeposits, activities.FollowInput{Network: network})
		if err == nil {
			err = value.Get(&f)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(began)
	var booked int
	err = storetest.Owner(b, s.db).QueryRowContext(b.Context(), `SELECT count(*) FROM chain_deposits WHERE kind = 'credit' AND status = 'final'`).Scan(&booked)
	if err != nil || booked != arrived {
		b.Fatalf("%d deposits are booked, %v; %d were sent", booked, err, arrived)
	}
	alone := s.read(b, cursor.Final.Number+1)
	b.ReportMetric(float64(booked)/took.Seconds(), "deposits/s")
	b.ReportMetric(alone.Seconds()/took.Seconds(), "x_reading")
}

// read has the driver alone read all blocks up to the final one, and returns how long that takes.
func (s *sending) read(b *testing.B, from uint64) time.Duration {
	b.Helper()
	const readers = 4 // as many as the watch
	began := time.Now()
	head, err := s.client.Head(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	var group sync.WaitGroup
	turns := make(chan struct{}, readers)
	for number := from; number <= head.Final.Number; number++ {
		turns <- struct{}{}
		group.Go(func() {
			defer func() { <-turns }()
			if _, err := s.client.Transfers(b.Context(), number); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	return time.Since(began)
}

func middle(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
