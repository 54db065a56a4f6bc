package store_test

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// steps are the events of an object, besides those of changes within a status. Each must be its merchant's, and name no member of the staff,
// nothing that the proposer wrote, and no bytes of a signature.
func (h *reserve) steps(t *testing.T, object, payload uuid.UUID) (kinds []string) {
	t.Helper()
	secrets := []string{"invoice 7"}
	for _, by := range []exchange.Principal{h.boss, h.one, h.two, h.three} {
		secrets = append(secrets, by.UserID.String())
	}
	signed, err := h.s.Signatures(t.Context(), payload)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range signed {
		secrets = append(secrets, hex.EncodeToString(g.Signature), base64.StdEncoding.EncodeToString(g.Signature))
	}
	rows, err := storetest.Owner(t, h.s).QueryContext(t.Context(), `SELECT type, coalesce(vendor_id::text, ''), payload::text FROM events WHERE object_id = $1 ORDER BY cursor`, object)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var kind, vendor, body string
		if err := rows.Scan(&kind, &vendor, &body); err != nil {
			t.Fatal(err)
		}
		if vendor != h.merchant.UserID.String() {
			t.Errorf("%s is an event of %q, not of the merchant", kind, vendor)
		}
		for _, secret := range secrets {
			if strings.Contains(body, secret) {
				t.Errorf("%s names %q: %s", kind, secret, body)
			}
		}
		if _, step, _ := strings.Cut(kind, "."); step != "changed" {
			kinds = append(kinds, step)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return kinds
}

// The merchant with whom a wallet is shared gets an event of each step of a payment from it.
func TestMerchantsGetTheEventsOfTheirProposals(t *testing.T) {
	t.Parallel()
	for _, n := range exchange.Networks() {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			ctx, h := t.Context(), newReserve(t, n)
			p, y := h.ready(t, usdt("10"))
			if _, err := h.executes(t, p, h.two); err != nil {
				t.Fatal(err)
			}
			a, err := h.sends(t, p, y)
			if err == nil {
				_, err = h.chain.RecordBroadcast(ctx, a.ID, "SUCCESS", true)
			}
			if err == nil {
				_, err = h.chain.RecordIncluded(ctx, a.ID, 101, "a-101")
			}
			if err == nil {
				_, err = h.chain.RecordFinal(ctx, a.ID, true, 101, "a-101", money.Must(n.NativeCoin(), "0.005"), "SUCCESS")
			}
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"proposed", "approving", "payload", "signing", "signed", "signed", "ready", "broadcasting", "confirming", "executed"}
			if got := h.steps(t, p.ID, y.ID); !slices.Equal(got, want) {
				t.Errorf("the events are %v, not %v", got, want)
			}
			if got := h.steps(t, p.PaymentID, y.ID); len(got) == 0 || got[0] != "approved" || got[len(got)-1] != "completed" {
				t.Errorf("the events of its payment are %v", got)
			}
		})
	}
}

// One that moves nothing says so once, and its payload that nothing can execute it any more.
func TestMerchantsGetTheEndsOfTheirProposals(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Tron)
	opened, rejected := h.opened(t, usdt("10")), h.opened(t, usdt("10"))
	if _, err := h.cancels(t, opened, h.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := h.decides(t, rejected, exchange.Reject, h.boss); err != nil {
		t.Fatal(err)
	}
	signed, y := h.ready(t, usdt("10"))
	if _, err := h.cancels(t, signed, h.merchant); err != nil {
		t.Fatal(err)
	}
	if got := h.steps(t, signed.ID, y.ID); slices.Contains(got, "cancelled") || slices.Contains(got, "void") {
		t.Errorf("before the chain proves that nothing can be executed: %v", got)
	}
	if _, err := h.chain.VoidPayload(t.Context(), y.ID, "it expired"); err != nil {
		t.Fatal(err)
	}
	h.readsOn(t)
	h.advanced(t, signed.ID)
	for p, want := range map[exchange.Proposal][]string{
		opened: {"proposed", "approving", "cancelled"}, rejected: {"proposed", "approving", "rejected"},
		signed: {"proposed", "approving", "payload", "signing", "signed", "signed", "ready", "void", "cancelled"},
	} {
		if got := h.steps(t, p.ID, y.ID); !slices.Equal(got, want) {
			t.Errorf("the events are %v, not %v", got, want)
		}
	}
}
