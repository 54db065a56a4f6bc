package storetest

import (
	"context"
	"maps"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// The functions of this file do what the API and a flow do together: they write down an intent and carry it out.

// Ask writes down an intent, whose id is the request's, and returns what its flow passes to the store. It refuses other terms
// than those of the first request with the id: a test that asks for something else needs another id.
func Ask(ctx context.Context, s *store.Store, kind exchange.IntentKind, request, object uuid.UUID, terms exchange.Terms, by exchange.Principal) (exchange.Asked, error) {
	i, err := s.SaveIntent(ctx, exchange.Intent{ID: request, Kind: kind, ObjectID: object, By: by, Terms: terms})
	if err == nil && !maps.Equal(i.Terms, terms) {
		err = exchange.Errorf(exchange.CodeInternal, "the test asks for something else under an old id: %v, not %v", terms, i.Terms)
	}
	return exchange.Asked{IntentID: i.ID, Flow: i.Flow()}, err
}

// OpenTransfer opens a transfer for its requester.
func OpenTransfer(ctx context.Context, s *store.Store, r exchange.TransferRequest, by exchange.Principal) (exchange.Transfer, error) {
	by.UserID = r.RequestedBy
	a, err := Ask(ctx, s, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.Transfer{}, err
	}
	return s.OpenTransfer(ctx, a)
}

// CancelTransfer cancels a transfer for the caller, or for its requester if there is no caller.
func CancelTransfer(ctx context.Context, s *store.Store, id uuid.UUID, by exchange.Principal) (exchange.Transfer, error) {
	if by.UserID == uuid.Nil {
		f, err := s.TransferByID(ctx, id)
		if err != nil {
			return f, err
		}
		by.UserID = f.RequestedBy
	}
	a, err := Ask(ctx, s, exchange.IntendTransferCancel, uuid.New(), id, nil, by)
	if err != nil {
		return exchange.Transfer{}, err
	}
	return s.CancelTransfer(ctx, id, a)
}

// OpenOrder opens a purchase for its customer, or for the merchant who asks.
func OpenOrder(ctx context.Context, s *store.Store, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	a, err := askOrder(ctx, s, exchange.IntendPurchase, r, by)
	if err != nil {
		return exchange.Order{}, err
	}
	return s.OpenOrder(ctx, a)
}

// OpenOffRamp opens a sale for its customer, or for the merchant who asks. The provider of the request pays it out.
func OpenOffRamp(ctx context.Context, s *store.Store, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	a, err := askOrder(ctx, s, exchange.IntendSale, r, by)
	if err != nil {
		return exchange.Order{}, err
	}
	return s.OpenOffRamp(ctx, a, r.Provider)
}

func askOrder(ctx context.Context, s *store.Store, kind exchange.IntentKind, r exchange.OrderRequest, by exchange.Principal) (exchange.Asked, error) {
	if by.UserID = r.CustomerID; r.OpenerID != uuid.Nil {
		by.UserID = r.OpenerID
	}
	return Ask(ctx, s, kind, r.ID, r.ID, r.Terms(), by)
}

// CreateWallet creates a wallet for its creator, or for the platform's treasury if it has none.
func CreateWallet(ctx context.Context, s *store.Store, r exchange.WalletRequest, address string, key exchange.SealedKey) (exchange.Wallet, error) {
	by := By
	if by.UserID = r.CreatedBy; by.UserID == uuid.Nil {
		by.UserID = exchange.PlatformTreasury
	}
	a, err := Ask(ctx, s, exchange.IntendWallet, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.Wallet{}, err
	}
	return s.CreateWallet(ctx, a, address, key)
}

// CopyIntent writes down for another object what the intent of an order, a transfer or a wallet asks for, as used. Tests copy
// rows by SQL to change them past the code.
func CopyIntent(t testing.TB, s *store.Store, table string, of, object uuid.UUID) uuid.UUID {
	t.Helper()
	var id uuid.UUID
	err := Owner(t, s).QueryRowContext(t.Context(), `SELECT intent_id FROM `+table+` WHERE id = $1`, of).Scan(&id)
	var i exchange.Intent
	if err == nil {
		i, err = s.Intent(t.Context(), id)
	}
	if err == nil {
		i.ID, i.ObjectID = NewID(t), object
		i, err = s.SaveIntent(t.Context(), i)
	}
	if err != nil {
		t.Fatalf("copy an intent: %v", err)
	}
	Exec(t, s, `UPDATE intents SET used_at = created_at, used_by = $2 WHERE id = $1`, i.ID, i.Flow())
	return i.ID
}

// Flowless is the store of steps that a test runs outside of a flow: each intent is used for its own flow.
type Flowless struct{ *store.Store }

func (s Flowless) own(ctx context.Context, a exchange.Asked) (exchange.Asked, error) {
	if a.IntentID == uuid.Nil {
		return a, nil
	}
	i, err := s.Intent(ctx, a.IntentID)
	a.Flow = i.Flow()
	return a, err
}

// UseIntent uses an intent for its own flow.
func (s Flowless) UseIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) (exchange.Intent, error) {
	a, err := s.own(ctx, a)
	if err != nil {
		return exchange.Intent{}, err
	}
	return s.Store.UseIntent(ctx, a, kind)
}

// Acting acts for the intent's own flow.
func (s Flowless) Acting(ctx context.Context, a exchange.Asked) (exchange.Principal, error) {
	a, err := s.own(ctx, a)
	if err != nil {
		return exchange.Principal{}, err
	}
	return s.Store.Acting(ctx, a)
}
