package e2e

import (
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// feesPath is the API's path of the house's money.
const feesPath = "/api/v1/auth/treasury"

// feeSweep is a sweep as the API shows it.
type feeSweep struct {
	ID       uuid.UUID `json:"id"`
	WalletID uuid.UUID `json:"wallet_id"`
	Amount   string    `json:"amount"`
	Status   string    `json:"status"`
	Detail   string    `json:"status_detail"`
	TxHash   string    `json:"tx_hash"`
}

// twoAgree proposes what needs two officers, and the demo's officer confirms it.
func (w *harness) twoAgree(t *testing.T, by *client.Client, path string, in any) {
	t.Helper()
	var waits testbed.Waits
	if err := insist(t.Context(), by, path, testbed.Key(), in, &waits); err != nil {
		t.Fatal(err)
	}
	if n := w.testbed.Agree(t, waits); n != 1 {
		t.Fatalf("%d changes of %s waited for another officer", n, path)
	}
}

// sweepFees has two treasury officers sweep the fees of the wallets on a network that have so much.
func (w *harness) sweepFees(t *testing.T, n exchange.Network, least string) {
	t.Helper()
	w.twoAgree(t, w.as(t, secondOfficer), feesPath+"/fee-sweeps", map[string]any{"network": n, "asset": "USDT", "least": least})
}

// newestSweep returns the newest sweep of a wallet.
func (w *harness) newestSweep(t *testing.T, wallet uuid.UUID) (feeSweep, error) {
	t.Helper()
	var found struct {
		Sweeps []feeSweep `json:"fee_sweeps"`
	}
	if err := w.operator(t).Get(t.Context(), feesPath+"/fee-sweeps?page_size=1&wallet_id="+wallet.String(), &found); err != nil {
		return feeSweep{}, err
	}
	if len(found.Sweeps) == 0 {
		return feeSweep{}, errors.New("its fees are not swept")
	}
	return found.Sweeps[0], nil
}

// sweepIs waits until the newest sweep of a wallet has a status.
func (w *harness) sweepIs(t *testing.T, wallet uuid.UUID, status exchange.FeeSweepStatus) feeSweep {
	t.Helper()
	var f feeSweep
	err := await(t.Context(), recovery, func() (err error) {
		if f, err = w.newestSweep(t, wallet); err == nil && f.Status != string(status) {
			err = fmt.Errorf("it is %s (%s)", f.Status, f.Detail)
		}
		return err
	})
	if err != nil {
		t.Fatalf("the sweep of wallet %s should be %s: %v", wallet, status, err)
	}
	return f
}

// feesAre checks what is earned in a wallet and not swept.
func (w *harness) feesAre(t *testing.T, wallet uuid.UUID, want string) {
	t.Helper()
	a, err := w.store.Account(t.Context(), exchange.Owned(exchange.AccWalletFees, wallet, money.USDT))
	if err != nil || !a.Posted.Equal(money.Must(money.USDT, want)) || a.Held.Positive() {
		t.Errorf("in wallet %s %s USDT are earned and %s held, not %s: %v", wallet, a.Posted, a.Held, want, err)
	}
}

// treasuryOf is the house's treasury wallet on a network.
func (w *harness) treasuryOf(t *testing.T, n exchange.Network) exchange.Wallet {
	t.Helper()
	all, _, err := w.store.ListWallets(t.Context(), store.Everything(), store.WalletFilter{Network: n, Purpose: exchange.HouseTreasury}, store.Page{Number: 1, Size: 1})
	if err != nil || len(all) != 1 {
		t.Fatalf("%d treasury wallets on %s: %v", len(all), n, err)
	}
	return all[0]
}

// sweptOnce checks a completed sweep: the treasury got exactly the fees by one transaction, and the books know it.
func (w *harness) sweptOnce(t *testing.T, n demo.Node, wallet uuid.UUID, amount string) feeSweep {
	t.Helper()
	f := w.sweepIs(t, wallet, exchange.FeeSweepCompleted)
	if f.Amount != money.Must(money.USDT, amount).String() || f.TxHash == "" {
		t.Errorf("the sweep is %+v, not of %s USDT", f, amount)
	}
	if tx := w.sentFor(t, "fee_sweep", f.ID); tx != f.TxHash {
		t.Errorf("sweep %s names %s and was paid by %s", f.ID, f.TxHash, tx)
	}
	cameOnce(t, n, w.treasuryOf(t, n.Network).Address, f.TxHash, money.Must(money.USDT, amount))
	w.feesAre(t, wallet, "0")
	return f
}

// feesComeHome has a merchant without any coin for the network's fees pay for a transfer, and two officers bring what it paid to the
// treasury.
func (w *harness) feesComeHome(t *testing.T, n demo.Node) {
	merchant, officer := w.walletOf(t, demo.ExhaustedVendorEmail, n.Network), w.as(t, secondOfficer)
	price := func(terms map[string]any) {
		t.Helper()
		line := map[string]any{"scope": "transfer", "merchant_id": merchant.OwnerID, "asset": "USDT", "network": n.Network}
		for k, v := range terms {
			line[k] = v
		}
		w.twoAgree(t, w.admin(t), "/api/v1/auth/pricing/profiles", line)
	}
	price(map[string]any{"fixed": "0.75"})
	f, err := transferOn(t.Context(), w.as(t, demo.ExhaustedVendorEmail), n.Network, "3", map[string]any{"email": demo.CustomerEmail}, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	price(map[string]any{"retired": true})
	w.arrives(t, w.operator(t), f.ID, "completed")
	w.feesAre(t, merchant.ID, "0.75")
	w.sweepFees(t, n.Network, "0.7")
	w.sweptOnce(t, n, merchant.ID, "0.75")
	again := officer.Post(t.Context(), feesPath+"/fee-sweeps", testbed.Key(), map[string]any{"network": n.Network, "asset": "USDT", "least": "0.7"}, nil)
	if !is(again, http.StatusConflict) {
		t.Errorf("what was swept is swept again: %v", again)
	}
}

// earning makes a wallet in which the house has earned so much, with coins for the network's fees, if any.
func (w *harness) earning(t *testing.T, n exchange.Network, fees money.Amount, coins ...money.Amount) exchange.Wallet {
	t.Helper()
	wallet := w.fundedWallet(t, n, demo.SecondEmail, exchange.Hot, append(coins, money.Must(money.USDT, "5"))...)
	if len(coins) > 0 {
		if err := demo.ForFees(t.Context(), w.store, wallet); err != nil {
			t.Fatal(err)
		}
	}
	if err := storetest.Earn(t.Context(), w.db, wallet.ID, fees); err != nil {
		t.Fatal(err)
	}
	return wallet
}

// sweepRule has a schedule sweep what is earned on a network as soon as it is so much.
func (w *harness) sweepRule(t *testing.T, n exchange.Network, threshold string) {
	t.Helper()
	var known struct {
		Rules []struct {
			Network  exchange.Network `json:"network"`
			IsActive bool             `json:"is_active"`
		} `json:"fee_sweep_rules"`
	}
	if err := w.operator(t).Get(t.Context(), feesPath+"/fee-sweep-rules", &known); err != nil {
		t.Fatal(err)
	}
	for _, r := range known.Rules {
		if r.Network == n && r.IsActive {
			return
		}
	}
	w.twoAgree(t, w.as(t, secondOfficer), feesPath+"/fee-sweep-rules", map[string]any{"network": n, "asset": "USDT", "threshold": threshold, "least": threshold})
}

// feeScenario is the scenario of a sweep of earned fees, on Ethereum. Its wallet has no coins for it.
type feeScenario struct {
	begin  func(t *testing.T, w *harness, b *feeScenario, tr *trial, arm func())
	status exchange.FeeSweepStatus
	fees   int64 // earned, in the least units
	wallet exchange.Wallet
}

// What is earned in the wallets of the trials, in millionths of a USDT. The rule sweeps only what is its trials'. What was given up
// stays where it is: it is less than what others sweep, and more with each trial, so that no other one sweeps it.
const (
	feesGivenUp = 500_000
	feesAsked   = 1_000_000
	feesByRule  = 2_000_000
)

// feeRows are those with sweeps of earned fees. The first one's payment must fail.
func feeRows() []row {
	var given int64 = feesGivenUp
	makes := func(b feeScenario) func() scenario {
		return func() scenario {
			one := b
			if b.status == exchange.FeeSweepCancelled {
				given++
				one.fees = given
			}
			return &one
		}
	}
	return []row{
		{"GiveUpFeeSweep/*/*", "flows", makes(feeScenario{begin: feesNotSwept, status: exchange.FeeSweepCancelled})},
		{"ApproveFeeSweep/*/*", "flows", makes(feeScenario{begin: feesAskedFor, status: exchange.FeeSweepCompleted, fees: feesAsked})},
		{"OpenFeeSweeps/*/*", "flows", makes(feeScenario{begin: feesDue, status: exchange.FeeSweepCompleted, fees: feesByRule})},
	}
}

func (b *feeScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	b.begin(t, w, b, tr, arm)
}

// restarted ends the run that the process worked on, so that the next trial's point is hit by its own run.
func (b *feeScenario) restarted(t *testing.T, w *harness, _ *trial) {
	t.Helper()
	w.over(t, workflows.TypeSweepFees)
	post(t, w.ethereum(), "/reset", nil)
}

func (b *feeScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	if b.status == exchange.FeeSweepCompleted {
		w.sweptOnce(t, w.ethereum(), b.wallet.ID, tr.amount.String())
	} else {
		w.sweepIs(t, b.wallet.ID, b.status)
		w.feesAre(t, b.wallet.ID, tr.amount.String())
	}
	var sweeps, moved int
	err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM fee_sweeps WHERE wallet_id = $1), (SELECT count(*) FROM chain_attempts a
		JOIN chain_payments p ON p.id = a.payment_id WHERE p.purpose = 'fee_sweep' AND p.wallet_id = $1 AND a.status = 'succeeded')`, b.wallet.ID).Scan(&sweeps, &moved)
	if want := map[bool]int{true: 1}[b.status == exchange.FeeSweepCompleted]; err != nil || sweeps != 1 || moved != want {
		t.Errorf("the fees of wallet %s were swept %d times, by %d transactions: %v", b.wallet.ID, sweeps, moved, err)
	}
}

// earns makes the trial's wallet.
func (b *feeScenario) earns(t *testing.T, w *harness, tr *trial, coins ...money.Amount) {
	t.Helper()
	tr.amount = money.FromUnits(money.USDT, big.NewInt(b.fees))
	b.wallet = w.earning(t, exchange.Ethereum, tr.amount, coins...)
}

func feesAskedFor(t *testing.T, w *harness, b *feeScenario, tr *trial, arm func()) {
	b.earns(t, w, tr)
	arm()
	w.sweepFees(t, exchange.Ethereum, tr.amount.String())
}

// feesNotSwept makes an operator give up a sweep whose payment failed. The wallet has coins: otherwise it would be the payment of its
// gas that failed.
func feesNotSwept(t *testing.T, w *harness, b *feeScenario, tr *trial, arm func()) {
	b.earns(t, w, tr, money.Must(money.ETH, "0.5"))
	post(t, w.ethereum(), "/faults", map[string]any{"fail_next": 1})
	w.sweepFees(t, exchange.Ethereum, tr.amount.String())
	f := w.sweepParked(t, b.wallet.ID)
	post(t, w.ethereum(), "/reset", nil)
	arm()
	tr.background(t, w.operator(t), ofSweep(f.ID, "refund"), uuid.NewString(), map[string]any{"note": "crash trial"}, nil)
}

// ofSweep returns the path of a sweep's command.
func ofSweep(id uuid.UUID, verb string) string {
	return feesPath + "/fee-sweeps/" + id.String() + "/" + verb
}

// sweepParked waits until the sweep of a wallet waits for an operator.
func (w *harness) sweepParked(t *testing.T, wallet uuid.UUID) feeSweep {
	t.Helper()
	var f feeSweep
	eventually(t, "the sweep of "+wallet.String()+" waits for an operator", func() (err error) {
		if f, err = w.newestSweep(t, wallet); err == nil && f.Detail != exchange.WaitOperator {
			err = fmt.Errorf("it is %s (%s)", f.Status, f.Detail)
		}
		return err
	})
	w.parked(t, workflows.FeeSweepID(f.ID))
	return f
}

// feesDue lets the schedule sweep.
func feesDue(t *testing.T, w *harness, b *feeScenario, tr *trial, arm func()) {
	b.earns(t, w, tr)
	w.sweepRule(t, exchange.Ethereum, tr.amount.String())
	arm()
	w.trigger(t, "sweep-fees")
}
