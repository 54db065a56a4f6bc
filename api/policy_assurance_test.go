package api

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// proof is a session of a role by what proved it, and whether that was lately.
type proof struct {
	by    exchange.Assurance
	fresh bool
}

// proofs are all proofs that a role's session can have. The database refuses others.
func proofs(role exchange.Role) []proof {
	all := []proof{{exchange.AssurancePassword, true}, {exchange.AssurancePassword, false}, {exchange.AssurancePasskey, true}, {exchange.AssurancePasskey, false}}
	if !role.Staff() {
		all = append(all, proof{exchange.AssurancePIN, true}, proof{exchange.AssurancePIN, false}, proof{exchange.AssuranceMachine, true})
	}
	return all
}

// provenSession opens a session that was proven as told.
func (e *env) provenSession(u exchange.User, p proof) person {
	e.t.Helper()
	now := e.server.now().UTC()
	begun := p.by
	if begun == exchange.AssurancePasskey {
		begun = exchange.AssurancePassword // a passkey raises it
	}
	s := store.Session{ID: newID(), FamilyID: newID(), UserID: u.ID, Assurance: begun, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	s.TokenHash = sha256.Sum256(s.ID[:])
	if err := e.store.CreateSession(e.t.Context(), s); err != nil {
		e.t.Fatal(err)
	}
	if p.by == exchange.AssurancePasskey {
		e.provePasskey(u, s.FamilyID)
	}
	if !p.fresh {
		storetest.Exec(e.t, e.store, `ALTER TABLE session_families DISABLE TRIGGER session_families_grow;
			UPDATE session_families SET stepped_up_at = stepped_up_at - interval '6 minutes' WHERE id = '`+s.FamilyID.String()+`';
			ALTER TABLE session_families ENABLE TRIGGER session_families_grow`)
	}
	state, err := e.store.AuthState(e.t.Context(), u.ID, s.FamilyID)
	if err != nil {
		e.t.Fatal(err)
	}
	token, _, err := e.server.ring.access(claims{u.ID, s.FamilyID, state.AuthVersion}, now)
	if err != nil {
		e.t.Fatal(err)
	}
	return person{u, token, s.FamilyID}
}

// TestPolicyAsksForProofsOnEveryRoute calls every route that a role may use, by every proof. The expectation comes only from
// the policy.
func TestPolicyAsksForProofsOnEveryRoute(t *testing.T) {
	w := newHarness(t)
	asked, passed := 0, 0
	for _, role := range exchange.Roles() {
		for _, p := range proofs(role) {
			who := w.provenSession(w.people[role].User, p)
			for _, r := range bareRoutes() {
				if r.public || exchange.ScopeOf(role, r.action) == exchange.ScopeNone {
					continue
				}
				needs := exchange.NeedsOf(role, r.action)
				met := p.by.Reaches(needs.Least) && (p.fresh || !needs.StepUp || r.method == get)
				// The path's own object and the body don't matter: the proof is asked for before them.
				path := pathParameter.ReplaceAllString(strings.ReplaceAll(r.path, "{role}", "user"), newID().String())
				if met && (endsSessions(r) || strings.HasSuffix(r.path, "/password")) {
					continue
				}
				var body any
				if r.method == post || r.method == patch {
					body = "{}"
				}
				got := w.do(r.method, path, body, who.auth(), withKey(newID().String()))
				refused := got.status == http.StatusForbidden && got.problem().Code == exchange.CodeStepUpRequired
				if partly := strings.Contains(r.path, "/passkeys"); refused == met && (!partly || !met) {
					t.Errorf("%s %s %s by %s, fresh %v: %d %s, want a proof asked for: %v", role, r.method, r.path, p.by, p.fresh, got.status, got.problem().Code, !met)
				}
				if met {
					passed++
				} else {
					asked++
				}
			}
		}
	}
	if asked < 500 || passed < 500 {
		t.Errorf("only %d calls were asked for a proof and %d passed", asked, passed)
	}
}

// unproven are the actions that a session may do without a proof of the last minutes, and why.
var unproven = map[exchange.Action]string{
	exchange.ActChangeSelf:          "each operation on the own account asks for what it needs",
	exchange.ActWithdrawInvitations: "it takes a right away",
	exchange.ActRemoveDestinations:  "it takes a right away",
	exchange.ActHoldWithdrawals:     "it stops money",
	exchange.ActRetryPayment:        "the payer's phone asks for the operator's PIN",
	exchange.ActCancelOrders:        "it moves nothing",
	exchange.ActCancelTransfers:     "it moves nothing",
	exchange.ActCreateWallets:       "a new wallet is empty, and the choice of a default one leaves what is in the others",
	exchange.ActOpenQuotes:          "a quote is a price",
	exchange.ActQuoteSwaps:          "a quote is a price",
	exchange.ActCancelSwaps:         "it moves nothing",
	exchange.ActCancelProposals:     "it moves nothing",
	exchange.ActReadPricing:         "a replay computes a price again",
	exchange.ActUploadFiles:         "a file is evidence; who decides by it proves itself",
	exchange.ActAnswerDeposits:      "words and files are evidence; who decides by them proves itself",
	exchange.ActAssignDeposits:      "it says who reviews, or stops",
	exchange.ActClaimDeposits:       "a claim confirms nothing",
	exchange.ActReadFiles:           "a link opens for minutes what its maker reads anyway",
}

// TestMoneyIsAmongWhatNeedsAProof walks every route that changes something: it needs a fresh proof, of staff by a passkey, or stands
// above. A program's key is a proof of nobody.
func TestMoneyIsAmongWhatNeedsAProof(t *testing.T) {
	now, walked, seen := time.Now(), 0, map[exchange.Action]bool{}
	for _, r := range bareRoutes() {
		if r.public || r.method == get || unproven[r.action] != "" {
			seen[r.action] = true
			continue
		}
		for _, role := range exchange.Roles() {
			if exchange.ScopeOf(role, r.action) == exchange.ScopeNone {
				continue
			}
			walked++
			needs := r.needs(role)
			machine := exchange.Principal{Role: role, Assurance: exchange.AssuranceMachine, SteppedUpAt: now, SteppedUpBy: exchange.AssuranceMachine}
			if !needs.StepUp || role.Staff() && needs.Least != exchange.AssurancePasskey || needs.Met(machine, now) {
				t.Errorf("%s %s of %s needs %+v", r.method, r.path, role, needs)
			}
		}
	}
	for a := range unproven {
		if !seen[a] {
			t.Errorf("no route does %s", a)
		}
	}
	if walked < 100 {
		t.Errorf("only %d pairs of a route and a role were walked", walked)
	}
}

// TestPINIsNotTheWholeAccount plays who knows a customer's four digits and has a mailbox and an authenticator of its own: it
// takes neither the address nor a passkey, and once the account has a passkey, the password takes them no more either.
func TestPINIsNotTheWholeAccount(t *testing.T) {
	e := start(t)
	e.do(post, "/api/v1/users/register", registration("11000783")).want(http.StatusCreated)
	login := func(path, secret, value string) option {
		t.Helper()
		body := map[string]any{"email": "11000783@example.com", secret: value}
		return bearer(e.do(post, "/api/v1/users/"+path, body).want(http.StatusOK).text("access_token"))
	}
	byPIN, byPassword := login("login-pin", "pin", "4821"), login("login", "password", testPassword)
	const codes = "/api/v1/auth/user/me/verifications"
	another := map[string]any{"email": "thief@example.com"}
	e.do(post, codes, another, byPIN).refused(exchange.CodeStepUpRequired)
	e.do(post, codes, map[string]any{"phone_number": "0711000783"}, byPIN).want(http.StatusAccepted) // its own
	e.do(post, codes, another, byPassword).want(http.StatusAccepted)
	e.do(post, passkeysPath+"/options", nil, byPIN).refused(exchange.CodeStepUpRequired)

	key := newAuthenticator()
	ask := e.do(post, passkeysPath+"/options", nil, byPassword).want(http.StatusCreated)
	added := e.do(post, passkeysPath, map[string]any{"challenge_id": ask.text("challenge_id"), "name": "key", "credential": key.enrols(t, ask)}, byPassword).
		want(http.StatusCreated).text("id")
	for _, auth := range []option{byPIN, byPassword} {
		e.do(del, passkeysPath+"/"+added, nil, auth).refused(exchange.CodeStepUpRequired)
		e.do(post, codes, another, auth).refused(exchange.CodeStepUpRequired)
	}
	ask = e.do(post, stepUpPath+"/options", nil, byPassword).want(http.StatusCreated)
	e.do(post, stepUpPath, map[string]any{"challenge_id": ask.text("challenge_id"), "credential": key.proves(t, ask)}, byPassword).want(http.StatusOK)
	e.do(post, codes, another, byPassword).want(http.StatusAccepted)
	e.do(del, passkeysPath+"/"+added, nil, byPassword).want(http.StatusNoContent)
}
