package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

const swapsPath = "/api/v1/auth/swaps"

// swapped has the fields of a swap that the tests read.
type swapped struct {
	ID         uuid.UUID `json:"id"`
	WalletID   uuid.UUID `json:"wallet_id"`
	Status     string    `json:"status"`
	Detail     string    `json:"status_detail"`
	FromAsset  string    `json:"from_asset"`
	FromAmount string    `json:"from_amount"`
	ToAsset    string    `json:"to_asset"`
	ToAmount   string    `json:"to_amount"`
	Legs       []struct {
		Role   string  `json:"role"`
		Status string  `json:"status"`
		TxHash *string `json:"tx_hash"`
	} `json:"legs"`
}

func (s swapped) path() string { return swapsPath + "/" + s.ID.String() }

// hash is the transaction of the completed leg of a role.
func (s swapped) hash(role exchange.SwapLegRole) string {
	for _, l := range s.Legs {
		if l.Role == string(role) && l.Status == string(exchange.ChainCompleted) && l.TxHash != nil {
			return *l.TxHash
		}
	}
	return ""
}

// swapRates enters rates of both stablecoins, near the values that two officers agree to.
func (w *harness) swapRates(t *testing.T) {
	t.Helper()
	for base, mid := range map[string]string{"USDT": "128.755", "USDC": "129"} {
		var waits testbed.Waits
		if err := w.admin(t).Post(t.Context(), "/api/v1/auth/pricing/fx-rates", uuid.NewString(), map[string]any{"base": base, "quote": "KES", "mid": mid}, &waits); err != nil {
			t.Fatal(err)
		}
		w.testbed.Agree(t, waits)
	}
	w.houseLimits(t, map[string]any{"valuations": map[string]any{"USDT": "149", "USDC": "149"}})
}

// swapQuote asks for the price of a swap.
func (w *harness) swapQuote(t *testing.T, c *client.Client, wallet uuid.UUID, given money.Amount, to money.Asset) uuid.UUID {
	t.Helper()
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	in := map[string]any{"wallet_id": wallet, "from_asset": given.Asset(), "to_asset": to, "amount": given.String(), "amount_side": "from"}
	if err := insist(t.Context(), c, swapsPath+"/quote", uuid.NewString(), in, &made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// swaps opens a swap at a new quote.
func (w *harness) swaps(t *testing.T, c *client.Client, wallet uuid.UUID, given money.Amount, to money.Asset) swapped {
	t.Helper()
	var s swapped
	in := map[string]any{"quote_id": w.swapQuote(t, c, wallet, given, to)}
	if err := insist(t.Context(), c, swapsPath, uuid.NewString(), in, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// swapIs waits until a swap has a status.
func (w *harness) swapIs(t *testing.T, id uuid.UUID, status exchange.SwapStatus) swapped {
	t.Helper()
	var s swapped
	err := await(t.Context(), recovery, func() error {
		if err := w.operator(t).Get(t.Context(), swapsPath+"/"+id.String(), &s); err != nil {
			return err
		}
		if s.Status != string(status) {
			return fmt.Errorf("it is %s (%s)", s.Status, s.Detail)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("swap %s should be %s: %v", id, status, err)
	}
	return s
}

// swapDetail returns an error unless a swap waits for something.
func (w *harness) swapDetail(t *testing.T, id uuid.UUID, detail string) error {
	t.Helper()
	var s swapped
	if err := w.operator(t).Get(t.Context(), swapsPath+"/"+id.String(), &s); err != nil {
		return err
	}
	if s.Detail != detail {
		return fmt.Errorf("it is %s (%s)", s.Status, s.Detail)
	}
	return nil
}

// swappedOnce checks a completed swap on the chain: one side left the wallet for the treasury, the other came from there, each once.
func (w *harness) swappedOnce(t *testing.T, n demo.Node, id uuid.UUID) {
	t.Helper()
	s := w.swapIs(t, id, exchange.SwapCompleted)
	wallet, err := w.store.Wallet(t.Context(), store.Everything(), s.WalletID)
	if err != nil {
		t.Fatal(err)
	}
	cameOnce(t, n, w.treasuryOf(t, n.Network).Address, s.hash(exchange.LegCollect), money.Must(money.Asset(s.FromAsset), s.FromAmount))
	cameOnce(t, n, wallet.Address, s.hash(exchange.LegPayout), money.Must(money.Asset(s.ToAsset), s.ToAmount))
	if len(s.Legs) != 2 {
		t.Errorf("its legs are %+v", s.Legs)
	}
}

// TestSwaps swaps on every network in both directions, with a wallet whose issuer freezes one of them.
func TestSwaps(t *testing.T) {
	w := open(t)
	w.swapRates(t)
	t.Run("all", func(t *testing.T) {
		w.eachNetwork(t, func(t *testing.T, n demo.Node) {
			t.Parallel()
			t.Run("there and back", func(t *testing.T) { w.swapsThereAndBack(t, n) })
			if n.Network == exchange.Ethereum {
				t.Run("frozen on the way", func(t *testing.T) { w.swapIsRefunded(t, n) })
			}
		})
	})
	w.invariants(t)
	w.booksAgree(t)
}

// swapsThereAndBack swaps USDT for USDC, and some of those back. A quote is used once.
func (w *harness) swapsThereAndBack(t *testing.T, n demo.Node) {
	vendor, from := w.as(t, demo.VendorEmail), w.walletOf(t, demo.VendorEmail, n.Network)
	quote := w.swapQuote(t, vendor, from.ID, money.Must(money.USDT, "7"), money.USDC)
	var s swapped
	if err := insist(t.Context(), vendor, swapsPath, uuid.NewString(), map[string]any{"quote_id": quote}, &s); err != nil {
		t.Fatal(err)
	}
	if err := vendor.Post(t.Context(), swapsPath, uuid.NewString(), map[string]any{"quote_id": quote}, nil); !is(err, http.StatusConflict) {
		t.Errorf("the same quote again: %v", err)
	}
	w.swappedOnce(t, n, s.ID)
	w.swappedOnce(t, n, w.swaps(t, vendor, from.ID, money.Must(money.USDC, "3"), money.USDT).ID)
}

// swapIsRefunded freezes the wallet for what it would get: what was collected comes back by itself.
func (w *harness) swapIsRefunded(t *testing.T, n demo.Node) swapped {
	t.Helper()
	wallet := w.fundedWallet(t, n.Network, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"))
	w.freezes(t, n, wallet, true)
	s := w.swaps(t, w.as(t, demo.SecondEmail), wallet.ID, money.Must(money.USDT, "2"), money.USDC)
	w.swapIs(t, s.ID, exchange.SwapPayingOut)
	w.parkedWith(t, workflows.SwapID(s.ID), workflows.ReasonPayoutBlocked)
	w.halfAnHour(t, s.ID)
	s = w.swapIs(t, s.ID, exchange.SwapRefunded)
	cameOnce(t, n, wallet.Address, s.hash(exchange.LegRefund), money.Must(money.USDT, "2"))
	w.freezes(t, n, wallet, false)
	return s
}

// freezes has the issuer of USDC freeze a wallet, or not.
func (w *harness) freezes(t *testing.T, n demo.Node, wallet exchange.Wallet, frozen bool) {
	t.Helper()
	post(t, n, "/token/block", map[string]any{"token": "USDC", "address": wallet.Address, "blocked": frozen})
}

// halfAnHour lets so much time pass for a swap, and has its flow look.
func (w *harness) halfAnHour(t *testing.T, id uuid.UUID) {
	t.Helper()
	const passes = `UPDATE swaps SET created_at = created_at - interval '31 minutes', expires_at = expires_at - interval '31 minutes',
		collected_at = collected_at - interval '31 minutes', version = version + 1 WHERE id = $1`
	tx, err := w.db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // after an error
	if _, err = tx.ExecContext(t.Context(), `SET LOCAL session_replication_role = 'replica'`); err == nil {
		_, err = tx.ExecContext(t.Context(), passes, id)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.temporal.SignalWorkflow(t.Context(), workflows.SwapID(id), "", workflows.SignalResume, nil); err != nil {
		t.Fatal(err)
	}
}

// swapped records a swap that is completed and one that goes back, on Ethereum.
func (r *recorder) swapped(t *testing.T) {
	if r.file("swap_completed") == "" && r.file("swap_refunded") == "" {
		return
	}
	w, n := r.harness, r.harness.ethereum()
	w.swapRates(t)
	s := w.swaps(t, w.as(t, demo.VendorEmail), w.walletOf(t, demo.VendorEmail, n.Network).ID, money.Must(money.USDT, "2"), money.USDC)
	w.swappedOnce(t, n, s.ID)
	r.keep(t, workflows.SwapID(s.ID), "swap_completed")
	r.keep(t, workflows.SwapID(w.swapIsRefunded(t, n).ID), "swap_refunded")
}
