package demo

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// sharedTime bounds the opening of the wallets of several owners: what another tool did and what comes must be final, which takes TRON a minute.
const sharedTime = 5 * time.Minute

const (
	accountsPath = "/api/v1/auth/multisig/accounts"
	sharedName   = "Baraka and the treasury"
	signing      = 2 // of three owners
)

// opening opens the wallet of several owners of a network, and prints what happens.
type opening struct {
	desk
	node     Node
	store    *store.Store
	merchant uuid.UUID // with whom it is shared
	say      func(format string, args ...any)
}

// OpenShared opens the wallets of several owners (see Share), while GasAhead brings gas to the vendors' wallets.
func OpenShared(ctx context.Context, w Stack) error {
	if err := w.swapTerms(ctx); err != nil { // limits count what a USDT is worth
		return err
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return AwaitGas(inner, w) })
	group.Go(func() error { return w.Share(inner) })
	return group.Wait()
}

// Share has two officers agree to a wallet of several owners on each network, shared with a merchant: two of three owners sign. The house opens it
// on Ethereum and Solana, where an officer's key in the key store is one of the three. On TRON another tool makes it, and it is adopted. One of an
// earlier run is used again.
func (w Stack) Share(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sharedTime)
	defer cancel()
	db, err := store.Open(ctx, w.DatabaseURL, store.Options{MaxConns: 4})
	if err != nil {
		return err
	}
	return errors.Join(w.openEach(ctx, db), db.Close())
}

func (w Stack) openEach(ctx context.Context, db *store.Store) error {
	d := desk{Stack: w, began: time.Now()}
	if err := d.logIn(ctx); err != nil {
		return err
	}
	baraka, err := db.UserByEmail(ctx, VendorEmail)
	if err != nil {
		return err
	}
	w.Say("A wallet of several owners on each network: two of three owners sign what leaves it. The treasury shares it with Baraka, a merchant.")
	group, inner := errgroup.WithContext(ctx)
	for _, n := range w.Sharing() {
		o := opening{desk: d, node: n, store: db, merchant: baraka.ID, say: d.tells(networkNames[n.Network])}
		group.Go(func() error {
			if err := o.open(inner); err != nil {
				return fmt.Errorf("%s: %w", networkNames[n.Network], err)
			}
			return nil
		})
	}
	return group.Wait()
}

// Sharing lists the nodes of the networks that have wallets of several owners.
func (w Stack) Sharing() (all []Node) {
	for _, n := range w.Nodes() {
		if n.Network != exchange.Ethereum || !w.NoSafe {
			all = append(all, n)
		}
	}
	return all
}

// Shared has the fields of an account of several owners that the demo reads.
type Shared struct {
	ID      uuid.UUID `json:"id"`
	Name    string    `json:"name"`
	Address string    `json:"address"`
	Status  string    `json:"status"`
	Detail  string    `json:"status_detail"`
	// PaymentID is the payment that opened it; zero for one that others made.
	PaymentID uuid.UUID `json:"payment_id"`
	Owners    []struct {
		Address string     `json:"address"`
		UserID  *uuid.UUID `json:"user_id"`
		Held    bool       `json:"held"`
	} `json:"owners"`
}

// KeptKey is the address of the owner whose key our key store has; empty without one.
func (s Shared) KeptKey() string {
	for _, o := range s.Owners {
		if o.Held {
			return o.Address
		}
	}
	return ""
}

// SharedWallet finds the demo's wallet on a network, as somebody who may read it.
func SharedWallet(ctx context.Context, c *client.Client, n exchange.Network) (Shared, bool, error) {
	var page struct {
		Accounts []Shared `json:"multisig_accounts"`
	}
	query := url.Values{"page_id": {"1"}, "page_size": {"100"}, "network": {string(n)}}
	if err := c.Get(ctx, accountsPath+"?"+query.Encode(), &page); err != nil {
		return Shared{}, false, err
	}
	for _, s := range page.Accounts {
		if s.Name == sharedName && s.Status != string(exchange.MultisigRefused) {
			return s, true, nil
		}
	}
	return Shared{}, false, nil
}

func (o opening) open(ctx context.Context) error {
	_, found, err := SharedWallet(ctx, o.treasury, o.node.Network)
	if err == nil && !found {
		err = o.agree(ctx)
	}
	if err != nil {
		return err
	}
	s, err := o.active(ctx)
	if err != nil {
		return err
	}
	return o.fill(ctx, s)
}

// agree has two officers agree to the wallet: one asks for it, and the other one confirms it.
func (o opening) agree(ctx context.Context) error {
	multisig := map[string]any{"threshold": signing}
	in := map[string]any{
		"network": o.node.Network, "asset": money.USDT, "label": sharedName, "custody": exchange.MultisigSelf, "multisig": multisig,
		"treasury": map[string]any{"name": sharedName, "merchant_id": o.merchant, "policy": map[string]any{"approvals": 2}},
	}
	path := "/api/v1/auth/wallets/owner"
	if o.node.Network == exchange.Solana {
		path = "/api/v1/auth/wallets/provision"
	} else {
		in["owner_type"] = "treasury"
	}
	var err error
	if o.node.Network == exchange.Tron {
		multisig["address"], multisig["owners"], err = o.made(ctx)
	} else {
		multisig["owners"], err = o.owners(ctx)
	}
	if err != nil {
		return err
	}
	if _, err := (proposal{by: o.treasury, path: path, name: "shared wallet on " + string(o.node.Network), in: in}).agree(ctx, o.colleague); err != nil {
		return fmt.Errorf("the wallet of several owners: %w", err)
	}
	o.say("Njeri asks for a wallet that the treasury shares with Baraka, and Otieno agrees: two of three owners sign")
	return nil
}

// The owners who hold their keys themselves. On TRON Njeri does so too.
const (
	BarakasKey = "Baraka"
	NjerisKey  = "Njeri"
	SafeKey    = "the safe"
)

// OutsideOwner is an owner of the demo's wallet who holds the own key.
func OutsideOwner(n exchange.Network, name string) (Owner, error) {
	return NewOwner(n, "demo "+string(n)+" "+name)
}

// owners are those of a wallet that the house opens: Njeri's key is made in the key store.
func (o opening) owners(ctx context.Context) ([]map[string]any, error) {
	njeri, err := o.store.UserByEmail(ctx, TreasuryEmail)
	if err != nil {
		return nil, err
	}
	all := []map[string]any{{"user_id": njeri.ID, "label": NjerisKey}}
	for _, name := range []string{BarakasKey, SafeKey} {
		own, err := OutsideOwner(o.node.Network, name)
		if err != nil {
			return nil, err
		}
		all = append(all, map[string]any{"address": own.Address, "label": name})
	}
	return all, nil
}

// active waits until the chain has the agreed owners, and the account is a wallet.
func (o opening) active(ctx context.Context) (Shared, error) {
	for last := ""; ; {
		s, found, err := SharedWallet(ctx, o.treasury, o.node.Network)
		if err != nil || !found {
			return s, errors.Join(err, errors.New("the wallet of several owners is not there, or refused"))
		}
		if s.Status != last {
			last = s.Status
			o.tell(s)
		}
		switch exchange.MultisigStatus(s.Status) { //nolint:exhaustive // the others are on their way, and one that is refused is not found
		case exchange.MultisigActive:
			return s, o.opened(ctx, s)
		case exchange.MultisigDiffers:
			return s, fmt.Errorf("the wallet of several owners differs: %s", s.Detail)
		}
		if pause(ctx) != nil {
			return s, fmt.Errorf("the wallet of several owners is still %s: %w", s.Status, ctx.Err())
		}
	}
}

// tell prints how far an account is before it is a wallet.
func (o opening) tell(s Shared) {
	switch exchange.MultisigStatus(s.Status) { //nolint:exhaustive // the others have a line of their own, or an error
	case exchange.MultisigPreparing:
		if o.node.Network == exchange.Tron {
			o.say("preparing: waiting until a final block has the agreed owners")
		} else {
			o.say("preparing: Njeri's key is made in the key store")
		}
	case exchange.MultisigOpening:
		o.say("opening: the house's gas wallet pays for it; waiting until the block is final")
	}
}

// opened prints the wallet, and the transaction that opened it if the house did.
func (o opening) opened(ctx context.Context, s Shared) error {
	by := "and is adopted"
	if s.PaymentID != uuid.Nil {
		p, err := o.store.ChainPayment(ctx, s.PaymentID)
		if err != nil {
			return err
		}
		by = "opened by transaction " + p.TxID
	}
	o.say("active: %s has the agreed owners in a final block, %s", s.Address, by)
	return nil
}

// need is what a wallet gets when it has less than a part of it.
type need struct{ brings, least money.Amount }

// needs are those of a wallet of several owners.
func needs(n exchange.Network) []need {
	all := []need{{money.Must(money.USDT, "100"), money.Must(money.USDT, "20")}}
	if n == exchange.Tron { // it pays its own fees
		all = append(all, need{money.Must(money.TRX, "400"), money.Must(money.TRX, "100")})
	}
	return all
}

// fill sends the wallet what it lacks from outside, and waits until that is booked.
func (o opening) fill(ctx context.Context, s Shared) error {
	w, err := o.store.Wallet(ctx, store.Everything(), s.ID)
	if err != nil {
		return err
	}
	for _, m := range needs(o.node.Network) {
		has, err := Held(ctx, o.store, w, m.brings.Asset())
		if err != nil {
			return err
		}
		if has.Cmp(m.least) < 0 {
			if err := o.node.Fund(ctx, s.Address, m.brings); err != nil {
				return err
			}
			if err := Booked(ctx, o.store, w, m.brings); err != nil {
				return err
			}
			if has, err = Held(ctx, o.store, w, m.brings.Asset()); err != nil {
				return err
			}
		}
		o.say("it has %s %s", has, has.Asset())
	}
	return nil
}
