package e2e

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// swapRows are those with swaps, all on Ethereum.
func swapRows() []row {
	return []row{
		{"GiveUpSwap/*/*", "flows", always(swapScenario{begin: swapFailed, ends: exchange.SwapFailed})},
		{"RefundSwap/*/*", "flows", always(swapScenario{begin: swapFrozen, ends: exchange.SwapRefunded})},
		{"RetrySwapPayout/*/*", "flows", always(swapScenario{begin: swapRetried, ends: exchange.SwapCompleted})},
		{"OpenSwap/*/*", "flows", always(swapScenario{begin: swapOpened, ends: exchange.SwapCompleted})},
		{"CollectSwap/*/*", "flows", always(swapScenario{begin: swapOpened, ends: exchange.SwapCompleted})},
		{"PayOutSwap/*/*", "flows", always(swapScenario{begin: swapOpened, ends: exchange.SwapCompleted})},
		{"SyncSwap/*/*", "chain-ethereum", always(swapScenario{begin: swapOpened, after: watchOn, ends: exchange.SwapCompleted})},
		{"DecideSwap/*/*", "flows", always(swapScenario{begin: swapDecided, ends: exchange.SwapCompleted})},
		{"CancelSwap/*/*", "flows", always(swapScenario{begin: swapCancelled, ends: exchange.SwapCancelled})},
		{"ExpireSwap/*/*", "flows", always(swapScenario{begin: swapExpired, ends: exchange.SwapExpired})},
	}
}

// swapScenario is the scenario of a swap.
type swapScenario struct {
	begin transferScene
	after func(t *testing.T, w *harness, tr *trial) // as soon as the process is back
	ends  exchange.SwapStatus
}

func (b swapScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	w.swapRates(t)
	b.begin(t, w, tr, arm)
}

func (b swapScenario) restarted(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	if b.after != nil {
		b.after(t, w, tr)
	}
}

func (b swapScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	if b.ends == exchange.SwapCompleted {
		w.swappedOnce(t, w.ethereum(), tr.swap.ID)
		return
	}
	s := w.swapIs(t, tr.swap.ID, b.ends)
	var held, paid int
	err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM holds WHERE object_id = $1 AND status = 'held'),
		(SELECT count(*) FROM chain_payments WHERE object_id = $1 AND status = 'completed')`, s.ID).Scan(&held, &paid)
	if want := map[bool]int{true: 2}[b.ends == exchange.SwapRefunded]; err != nil || held != 0 || paid != want {
		t.Errorf("a swap that is %s has %d holds and %d payments: %v", s.Status, held, paid, err)
	}
}

// swapOpened swaps a vendor's coins while the process dies.
func swapOpened(t *testing.T, w *harness, tr *trial, arm func()) {
	vendor := w.as(t, demo.VendorEmail)
	in := map[string]any{"quote_id": w.swapQuote(t, vendor, w.walletOf(t, demo.VendorEmail, exchange.Ethereum).ID, money.Must(money.USDT, small), money.USDC)}
	arm()
	tr.background(t, vendor, swapsPath, "swap-"+tr.point, in, &tr.swap)
}

// swapFailed has an officer give up a swap whose collection was carried out and failed.
func swapFailed(t *testing.T, w *harness, tr *trial, arm func()) {
	post(t, w.ethereum(), "/faults", map[string]any{"fail_next": 1})
	tr.swap = w.swaps(t, w.as(t, demo.VendorEmail), w.walletOf(t, demo.VendorEmail, exchange.Ethereum).ID, money.Must(money.USDT, small), money.USDC)
	w.parkedWith(t, workflows.SwapID(tr.swap.ID), workflows.ReasonPayoutFailed)
	post(t, w.ethereum(), "/reset", nil)
	arm()
	tr.background(t, w.operator(t), tr.swap.path()+"/refund", uuid.NewString(), map[string]any{"note": "crash trial"}, nil)
}

// freezeOnTheWay opens a swap into a wallet that the issuer has frozen, and waits until its payout is parked.
func (w *harness) freezeOnTheWay(t *testing.T, tr *trial) exchange.Wallet {
	t.Helper()
	wallet := w.fundedWallet(t, exchange.Ethereum, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"))
	w.freezes(t, w.ethereum(), wallet, true)
	tr.swap = w.swaps(t, w.as(t, demo.SecondEmail), wallet.ID, money.Must(money.USDT, small), money.USDC)
	w.parkedWith(t, workflows.SwapID(tr.swap.ID), workflows.ReasonPayoutBlocked)
	return wallet
}

// swapFrozen gives back what was collected, because the issuer has frozen the wallet.
func swapFrozen(t *testing.T, w *harness, tr *trial, arm func()) {
	w.freezeOnTheWay(t, tr)
	arm()
	w.halfAnHour(t, tr.swap.ID)
}

// swapRetried has an officer try a payout again that the issuer refused.
func swapRetried(t *testing.T, w *harness, tr *trial, arm func()) {
	wallet := w.freezeOnTheWay(t, tr)
	w.freezes(t, w.ethereum(), wallet, false)
	arm()
	tr.background(t, w.operator(t), tr.swap.path()+"/retry", uuid.NewString(), map[string]any{}, nil)
}

// swapWaits opens a swap that an officer has to decide about.
func (w *harness) swapWaits(t *testing.T, tr *trial) {
	t.Helper()
	tr.swap = w.swaps(t, w.as(t, watchedEmail), w.watched.ID, money.Must(money.USDT, small), money.USDC)
	eventually(t, "the swap waits for an officer", func() error { return w.swapDetail(t, tr.swap.ID, exchange.WaitApproval) })
}

// swapDecided has an officer approve while the process dies.
func swapDecided(t *testing.T, w *harness, tr *trial, arm func()) {
	w.swapWaits(t, tr)
	asSeen := seen(t, w.operator(t), tr.swap.path()+"/approve")
	arm()
	tr.background(t, w.operator(t), tr.swap.path()+"/approve", uuid.NewString(), asSeen, nil)
}

// swapCancelled has the owner cancel while the process dies.
func swapCancelled(t *testing.T, w *harness, tr *trial, arm func()) {
	w.swapWaits(t, tr)
	arm()
	tr.background(t, w.as(t, watchedEmail), tr.swap.path()+"/cancel", uuid.NewString(), map[string]any{}, nil)
}

// swapExpired lets the time of a swap pass whose collection can't be signed, because the issuer has frozen the wallet.
func swapExpired(t *testing.T, w *harness, tr *trial, arm func()) {
	wallet := w.fundedWallet(t, exchange.Ethereum, demo.SecondEmail, exchange.Hot, money.Must(money.USDC, "5"))
	w.freezes(t, w.ethereum(), wallet, true)
	tr.swap = w.swaps(t, w.as(t, demo.SecondEmail), wallet.ID, money.Must(money.USDC, small), money.USDT)
	w.parkedWith(t, workflows.SwapID(tr.swap.ID), workflows.ReasonPayoutBlocked)
	arm()
	w.halfAnHour(t, tr.swap.ID)
}
