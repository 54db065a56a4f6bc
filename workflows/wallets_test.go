package workflows_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// keyRing is a signer that makes another key each time.
type keyRing struct{ made int }

func (k *keyRing) CreateKey(_ context.Context, wallet uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	if n != exchange.Tron {
		return "", exchange.SealedKey{}, exchange.Errorf(exchange.CodeUnsupported, "No key can be made for the network %s.", n)
	}
	k.made++
	address := fmt.Sprintf("TKey%030d", k.made)
	return address, exchange.SealedKey{
		WalletID: wallet, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte(address), Algorithm: "secp256k1",
	}, nil
}

func (w *harness) walletRequest(n exchange.Network) exchange.WalletRequest {
	return exchange.WalletRequest{
		ID: id(20), OwnerType: exchange.OwnerMerchant, OwnerID: w.market.Vendor.ID, VendorID: w.market.Vendor.ID, Network: n, Asset: money.USDT, Type: exchange.Hot, CreatedBy: w.market.Vendor.ID,
	}
}

// wallet reads the wallet that was asked for, which is empty when there is none.
func (w *harness) wallet() exchange.Wallet {
	found, err := w.store.Wallet(w.t.Context(), store.Everything(), id(20))
	if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		w.t.Error(err)
	}
	return found
}

// create runs the flow once and returns its result.
func (w *harness) create(r exchange.WalletRequest) (workflows.WalletCreated, error) {
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.WalletID(r.ID), TaskQueue: workflows.QueueFlows})
	by := exchange.Principal{UserID: r.CreatedBy, Role: exchange.RoleVendor}
	in := workflows.CreateWalletInput{IntentID: w.intends(exchange.IntendWallet, r.ID, r.ID, r.Terms(), by).IntentID}
	w.env.ExecuteWorkflow(workflows.CreateWallet, in)
	if err := w.env.GetWorkflowError(); err != nil {
		return workflows.WalletCreated{}, err
	}
	var made workflows.WalletCreated
	err := w.env.GetWorkflowResult(&made)
	return made, err
}

func TestWalletIsMade(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	made, err := w.create(w.walletRequest(exchange.Tron))
	if err != nil {
		t.Fatal(err)
	}
	if stored := w.wallet(); made.WalletID != id(20) || made.Address != stored.Address || w.keys.made != 1 {
		t.Errorf("made %+v with %d keys, stored %+v", made, w.keys.made, stored)
	}
}

// A key may be created twice, because the step crashed around its transaction or its response was lost. The wallet has only
// one: the flow returns the address of the stored key.
func TestWalletWhoseKeyIsMadeTwice(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*harness){
		"not stored": func(w *harness) { w.store.fault = once("CreateWallet") },
		"stored, and the response was lost": func(w *harness) {
			w.store.lost = once("CreateWallet")
		},
		"done, and the response was lost": func(w *harness) {
			w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Hour, Interceptors: []interceptor.WorkerInterceptor{&dying{faults: &faults{deaths: map[int]bool{2: true}}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			trouble(w)
			made, err := w.create(w.walletRequest(exchange.Tron))
			if err != nil {
				t.Fatal(err)
			}
			if w.keys.made != 2 {
				t.Fatalf("%d keys were made, the trouble should have cost one", w.keys.made)
			}
			if stored := w.wallet(); made.Address != stored.Address {
				t.Errorf("returned %+v, stored %+v", made, stored)
			}
		})
	}
}

// A second flow for the same request returns the first one's wallet.
func TestWalletIsTheSameAgain(t *testing.T) {
	t.Parallel()
	first := newHarness(t)
	before, err := first.create(first.walletRequest(exchange.Tron))
	if err != nil {
		t.Fatal(err)
	}
	second := newHarness(t)
	second.store.Store, second.keys.made = first.store.Store, 7
	again, err := second.create(first.walletRequest(exchange.Tron))
	if err != nil || again != before {
		t.Errorf("the second flow made %+v (%v), the first %+v", again, err, before)
	}
}

func TestWalletOnANetworkWithoutKeys(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	_, err := w.create(w.walletRequest(exchange.Solana))
	if code(err) != exchange.CodeUnsupported || w.wallet().ID != uuid.Nil {
		t.Errorf("the response is %v, stored %v", err, w.wallet())
	}
	if waited := w.env.Now().Sub(w.start); waited > time.Second {
		t.Errorf("a refusal was retried for %s", waited)
	}
}

// once makes the first of the given calls fail.
func once(call string) func(string) error {
	hit := false
	return func(c string) error {
		if c != call || hit {
			return nil
		}
		hit = true
		return errAway
	}
}

// rowsToSeal waits until every audit row may be sealed, and returns their number. A row waits for the end of all older
// transactions of the server, also those of other tests.
func rowsToSeal(t *testing.T, s *store.Store) int {
	t.Helper()
	owner := storetest.Owner(t, s)
	for deadline := time.Now().Add(time.Hour); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		var rows, early int
		err := owner.QueryRowContext(t.Context(),
			`SELECT count(*), count(*) FILTER (WHERE id >= log_horizon()) FROM audit_log`).Scan(&rows, &early)
		if err != nil || rows == 0 {
			t.Fatalf("%d rows to seal, %v", rows, err)
		}
		if early == 0 {
			return rows
		}
	}
	t.Fatal("another transaction ran for an hour")
	return 0
}

func TestAuditIsSealedDespiteAnOutage(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.store.fault = once("SealAudit")
	rows := rowsToSeal(t, w.store.Store)
	w.env.ExecuteWorkflow(workflows.SealAudit)
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var sealed struct {
		Rows int `json:"rows"`
	}
	if err := w.env.GetWorkflowResult(&sealed); err != nil || sealed.Rows != rows {
		t.Errorf("sealed %+v of %d rows (%v)", sealed, rows, err)
	}
	if left, err := w.store.SealAudit(t.Context()); err != nil || left != 0 {
		t.Errorf("%d rows were left, %v", left, err)
	}
}

// Only the process that holds a network's keys makes keys for it.
func TestKeysAreMadeOnTheQueueOfTheirNetwork(t *testing.T) {
	t.Parallel()
	for _, n := range exchange.Networks() {
		w := newHarness(t)
		var queues []string // of the activities that are not local
		w.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
			queues = append(queues, info.ActivityType.Name+" on "+info.TaskQueue)
		})
		_, _ = w.create(w.walletRequest(n)) // the harness's signer makes TRON keys only, but is called for every network
		if len(queues) != 1 || queues[0] != "MakeWallet on "+workflows.QueueSigner(n) {
			t.Errorf("%s: %v", n, queues)
		}
	}
}
