package api

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// intents reads the intents of a user, oldest first.
func (e *env) intents(of uuid.UUID) []exchange.Intent {
	e.t.Helper()
	rows, err := storetest.Owner(e.t, e.store).QueryContext(e.t.Context(), `SELECT id FROM intents WHERE user_id = $1 ORDER BY created_at, id`, of)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var ids []uuid.UUID
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			e.t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		e.t.Fatal(err)
	}
	all := make([]exchange.Intent, len(ids))
	for i, id := range ids {
		if all[i], err = e.store.Intent(e.t.Context(), id); err != nil {
			e.t.Fatal(err)
		}
	}
	return all
}

// asked are the intents of the sender that are not about its wallet.
func (c *crossing) asked() []exchange.Intent {
	c.t.Helper()
	all := c.intents(c.sender.ID)
	return all[1:] // the first one made the wallet
}

// What a caller asks for is written down with the caller and its session before a flow starts, and is used by that flow.
func TestARequestIsWrittenDownBeforeItsFlowStarts(t *testing.T) {
	c := newCrossing(t, "100")
	id := c.send(away("10")).want(http.StatusCreated).text("id")
	c.verb(c.sender, id, "cancel", nil, "cancel").want(http.StatusOK)
	asked := c.asked()
	if len(asked) != 2 || asked[0].Kind != exchange.IntendTransfer || asked[1].Kind != exchange.IntendTransferCancel {
		t.Fatalf("written %+v", asked)
	}
	for _, i := range asked {
		if i.ObjectID.String() != id || i.By.UserID != c.sender.ID || i.By.Role != exchange.RoleCustomer || i.By.SessionID != c.sender.session || i.By.IP == "" || i.By.RequestID == "" {
			t.Errorf("%s is of %+v about %s", i.Kind, i.By, i.ObjectID)
		}
		if i.UsedBy != "transfer:"+id || !i.RefusedAt.IsZero() {
			t.Errorf("%s is used by %q, refused at %s", i.Kind, i.UsedBy, i.RefusedAt)
		}
	}
	if r, err := exchange.TransferRequestOf(asked[0]); err != nil || r.Recipient.Address != goodAddress || r.Amount.String() != "10.000000" {
		t.Errorf("asked for %+v, %v", r, err)
	}
}

// While the outcome is unknown the intent stays as it is, and the repeated request carries it out. A refusal ends it.
func TestARefusalEndsTheIntentAndAnOutageDoesNot(t *testing.T) {
	c := newCrossing(t, "100")
	c.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "no answer"))
	again := func() *reply { return c.do(post, transfersPath, away("10"), c.sender.auth(), withKey("again")) }
	again().want(http.StatusServiceUnavailable)
	c.flows.failWith(nil)
	again().want(http.StatusCreated)
	if asked := c.asked(); len(asked) != 1 || asked[0].UsedAt.IsZero() {
		t.Errorf("one request is %+v", asked)
	}
	c.send(away("1000")).want(http.StatusConflict)
	asked := c.asked()
	last := asked[len(asked)-1]
	if last.RefusedAt.IsZero() || last.Refusal != exchange.CodeInsufficientFunds || !last.UsedAt.IsZero() {
		t.Errorf("a refused request is %+v", last)
	}
	if _, err := c.store.OpenTransfer(t.Context(), exchange.Asked{IntentID: last.ID, Flow: last.Flow()}); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("a refused request opens %v", err)
	}
}
