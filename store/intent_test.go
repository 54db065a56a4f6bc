package store_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// asked writes down an intent of the purse's owner to send, and returns it with the request.
func (p purse) asked(t *testing.T) (exchange.TransferRequest, exchange.Asked) {
	t.Helper()
	r := p.request(t, "10", exchange.Recipient{Address: outside})
	a, err := storetest.Ask(t.Context(), p.store, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), storetest.PrincipalOf(p.sender))
	if err != nil {
		t.Fatal(err)
	}
	return r, a
}

func TestAnIntentOpensOneTransferForItsFlow(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	r, a := p.asked(t)
	for what, other := range map[string]exchange.Asked{
		"another flow":           {IntentID: a.IntentID, Flow: "transfer:" + uuid.NewString()},
		"no flow":                {IntentID: a.IntentID},
		"a flow of another kind": {IntentID: a.IntentID, Flow: "off-ramp:" + r.ID.String()},
		"no intent":              {Flow: a.Flow},
		"an unknown intent":      {IntentID: uuid.New(), Flow: a.Flow},
	} {
		if _, err := p.store.OpenTransfer(t.Context(), other); exchange.CodeOf(err) != exchange.CodeNotFound {
			t.Errorf("%s opened a transfer: %v", what, err)
		}
	}
	f := twice(t, func(a, b exchange.Transfer) bool { return a.ID == b.ID && a.Version == b.Version }, func() (exchange.Transfer, error) {
		return p.store.OpenTransfer(t.Context(), a)
	})
	if f.ID != r.ID || f.RequestedBy != p.sender.ID || !f.Amount.Equal(r.Amount) || f.ToAddress != outside {
		t.Errorf("opened %+v, asked for %+v", f, r)
	}
	i, err := p.store.Intent(t.Context(), a.IntentID)
	if err != nil || i.UsedAt.IsZero() || i.UsedBy != a.Flow {
		t.Errorf("the intent is %+v, %v", i, err)
	}
	wantBalance(t, p.store, p.balance(), "100", "10")
	if err := p.store.RefuseIntent(t.Context(), a.IntentID, exchange.CodeInvalid); err != nil {
		t.Fatal(err)
	}
	if i, err = p.store.Intent(t.Context(), a.IntentID); err != nil || !i.RefusedAt.IsZero() {
		t.Errorf("a used intent was refused: %+v, %v", i, err)
	}
}

// What the caller was told is refused opens nothing later, and the caller may ask again under the same key.
func TestARefusedIntentOpensNothing(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "5")
	r, a := p.asked(t)
	_, err := p.store.OpenTransfer(t.Context(), a)
	wantFault(t, err, exchange.CodeInsufficientFunds)
	if err := p.store.RefuseIntent(t.Context(), a.IntentID, exchange.CodeOf(err)); err != nil {
		t.Fatal(err)
	}
	storetest.Deposit(t, p.store, p.wallet.ID, usdt("100"))
	_, err = p.store.OpenTransfer(t.Context(), a)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBalance(t, p.store, p.balance(), "105", "0")

	again, err := storetest.Ask(t.Context(), p.store, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), storetest.PrincipalOf(p.sender))
	if err != nil || again.IntentID == a.IntentID || again.Flow != a.Flow {
		t.Fatalf("asked again: %+v, %v", again, err)
	}
	if f, err := p.store.OpenTransfer(t.Context(), again); err != nil || f.ID != r.ID {
		t.Errorf("opened %+v, %v", f, err)
	}
	_, err = storetest.Ask(t.Context(), p.store, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), storetest.PrincipalOf(p.other))
	wantFault(t, err, exchange.CodeConflict)
}

func TestAnIntentLapses(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return now }})
	p := newPurseIn(t, s, "100")
	r, a := p.asked(t)
	now = now.Add(exchange.IntentLife)
	_, err := s.OpenTransfer(t.Context(), a)
	wantFault(t, err, exchange.CodeExpired)
	if err := s.CheckIntent(t.Context(), a, exchange.IntendTransfer); exchange.CodeOf(err) != exchange.CodeExpired {
		t.Errorf("checked: %v", err)
	}
	again, err := storetest.Ask(t.Context(), s, exchange.IntendTransfer, r.ID, r.ID, r.Terms(), storetest.PrincipalOf(p.sender))
	if err != nil || again.IntentID == a.IntentID {
		t.Fatalf("asked again: %+v, %v", again, err)
	}
	if _, err := s.OpenTransfer(t.Context(), again); err != nil {
		t.Error(err)
	}
}

// An intent to cancel acts for the caller that it names, and is worth nothing for another transfer or another verb.
func TestCancellingNeedsAnIntent(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f, g := p.open(t, "10", exchange.Recipient{Address: outside}), p.open(t, "20", exchange.Recipient{Address: outside})
	ctx, by := t.Context(), storetest.PrincipalOf(p.sender)
	for what, a := range map[string]func() (exchange.Asked, error){
		"no intent": func() (exchange.Asked, error) { return exchange.Asked{Flow: "transfer:" + f.ID.String()}, nil },
		"an intent to get the payload": func() (exchange.Asked, error) {
			return storetest.Ask(ctx, p.store, exchange.IntendColdPayload, uuid.New(), f.ID, nil, by)
		},
		"an intent for another transfer": func() (exchange.Asked, error) {
			return storetest.Ask(ctx, p.store, exchange.IntendTransferCancel, uuid.New(), g.ID, nil, by)
		},
		"the intent that opened it": func() (exchange.Asked, error) {
			return exchange.Asked{IntentID: f.ID, Flow: "transfer:" + f.ID.String()}, nil
		},
	} {
		asked, err := a()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.store.CancelTransfer(ctx, f.ID, asked); exchange.CodeOf(err) != exchange.CodeNotFound {
			t.Errorf("%s cancelled a transfer: %v", what, err)
		}
	}
	wantBalance(t, p.store, p.balance(), "100", "30")
	cancelled, err := storetest.CancelTransfer(ctx, p.store, f.ID, by)
	if err != nil || cancelled.StatusDetail != exchange.DetailBySender {
		t.Errorf("cancelled %+v, %v", cancelled, err)
	}
	if other, err := storetest.CancelTransfer(ctx, p.store, g.ID, storetest.PrincipalOf(p.officers[0])); err != nil || other.StatusDetail != exchange.DetailByStaff {
		t.Errorf("cancelled by an officer: %+v, %v", other, err)
	}
}

// The database refuses intents that say something else than their statements, changes of what was asked, and objects that
// nobody asked for.
func TestIntentsAreGuarded(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	ctx, owner := t.Context(), storetest.Owner(t, p.store)
	r, a := p.asked(t)
	f := p.open(t, "7", exchange.Recipient{Address: outside})
	copied := func(change string) string {
		return fmt.Sprintf(`INSERT INTO intents SELECT (jsonb_populate_record(i, '%s')).* FROM intents i WHERE i.id = '%s'`, change, a.IntentID)
	}
	transfer := func(intent uuid.UUID, change string) string {
		return fmt.Sprintf(`INSERT INTO transfers SELECT (jsonb_populate_record(f, '{"id": "%s", "intent_id": "%s", "hold_id": "%s"%s}')).* FROM transfers f WHERE f.id = '%s'`,
			r.ID, intent, uuid.New(), change, f.ID)
	}
	for what, c := range map[string]struct{ query, state string }{
		"another user":                       {copied(fmt.Sprintf(`{"user_id": "%s"}`, p.other.ID)), "KV002"},
		"another kind":                       {copied(`{"kind": "transfer.cancel"}`), "KV002"},
		"another object":                     {copied(fmt.Sprintf(`{"object_id": "%s"}`, uuid.New())), "KV002"},
		"a longer life":                      {copied(`{"expires_at": "2030-01-01"}`), "KV002"},
		"one that was used":                  {copied(fmt.Sprintf(`{"used_at": "2026-01-01", "used_by": "transfer:%s"}`, r.ID)), "KV002"},
		"another digest":                     {copied(`{"digest": "\\x00"}`), "23514"},
		"the same twice":                     {copied(`{}`), "23505"},
		"a changed statement":                {`UPDATE intents SET statement = statement || '\x20'`, "KV002"},
		"a changed user":                     {fmt.Sprintf(`UPDATE intents SET user_id = '%s'`, p.other.ID), "KV002"},
		"removed":                            {`DELETE FROM intents`, "KV002"},
		"used by another flow":               {fmt.Sprintf(`UPDATE intents SET used_at = created_at, used_by = 'transfer:%s' WHERE id = '%s'`, uuid.New(), a.IntentID), "23514"},
		"used after its end":                 {fmt.Sprintf(`UPDATE intents SET used_at = expires_at + interval '1 second', used_by = '%s' WHERE id = '%s'`, a.Flow, a.IntentID), "23514"},
		"unused again":                       {fmt.Sprintf(`UPDATE intents SET used_at = NULL, used_by = NULL WHERE id = '%s'`, f.ID), "KV002"},
		"a transfer without one":             {transfer(uuid.New(), ""), "23503"},
		"a transfer by an unused one":        {transfer(a.IntentID, ""), "KV002"},
		"a transfer by another's intent":     {transfer(f.ID, ""), "23505"},
		"a transfer that changes its intent": {fmt.Sprintf(`UPDATE transfers SET intent_id = '%s'`, a.IntentID), "KV002"},
	} {
		if _, err := owner.ExecContext(ctx, c.query); sqlState(err) != c.state {
			t.Errorf("%s: %v, want %s", what, err, c.state)
		}
	}
	storetest.Exec(t, p.store, `UPDATE intents SET used_at = created_at, used_by = $2 WHERE id = $1`, a.IntentID, a.Flow)
	for what, change := range map[string]string{
		"another amount":    `"amount": 900`,
		"another recipient": `"to_address": "TOutsideAddressOfAThief00000000001"`,
		"another network":   `"network": "ethereum"`,
		"another requester": fmt.Sprintf(`"requested_by": "%s"`, p.other.ID),
		"another wallet":    fmt.Sprintf(`"wallet_id": "%s"`, p.theirs.ID),
	} {
		_, err := owner.ExecContext(ctx, transfer(a.IntentID, `, "amount": 10, "value": 1000000, "approvals_required": 2, `+change))
		if sqlState(err) != "KV002" {
			t.Errorf("%s is opened by the intent: %v", what, err)
		}
	}
	_, err := owner.ExecContext(ctx, transfer(a.IntentID, `, "amount": 900, "value": 1000000, "approvals_required": 2`))
	if err == nil || !strings.Contains(err.Error(), "is not what was asked for") {
		t.Errorf("another amount is opened: %v", err)
	}
	_, err = owner.ExecContext(ctx, transfer(a.IntentID, `, "amount": 10, "value": 1000000, "approvals_required": 2`))
	if err == nil || strings.Contains(err.Error(), "asked for") {
		t.Errorf("what was asked for lacks only its hold, and is refused with %v", err)
	}
}

// Of many flows that use one intent at once, one transaction uses it; the others find what it opened.
func TestRaceAnIntentIsUsedOnce(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	_, a := p.asked(t)
	const flows = 8
	errs := make(chan error, flows)
	for range flows {
		go func(ctx context.Context) {
			_, err := p.store.OpenTransfer(ctx, a)
			errs <- err
		}(t.Context())
	}
	for range flows {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	wantBalance(t, p.store, p.balance(), "100", "10")
}

// The database knows the same kinds of intents, and the same flow for each.
func TestIntentKindsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	owner, object := storetest.Owner(t, s), uuid.New()
	var check string
	err := owner.QueryRowContext(t.Context(), `SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'intents_kind_check'`).Scan(&check)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(check, ".") != len(exchange.IntentKinds()) { // each kind has one
		t.Errorf("the database has another number of kinds than %d: %s", len(exchange.IntentKinds()), check)
	}
	for _, kind := range exchange.IntentKinds() {
		var flow string
		if err := owner.QueryRowContext(t.Context(), `SELECT coalesce(intent_flow($1, $2), '')`, kind, object).Scan(&flow); err != nil {
			t.Fatal(err)
		}
		if want := (exchange.Intent{Kind: kind, ObjectID: object}).Flow(); flow != want || !strings.Contains(check, "'"+string(kind)+"'") {
			t.Errorf("the flow of %s is %q, want %q; the kinds are %s", kind, flow, want, check)
		}
	}
}
