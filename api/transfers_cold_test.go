package api

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// Only an officer gets the unsigned transaction, and imports it signed.
func TestColdTransfersAreSignedElsewhere(t *testing.T) {
	c := newCrossing(t, "100")
	storetest.Exec(t, c.store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, c.from.ID)
	id := c.send(sends("5", map[string]any{"user_id": c.other.ID})).want(http.StatusCreated).text("id")
	c.verb(c.sender, id, "payload", nil, "p").refused(exchange.CodeForbidden)
	first := c.verb(c.officers[0], id, "payload", nil, "p1").want(http.StatusOK).object()
	if first["payload"] != hex.EncodeToString([]byte("payload")) || first["amount"] != "5.000000" || first["to_address"] != c.to.Address ||
		first["from_address"] != c.from.Address || first["fee_limit"] != "30.000000" || first["sealed_key"] != nil || first["bid_cap"] != nil {
		t.Errorf("handed out %v", first)
	}
	if again := c.verb(c.admin, id, "payload", nil, "p2").want(http.StatusOK).object(); again["draft_id"] != first["draft_id"] {
		t.Errorf("another one was handed out: %v", again)
	}
	c.verb(c.sender, id, "cancel", nil, "c").refused(exchange.CodeStateConflict)

	bring := func(who person, text any, key string) *reply {
		return c.verb(who, id, "signed-transaction", map[string]any{"signed_transaction": text}, key)
	}
	for key, bad := range map[string]any{
		"a": "", "b": "0x", "c": "abc", "d": "zz", "e": 7, "f": strings.Repeat("ab", exchange.MaxColdBytes+2), "g": hex.EncodeToString([]byte("foreign")),
	} {
		bring(c.officers[0], bad, key).refused(exchange.CodeInvalid)
	}
	good := "0x" + hex.EncodeToString([]byte("signed"))
	bring(c.sender, good, "s").refused(exchange.CodeForbidden)
	if got := bring(c.officers[0], good, "i1").want(http.StatusOK).object(); got["status"] != "broadcasting" {
		t.Errorf("imported %v", got)
	}
	if got := bring(c.officers[1], good, "i2").want(http.StatusOK).object(); got["status"] != "broadcasting" {
		t.Errorf("imported again %v", got)
	}
	if strings.Contains(c.logs.String(), hex.EncodeToString([]byte("signed"))) {
		t.Error("signed bytes are in the log")
	}
}

func TestHotTransfersAreNotHandedOut(t *testing.T) {
	c := newCrossing(t, "100")
	id := c.send(sends("5", map[string]any{"user_id": c.other.ID})).want(http.StatusCreated).text("id")
	c.verb(c.officers[0], id, "payload", nil, "p").refused(exchange.CodeStateConflict)
	c.verb(c.officers[0], id, "signed-transaction", map[string]any{"signed_transaction": "ab"}, "i").refused(exchange.CodeStateConflict)
}
