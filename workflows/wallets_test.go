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
	"kivuko/workflows"
)

// keyRing is a signer that makes another key each time.
type keyRing struct{ made int }

func (k *keyRing) CreateKey(_ context.Context, wallet uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	if n != exchange.Tron {
		return "", exchange.SealedKey{}, exchange.Errorf(exchange.CodeUnsupported, "No key can be made for the network %s.", n)
	}
	k.made++
	address := fmt.Sprintf("TKey%d", k.made)
	return address, exchange.SealedKey{WalletID: wallet, PublicKey: []byte(address)}, nil
}

func (b *book) CreateWallet(_ context.Context, r exchange.WalletRequest, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	return tx(b, "CreateWallet", func() (exchange.Wallet, error) {
		if w, ok := b.wallets[r.ID]; ok {
			return w, nil
		}
		if string(key.PublicKey) != address || key.WalletID != r.ID {
			return exchange.Wallet{}, exchange.Errorf(exchange.CodeConflict, "the key is not that of the address")
		}
		w := exchange.Wallet{ID: r.ID, Address: address, Network: r.Network}
		b.wallets[r.ID] = w
		return w, nil
	})
}

func walletRequest(n exchange.Network) exchange.WalletRequest {
	return exchange.WalletRequest{ID: id(20), OwnerType: exchange.OwnerMerchant, OwnerID: id(21), Network: n, Asset: money.USDT, Type: exchange.Hot}
}

// create runs the flow once and returns its result.
func (w *harness) create(r exchange.WalletRequest) (workflows.WalletCreated, error) {
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.WalletID(r.ID), TaskQueue: workflows.QueueFlows})
	w.env.ExecuteWorkflow(workflows.CreateWallet, r)
	if err := w.env.GetWorkflowError(); err != nil {
		return workflows.WalletCreated{}, err
	}
	var made workflows.WalletCreated
	err := w.env.GetWorkflowResult(&made)
	return made, err
}

func TestWalletIsMade(t *testing.T) {
	w := newHarness()
	made, err := w.create(walletRequest(exchange.Tron))
	if err != nil {
		t.Fatal(err)
	}
	if stored := w.book.wallets[id(20)]; made.WalletID != id(20) || made.Address != stored.Address || w.keys.made != 1 {
		t.Errorf("made %+v with %d keys, stored %+v", made, w.keys.made, stored)
	}
}

// A key may be created twice, because the step crashed around its transaction or its response was lost. The wallet has only
// one: the flow returns the address of the stored key.
func TestWalletWhoseKeyIsMadeTwice(t *testing.T) {
	for name, trouble := range map[string]func(*harness){
		"not stored": func(w *harness) { w.book.fault = once("CreateWallet") },
		"stored and not heard of": func(w *harness) {
			w.book.lost = once("CreateWallet")
		},
		"done and not heard of": func(w *harness) {
			w.env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Hour, Interceptors: []interceptor.WorkerInterceptor{&dying{faults: &faults{deaths: map[int]bool{1: true}}}}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness()
			trouble(w)
			made, err := w.create(walletRequest(exchange.Tron))
			if err != nil {
				t.Fatal(err)
			}
			if w.keys.made != 2 {
				t.Fatalf("%d keys were made, the trouble should have cost one", w.keys.made)
			}
			if stored := w.book.wallets[id(20)]; len(w.book.wallets) != 1 || made.Address != stored.Address {
				t.Errorf("returned %+v, stored %+v", made, w.book.wallets)
			}
		})
	}
}

// A second flow for the same request returns the first one's wallet.
func TestWalletIsTheSameAgain(t *testing.T) {
	first := newHarness()
	before, err := first.create(walletRequest(exchange.Tron))
	if err != nil {
		t.Fatal(err)
	}
	second := newHarness()
	second.book.wallets, second.keys.made = first.book.wallets, 7
	again, err := second.create(walletRequest(exchange.Tron))
	if err != nil || again != before {
		t.Errorf("the second flow made %+v (%v), the first %+v", again, err, before)
	}
}

func TestWalletOnANetworkWithoutKeys(t *testing.T) {
	w := newHarness()
	_, err := w.create(walletRequest(exchange.Solana))
	if code(err) != exchange.CodeUnsupported || len(w.book.wallets) != 0 {
		t.Errorf("the response is %v, stored %v", err, w.book.wallets)
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

func TestAuditIsSealedDespiteAnOutage(t *testing.T) {
	w := newHarness()
	w.book.unsealed, w.book.fault = 42, once("SealAudit")
	w.env.ExecuteWorkflow(workflows.SealAudit)
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var sealed struct {
		Rows int `json:"rows"`
	}
	if err := w.env.GetWorkflowResult(&sealed); err != nil || sealed.Rows != 42 || w.book.unsealed != 0 {
		t.Errorf("sealed %+v (%v), %d rows are left", sealed, err, w.book.unsealed)
	}
}

// Only the process that holds a network's keys makes keys for it.
func TestKeysAreMadeOnTheQueueOfTheirNetwork(t *testing.T) {
	for _, n := range exchange.Networks() {
		w := newHarness()
		var queues []string
		w.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
			queues = append(queues, info.ActivityType.Name+" on "+info.TaskQueue)
		})
		_, _ = w.create(walletRequest(n)) // the harness's signer makes TRON keys only, but is called for every network
		if len(queues) != 1 || queues[0] != "MakeWallet on "+workflows.QueueSigner(n) {
			t.Errorf("%s: %v", n, queues)
		}
	}
}
