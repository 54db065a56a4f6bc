package store_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func eth(s string) money.Amount { return money.Must(money.ETH, s) }

// numbered is a signed transaction of a payment with a number.
func numbered(t *testing.T, p exchange.ChainPayment, nonce uint64) exchange.ChainAttempt {
	t.Helper()
	id := storetest.NewID(t)
	return exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("signed " + id.String()), NonceWallet: p.WalletID, Nonce: nonce,
		Bid: exchange.Bid{Tip: eth("0.000000001"), Cap: eth("0.00000003")}, FeeLimit: eth("0.002"),
	}
}

// signNext signs as the signer does: with the sequence's next number, and again when it was taken.
func signNext(t *testing.T, s *store.Store, p exchange.ChainPayment) exchange.ChainAttempt {
	t.Helper()
	for range 200 {
		sequence, open, err := s.NonceSequence(t.Context(), p.WalletID)
		if err != nil {
			t.Error(err)
			return exchange.ChainAttempt{}
		}
		if !open {
			sequence.Next = 7 // what the chain counts
		}
		a, err := s.SaveSignedAttempt(t.Context(), numbered(t, p, sequence.Next))
		if err == nil {
			return a
		}
		if exchange.CodeOf(err) != exchange.CodeConflict {
			t.Error(err)
			return a
		}
	}
	t.Error("no number was had")
	return exchange.ChainAttempt{}
}

// bump stores a replacement of a transaction.
func bump(t *testing.T, s *store.Store, p exchange.ChainPayment, old exchange.ChainAttempt) exchange.ChainAttempt {
	t.Helper()
	a := numbered(t, p, old.Nonce)
	a.Bid = exchange.Bid{Tip: eth("0.000000002"), Cap: eth("0.00000006")}
	saved, err := s.SaveReplacement(t.Context(), old.ID, a)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// ends reports a transaction in a final block, twice as every step may run.
func ends(t *testing.T, s *store.Store, a exchange.ChainAttempt, ok bool) error {
	t.Helper()
	if _, err := s.RecordFinal(t.Context(), a.ID, ok, 9, "nine", eth("0.001"), "1"); err != nil {
		return err
	}
	_, err := s.RecordFinal(t.Context(), a.ID, ok, 9, "nine", eth("0.001"), "1")
	return err
}

// wantStates compares the states of a payment's transactions, in the order in which they were signed.
func wantStates(t *testing.T, s *store.Store, payment uuid.UUID, want ...string) {
	t.Helper()
	rows, err := storetest.Owner(t, s).QueryContext(t.Context(), `SELECT status FROM chain_attempts WHERE payment_id = $1 ORDER BY n`, payment)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var state string
		if err := rows.Scan(&state); err != nil {
			t.Fatal(err)
		}
		got = append(got, state)
	}
	if err := rows.Err(); err != nil || !slices.Equal(got, want) {
		t.Errorf("the transactions are %v (%v), want %v", got, err, want)
	}
}

// TestPaymentsOfOneWalletTakeNumbersInTurn signs many payments of one wallet concurrently, each by two signers: there
// is neither a gap nor a number of two payments, and each payment has one transaction.
func TestPaymentsOfOneWalletTakeNumbersInTurn(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	const payments, signers = 12, 2
	all := make([]exchange.ChainPayment, payments)
	for i := range all {
		_, all[i] = paid(t, s, m)
	}
	got := make([][signers]exchange.ChainAttempt, payments)
	var work sync.WaitGroup
	for i, p := range all {
		for j := range signers {
			work.Go(func() { got[i][j] = signNext(t, s, p) })
		}
	}
	work.Wait()
	var numbers []uint64
	for i, pair := range got {
		if pair[0].ID != pair[1].ID || pair[0].PaymentID != all[i].ID {
			t.Errorf("two signers of payment %s stored %s and %s", all[i].ID, pair[0].ID, pair[1].ID)
		}
		numbers = append(numbers, pair[0].Nonce)
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != uint64(7+i) {
			t.Fatalf("the numbers are %v, want 7 and those after it", numbers)
		}
	}
	sequence, open, err := s.NonceSequence(t.Context(), m.VendorWallet.ID)
	if err != nil || !open || sequence.Next != 7+payments || sequence.Foreign {
		t.Errorf("the sequence is %+v (%v), %v", sequence, open, err)
	}
	a, found, err := s.AttemptAt(t.Context(), m.VendorWallet.ID, 7)
	if err != nil || !found || a.Nonce != 7 {
		t.Errorf("the first of the sequence is %+v (%v), %v", a, found, err)
	}
}

// TestDatabaseGuardsSequences breaks the rules of sequences with the service's own rights and with the
// owner's: a mistake in the code can't make a gap or give a number to two payments.
func TestDatabaseGuardsSequences(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, p := paid(t, s, m)
	_, q := paid(t, s, m)
	a := signNext(t, s, p)
	wallet := m.VendorWallet.ID
	const attempt = `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, nonce_wallet, nonce, status, created_at, updated_at)
		VALUES (gen_random_uuid(), $1, 'ethereum', 2, gen_random_uuid()::text, 'x', $2, $3, 'signed', now(), now())`
	for name, c := range map[string]struct {
		query string
		args  []any
	}{
		"a number of two payments":            {`INSERT INTO nonces VALUES ($1, 7, $2)`, []any{wallet, q.ID}},
		"a gap":                               {`INSERT INTO nonces VALUES ($1, 9, $2)`, []any{wallet, q.ID}},
		"a number without bytes":              {`INSERT INTO nonces VALUES ($1, 8, $2)`, []any{wallet, q.ID}},
		"a sequence set back":                 {`UPDATE nonce_sequences SET next = 7 WHERE wallet_id = $1`, []any{wallet}},
		"a sequence that jumps":               {`UPDATE nonce_sequences SET next = 10 WHERE wallet_id = $1`, []any{wallet}},
		"a sequence that is gone":             {`DELETE FROM nonce_sequences WHERE wallet_id = $1`, []any{wallet}},
		"a number given away":                 {`UPDATE nonces SET payment_id = $2 WHERE wallet_id = $1`, []any{wallet, q.ID}},
		"a transaction with another's number": {attempt, []any{q.ID, wallet, 7}},
		"a transaction with no number":        {attempt, []any{q.ID, nil, 0}},
		"a transaction with a free number":    {attempt, []any{q.ID, wallet, 8}},
		"a second live transaction":           {attempt, []any{p.ID, wallet, 7}},
		"another number":                      {`UPDATE chain_attempts SET nonce = 8 WHERE id = $1`, []any{a.ID}},
		"another bid":                         {`UPDATE chain_attempts SET bid_cap = 1 WHERE id = $1`, []any{a.ID}},
	} {
		if _, err := storetest.Owner(t, s).ExecContext(t.Context(), c.query, c.args...); err == nil {
			t.Errorf("the database took %s", name)
		}
	}
	if b := signNext(t, s, q); b.Nonce != 8 {
		t.Errorf("the next number is %d, want 8", b.Nonce)
	}
	for from, want := range map[uint64]string{7: "0.004", 8: "0.002", 9: "0"} {
		if r, err := s.NonceReserve(t.Context(), wallet, exchange.Ethereum, from); err != nil || !r.Equal(eth(want)) {
			t.Errorf("from %d on %s ETH may be spent (%v), want %s", from, r, err, want)
		}
	}
}

// TestReplacements covers a transaction and its replacement with a higher fee: whichever the network includes counts,
// and the other one expires.
func TestReplacements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run    func(t *testing.T, s *store.Store, first, second exchange.ChainAttempt) error
		states []string
		status exchange.ChainPaymentStatus
		winner int
	}{
		"the higher bid wins": {
			run: func(t *testing.T, s *store.Store, _, second exchange.ChainAttempt) error {
				return ends(t, s, second, true)
			},
			states: []string{"expired", "succeeded"}, status: exchange.ChainCompleted, winner: 2,
		},
		"the lower bid wins": {
			run: func(t *testing.T, s *store.Store, first, second exchange.ChainAttempt) error {
				if _, err := s.RecordIncluded(t.Context(), first.ID, 9, "nine"); err != nil {
					return err
				}
				wantStates(t, s, first.PaymentID, "included", "replaced")
				if _, err := s.RecordBroadcast(t.Context(), second.ID, "late", true); err != nil {
					return err
				}
				return ends(t, s, first, true)
			},
			states: []string{"succeeded", "expired"}, status: exchange.ChainCompleted, winner: 1,
		},
		"the lower bid was in a block that is gone": {
			run: func(t *testing.T, s *store.Store, first, second exchange.ChainAttempt) error {
				if _, err := s.RecordIncluded(t.Context(), first.ID, 9, "nine"); err != nil {
					return err
				}
				p, err := s.RecordVanished(t.Context(), first.ID)
				if err != nil || p.TxID != second.TxID {
					t.Errorf("after the reorganisation %s leads (%v), want the higher bid %s", p.TxID, err, second.TxID)
				}
				wantStates(t, s, first.PaymentID, "replaced", "broadcast")
				return ends(t, s, second, true)
			},
			states: []string{"expired", "succeeded"}, status: exchange.ChainCompleted, winner: 2,
		},
		"the lower bid wins and fails": {
			run: func(t *testing.T, s *store.Store, first, _ exchange.ChainAttempt) error {
				return ends(t, s, first, false)
			},
			states: []string{"failed", "expired"}, status: exchange.ChainParked, winner: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			m := storetest.NewMarketOn(t, s, exchange.Ethereum)
			order, p := paid(t, s, m)
			first := signNext(t, s, p)
			if _, err := s.RecordBroadcast(t.Context(), first.ID, "ok", true); err != nil {
				t.Fatal(err)
			}
			second := bump(t, s, p, first)
			if again := bump(t, s, p, first); again.ID != second.ID || second.Nonce != first.Nonce || second.N != 2 {
				t.Errorf("bumped twice: %+v and %+v", second, again)
			}
			wantStates(t, s, p.ID, "replaced", "signed")
			if live, err := s.LiveAttempts(t.Context(), p.ID); err != nil || len(live) != 2 {
				t.Errorf("%d transactions are watched (%v), want both", len(live), err)
			}
			if err := c.run(t, s, first, second); err != nil {
				t.Fatal(err)
			}
			wantStates(t, s, p.ID, c.states...)
			got, err := s.ChainPayment(t.Context(), p.ID)
			txs := []exchange.ChainAttempt{first, second}
			if err != nil || got.Status != c.status || got.TxID != txs[c.winner-1].TxID || !got.Fee.Equal(eth("0.001")) {
				t.Errorf("the payment is %+v, %v", got, err)
			}
			if c.status == exchange.ChainCompleted {
				done, err := s.CompleteOrder(t.Context(), order.ID)
				if err != nil || done.TxHash != got.TxID {
					t.Errorf("the order ended with %q, %v", done.TxHash, err)
				}
			}
			wantBooks(t, s)
		})
	}
}

// TestANumberThatSomebodyElseUsed closes the sequence for all payments of the wallet.
func TestANumberThatSomebodyElseUsed(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, p := paid(t, s, m)
	_, q := paid(t, s, m)
	first := signNext(t, s, p)
	second := bump(t, s, p, first)
	for range 2 {
		if _, err := s.RecordExpired(t.Context(), second.ID, "the number was used"); err != nil {
			t.Fatal(err)
		}
	}
	wantStates(t, s, p.ID, "expired", "expired")
	sequence, _, err := s.NonceSequence(t.Context(), m.VendorWallet.ID)
	if err != nil || !sequence.Foreign {
		t.Fatalf("the sequence is %+v, %v", sequence, err)
	}
	for _, payment := range []exchange.ChainPayment{p, q} {
		_, err := s.SaveSignedAttempt(t.Context(), numbered(t, payment, sequence.Next))
		wantFault(t, err, exchange.CodeConflict)
	}
	if parked, err := s.ParkChainPayment(t.Context(), p.ID, "foreign_nonce"); err != nil || parked.Status != exchange.ChainParked {
		t.Errorf("parked %+v, %v", parked, err)
	}
}

// TestReplacementThatComesTooLate drops replacements of a transaction that no longer leads, or of an ended payment.
func TestReplacementThatComesTooLate(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, p := paid(t, s, m)
	first := signNext(t, s, p)
	_, err := s.SaveReplacement(t.Context(), first.ID, numbered(t, p, first.Nonce+1))
	wantFault(t, err, exchange.CodeInternal)
	if _, err := s.RecordIncluded(t.Context(), first.ID, 9, "nine"); err != nil {
		t.Fatal(err)
	}
	if a := bump(t, s, p, first); a.ID != first.ID {
		t.Error("a transaction in a block was replaced with a higher fee")
	}
	if _, err := s.RecordFinal(t.Context(), first.ID, true, 9, "nine", eth("0.001"), "1"); err != nil {
		t.Fatal(err)
	}
	_, err = s.SaveReplacement(t.Context(), first.ID, numbered(t, p, first.Nonce))
	wantFault(t, err, exchange.CodeStateConflict)
	wantStates(t, s, p.ID, "succeeded")
}

// TestPaymentsOfAnotherFeePayer checks who signs and who pays where the house pays the fees.
func TestPaymentsOfAnotherFeePayer(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	gas := storetest.GasWallet(t, s, exchange.Solana)
	storetest.Gas(t, s, gas.ID, money.Must(money.SOL, "5"))
	m := storetest.NewMarketOn(t, s, exchange.Solana)
	_, p := paid(t, s, m)
	if p.FeeWalletID != gas.ID || p.FeePayer != gas.Address || p.IntentHash != p.Intent() {
		t.Fatalf("approved %+v", p)
	}
	taken := p
	taken.FeeWalletID, taken.FeePayer = uuid.Nil, ""
	if taken.Intent() == p.IntentHash {
		t.Error("the approval does not cover who pays the fee")
	}
	stored, keys, err := s.PaymentForSigning(t.Context(), p.ID)
	if err != nil || len(keys) != 2 || keys[0].WalletID != p.WalletID || keys[1].WalletID != gas.ID || stored.Intent() != p.IntentHash {
		t.Errorf("keys %+v, %v", keys, err)
	}
	id := storetest.NewID(t)
	a, err := s.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{ID: id, PaymentID: p.ID, TxID: txID(id), Raw: []byte("x"), LastValidHeight: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFinal(t.Context(), a.ID, true, 9, "nine", money.Must(money.SOL, "0.00001"), ""); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, gas.ID, money.SOL), "4.99999", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.SOL), "1000", "0")
	wantBooks(t, s)
}

// TestGasForAPayment gives a payment gas as often as allowed, one top-up at a time.
func TestGasForAPayment(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, p := paid(t, s, m)
	amount, fee := eth("0.01"), eth("0.0004")
	_, err := s.ApproveTopUp(ctx, p.ID, amount, 2)
	wantFault(t, err, exchange.CodeUnsupported) // no gas wallet
	gas := storetest.GasWallet(t, s, exchange.Ethereum)
	storetest.Gas(t, s, gas.ID, eth("0.0104"))
	for n := 1; n <= 2; n++ {
		var approved [4]exchange.ChainPayment
		var work sync.WaitGroup
		for i := range approved {
			work.Go(func() {
				var err error
				if approved[i], err = s.ApproveTopUp(ctx, p.ID, amount, 2); err != nil {
					t.Error(err)
				}
			})
		}
		work.Wait()
		top := approved[0]
		for _, other := range approved {
			if other.ID != top.ID {
				t.Fatalf("two top-ups at once: %s and %s", other.ID, top.ID)
			}
		}
		if top.N != n || top.Purpose != exchange.ForGas || top.ObjectID != p.ID || top.WalletID != gas.ID || top.ToAddress != p.FromAddress || top.HoldID != uuid.Nil {
			t.Fatalf("approved %+v", top)
		}
		if n == 2 { // one that was parked goes on
			if _, err := s.ParkChainPayment(ctx, top.ID, "insufficient_funds"); err != nil {
				t.Fatal(err)
			}
			if again, err := s.ApproveTopUp(ctx, p.ID, amount, 2); err != nil || again.ID != top.ID || again.Status != exchange.ChainApproved {
				t.Fatalf("again %+v, %v", again, err)
			}
		}
		a := signNext(t, s, top)
		for range 2 {
			if _, err := s.RecordFinal(ctx, a.ID, true, 9, "nine", fee, "1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = s.ApproveTopUp(ctx, p.ID, amount, 2)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	// The second top-up moved coin unknown to the ledger.
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, gas.ID, money.ETH), "0", "0")
	wantBalance(t, s, exchange.Owned(exchange.AccCustody, m.VendorWallet.ID, money.ETH), "1000.02", "0")
	wantBalance(t, s, exchange.House(exchange.AccNetworkFees, money.ETH), "0.0008", "0")
	wantBalance(t, s, exchange.House(exchange.AccSuspense, money.ETH), "0.0104", "0")
	wantBooks(t, s)
	if o, err := s.Order(ctx, store.Everything(), p.ObjectID); err != nil || o.Status != exchange.OrderProcessing {
		t.Errorf("the order is %+v, %v", o, err)
	}
	a := signNext(t, s, p)
	if _, err := s.RecordFinal(ctx, a.ID, true, 20, "twenty", fee, "1"); err != nil {
		t.Fatal(err)
	}
	_, err = s.ApproveTopUp(ctx, p.ID, amount, 9)
	wantFault(t, err, exchange.CodeStateConflict)
}

// TestAColdWalletSignsNothing withholds a cold wallet's key from the signer.
func TestAColdWalletSignsNothing(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	_, p := paid(t, s, m)
	if _, keys, err := s.PaymentForSigning(t.Context(), p.ID); err != nil || len(keys) != 1 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	if _, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE wallets SET type = 'cold' WHERE id = $1`, m.VendorWallet.ID); err != nil {
		t.Fatal(err)
	}
	_, keys, err := s.PaymentForSigning(t.Context(), p.ID)
	wantFault(t, err, exchange.CodeForbidden)
	if len(keys) != 0 {
		t.Error("a cold wallet's key was handed out")
	}
}
