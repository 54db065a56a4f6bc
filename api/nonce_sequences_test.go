package api

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// An admin proposes to reopen a closed sequence, from the chain's count at that moment, and once for a key; another officer
// confirms it.
func TestReopenNonceSequence(t *testing.T) {
	final, asked := uint64(9), 0
	e := start(t, everywhere, func(d *Deps) {
		d.Counts = map[exchange.Network]func(context.Context, string) (exchange.SenderCount, error){
			exchange.Ethereum: func(context.Context, string) (exchange.SenderCount, error) {
				asked++
				if final == 0 {
					return exchange.SenderCount{}, errors.New("node 10.0.0.7 refused the connection")
				}
				return exchange.SenderCount{Latest: final, Final: final, Block: exchange.ChainBlock{Number: 77, ID: "block-77"}}, nil
			},
			exchange.Tron: func(context.Context, string) (exchange.SenderCount, error) {
				return exchange.SenderCount{}, exchange.Errorf(exchange.CodeUnsupported, "The network tron numbers no transactions.")
			},
		}
	})
	admin := e.person(exchange.RoleAdmin)
	owner := e.person(exchange.RoleCustomer)
	path := func(n exchange.Network) string {
		return "/api/v1/auth/wallet/id/" + storetest.WalletOn(t, e.store, owner.User, n).ID.String() + "/reopen-nonce-sequence"
	}
	closed := storetest.WalletOn(t, e.store, owner.User, exchange.Ethereum)
	storetest.Exec(t, e.store, `INSERT INTO nonce_sequences (wallet_id, first, next, opened_at) VALUES ($1, 7, 7, now())`, closed.ID)
	storetest.Exec(t, e.store, `UPDATE nonce_sequences SET foreign_nonce = 7 WHERE wallet_id = $1`, closed.ID)
	why := map[string]any{"note": "the database was put back by an hour"}
	reopen := "/api/v1/auth/wallet/id/" + closed.ID.String() + "/reopen-nonce-sequence"

	e.do(post, reopen, why, owner.auth(), withKey("a")).refused(exchange.CodeForbidden)
	e.do(post, reopen, why, e.person(exchange.RoleTreasury).auth(), withKey("b")).refused(exchange.CodeForbidden)
	e.do(post, reopen, why, admin.auth()).want(http.StatusPreconditionRequired)
	e.do(post, reopen, map[string]any{}, admin.auth(), withKey("c")).blames("/note required")
	e.do(post, path(exchange.Tron), why, admin.auth(), withKey("d")).refused(exchange.CodeUnsupported)
	e.do(post, path(exchange.Solana), why, admin.auth(), withKey("e")).refused(exchange.CodeUnsupported)
	e.do(post, path(exchange.Ethereum), why, admin.auth(), withKey("f")).refused(exchange.CodeStateConflict) // nothing was ever sent
	final = 0
	e.do(post, reopen, why, admin.auth(), withKey("g")).refused(exchange.CodeUnavailable)
	final, asked = 9, 0
	first := e.do(post, reopen, why, admin.auth(), withKey("h")).want(http.StatusAccepted)
	again := e.do(post, reopen, why, admin.auth(), withKey("h")).want(http.StatusAccepted)
	if string(first.body) != string(again.body) || asked != 1 {
		t.Errorf("the chain was asked %d times, and the answers are %s and %s", asked, first.body, again.body)
	}
	if sequence, _, err := e.store.NonceSequence(t.Context(), closed.ID); err != nil || sequence.Next != 7 || !sequence.Foreign {
		t.Errorf("one officer alone made the sequence %+v, %v", sequence, err)
	}
	e.agree(first, e.person(exchange.RoleTreasury))
	e.do(post, reopen, why, admin.auth(), withKey("i")).refused(exchange.CodeStateConflict) // it is open
	sequence, _, err := e.store.NonceSequence(t.Context(), closed.ID)
	if err != nil || sequence.Next != 9 || sequence.Foreign {
		t.Errorf("the sequence is %+v, %v", sequence, err)
	}
}
