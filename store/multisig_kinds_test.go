package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// changes asks for other owners: the first owner stays, the second and third leave, an officer with a new key and an outsider come.
func (h *reserve) changes(t *testing.T) exchange.ProposalRequest {
	t.Helper()
	c := exchange.OwnersChange{Threshold: 2, Owners: []exchange.MultisigOwner{
		{Address: h.account.Owners[0].Address, Label: "A"}, {UserID: h.three.UserID, Label: "new"}, {Address: "owner-" + storetest.NewID(t).String()},
	}}
	if h.n == exchange.Tron {
		c.ControlThreshold, c.Threshold = 5, 3
		c.Owners[0].Weight, c.Owners[1].Weight, c.Owners[2].Weight = 2, 2, 1
	}
	return exchange.ProposalRequest{ID: storetest.NewID(t), Kind: exchange.ProposeOwners, WalletID: h.wallet.ID, Reference: "hire", Change: c.Complete(h.account)}
}

func (h *reserve) openedChange(t *testing.T) exchange.Proposal {
	t.Helper()
	p, err := h.propose(t, h.changes(t), h.merchant)
	if err != nil {
		t.Fatalf("propose other owners: %v", err)
	}
	return h.advanced(t, p.ID).Proposal
}

// approvedChange has all four officers approve it: one more than the largest payment needs.
func (h *reserve) approvedChange(t *testing.T) exchange.Proposal {
	t.Helper()
	p := h.openedChange(t)
	for i, by := range []exchange.Principal{h.boss, h.one, h.two, h.three} {
		out, err := h.decides(t, p, exchange.Approve, by)
		if err != nil || out.Needed != 4 || out.Approvals != i+1 {
			t.Fatalf("approval %d: %d of %d, %v", i, out.Approvals, out.Needed, err)
		}
	}
	return h.is(t, p, exchange.ProposalApproving, exchange.WaitPause)
}

// signingChange is a change after its pause, with the keys of new officers and a payload.
func (h *reserve) signingChange(t *testing.T) (exchange.Proposal, exchange.MultisigPayload) {
	t.Helper()
	storetest.Pause(t, h.s, 0)
	p := h.approvedChange(t)
	p = h.advanced(t, p.ID).Proposal
	if p.PaymentID == uuid.Nil || p.StatusDetail != exchange.WaitPayload {
		t.Fatalf("after the pause: %+v", p)
	}
	h.makesKeys(t, p)
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	y, err := h.chain.StorePayload(t.Context(), h.payloadFor(t, p))
	if err != nil {
		t.Fatalf("store a payload: %v", err)
	}
	return h.is(t, p, exchange.ProposalSigning, exchange.WaitOwners), y
}

// makesKeys has the signer make the keys of the officers who come.
func (h *reserve) makesKeys(t *testing.T, p exchange.Proposal) {
	t.Helper()
	coming, err := h.signer.ComingOwners(t.Context(), p.ID)
	if err != nil || len(coming) != 2 {
		t.Fatalf("coming: %+v, %v", coming, err)
	}
	for _, o := range coming {
		if !o.Held {
			continue
		}
		_, err := h.signer.StoreOwnerKey(t.Context(), h.account.ID, o.N, "owner-"+storetest.NewID(t).String(), exchange.SealedKey{
			WalletID: h.account.ID, Purpose: exchange.OwnerKeyPurpose(o.N), Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1",
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// allSign has every owner sign.
func (h *reserve) allSign(t *testing.T, p exchange.Proposal, y exchange.MultisigPayload) exchange.Proposal {
	t.Helper()
	by := map[uuid.UUID]exchange.Principal{h.one.UserID: h.one, h.two.UserID: h.two}
	for _, o := range h.account.Owners {
		var err error
		if o.Held {
			err = h.confirms(t, p, y, by[o.UserID])
		} else {
			_, err = h.brings(t, y, o, h.merchant)
		}
		if err != nil {
			t.Fatalf("sign a change: %v", err)
		}
	}
	if _, err := h.flows.SignProposal(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	return h.is(t, p, exchange.ProposalReady, exchange.WaitExecution)
}

// carriedOutByOthers is a payload that another tool executed: nothing moved, so the watch only has to have read the block.
func (h *reserve) carriedOutByOthers(t *testing.T, y exchange.MultisigPayload) {
	t.Helper()
	ctx, tx := t.Context(), "0xother"
	if h.n == exchange.Tron {
		tx = y.JointID
	}
	_, err := h.chain.AdoptExecution(ctx, y.ID, tx, 101, "a-101", "the event")
	wantFault(t, err, exchange.CodeUnavailable) // the watch has not read the block
	b := scanOf(blockOf("a", 101))
	b.Network = h.n
	finalBlock(t, h.s, b)
	for range 2 {
		if _, err := h.chain.AdoptExecution(ctx, y.ID, tx, 101, "a-101", "the event"); err != nil {
			t.Fatal(err)
		}
	}
	live, found, err := h.s.LiveAttempt(ctx, y.PaymentID)
	if err != nil || !found {
		t.Fatalf("no transaction: %v", err)
	}
	if _, err := h.chain.RecordFinal(ctx, live.ID, true, 101, "a-101", money.Must(h.n.NativeCoin(), "0.1"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
}

// A change of the owners needs one officer more than any payment, and a pause; then the signer makes the keys of those who come. When it was
// executed they are the agreed owners, and those who left are history.
func TestChangesOfOwners(t *testing.T) {
	t.Parallel()
	for _, n := range []exchange.Network{exchange.Ethereum, exchange.Tron} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			ctx, h := t.Context(), newReserve(t, n)
			pending, old := h.signing(t, usdt("10"))
			if _, err := h.brings(t, old, h.account.Owners[0], h.merchant); err != nil {
				t.Fatal(err)
			}
			p, y := h.signingChange(t)
			if want := map[exchange.Network]int{exchange.Ethereum: 3, exchange.Tron: 3}[n]; p.Threshold != want {
				t.Errorf("it needs a weight of %d, want %d", p.Threshold, want)
			}
			p = h.allSign(t, p, y)
			quorum := storetest.QuorumOf(h.account, 101)
			change, err := exchange.OwnersChangeOf(p.After)
			if err != nil {
				t.Fatal(err)
			}
			quorum.Owners, quorum.Threshold, quorum.ControlThreshold = change.Owners, change.Threshold, change.ControlThreshold
			_, err = h.chain.CheckedMultisig(ctx, h.account.ID, quorum)
			wantFault(t, err, exchange.CodeUnavailable) // our own change is no difference
			h.carriedOutByOthers(t, y)
			h.is(t, p, exchange.ProposalExecuted, exchange.DetailOther)
			now, err := h.s.MultisigAccountByID(ctx, h.account.ID)
			if err != nil || now.Difference(quorum) != "" || now.Status != exchange.MultisigActive {
				t.Errorf("agreed: %+v, %q, %v", now, now.Difference(quorum), err)
			}
			_, err = h.chain.CheckedMultisig(ctx, h.account.ID, storetest.QuorumOf(h.account, 100))
			wantFault(t, err, exchange.CodeUnavailable) // the node is behind the execution
			if _, err := h.chain.CheckedMultisig(ctx, h.account.ID, quorum); err != nil {
				t.Errorf("the new owners are not the agreed ones: %v", err)
			}
			h.is(t, pending, exchange.ProposalSigning, exchange.WaitOwners)
			if signed, err := h.s.Signatures(ctx, old.ID); err != nil || len(signed) != 1 {
				t.Errorf("signatures of who stays: %+v, %v", signed, err)
			}
			var gone int
			if err := storetest.Owner(t, h.s).QueryRowContext(ctx, `SELECT count(*) FROM multisig_owners WHERE account_id = $1 AND gone_by = $2`, h.account.ID, p.ID).Scan(&gone); err != nil || gone != 2 {
				t.Errorf("%d owners are history, %v", gone, err)
			}
		})
	}
}

// The chain's worker alone can't say that a change was executed that our key store did not sign, nor in a block that the watch has not read, or that
// was there before owners had something to sign.
func TestChangesAreNotExecutedBeforeTheyAre(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.signingChange(t)
	finds := `UPDATE multisig_payloads SET found_tx = '0xother', updated_at = now() WHERE id = ` + quotedID(y.ID)
	read := scanOf(blockOf("a", 101))
	read.Network = h.n
	finalBlock(t, h.s, read)
	_, err := h.chain.AdoptExecution(ctx, y.ID, "0xother", 101, "a-101", "it says so")
	wantFault(t, err, exchange.CodeStateConflict)
	h.refusedFor(t, store.RoleChain, "keys that only our key store has", finds)
	if err := h.confirms(t, p, y, h.one); err != nil {
		t.Fatal(err)
	}
	h.but(t, []store.Role{store.RoleChain}, "finds its execution", finds)
	if _, err := h.chain.AdoptExecution(ctx, y.ID, "0xother", 101, "a-101", "the event"); err != nil { // the Safe takes two, and one of them we never saw
		t.Fatal(err)
	}
	live, _, err := h.s.LiveAttempt(ctx, y.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	final := func(block uint64) error {
		_, err := h.chain.RecordFinal(ctx, live.ID, true, block, "a-101", money.Must(h.n.NativeCoin(), "0.1"), "SUCCESS")
		return err
	}
	wantFault(t, final(102), exchange.CodeUnavailable)
	if err := final(y.Block - 1); err == nil || !strings.Contains(err.Error(), "was not read since") {
		t.Errorf("executed before it was prepared: %v", err)
	}
	if err := final(101); err != nil {
		t.Error(err)
	}
	h.is(t, p, exchange.ProposalExecuted, exchange.DetailOther)
}

// Who left signs no more, also what was prepared before.
func TestOwnersWhoLeft(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	payment, old := h.ready(t, usdt("10"))
	p, y := h.signingChange(t)
	h.allSign(t, p, y)
	h.carriedOutByOthers(t, y)
	if signed, err := h.s.Signatures(ctx, old.ID); err != nil || len(signed) != 1 {
		t.Errorf("signatures that count: %+v, %v", signed, err)
	}
	_, err := h.executes(t, payment, h.boss)
	wantFault(t, err, exchange.CodeStateConflict)
	if err := h.confirms(t, payment, old, h.two); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("an officer who left confirms: %v", err)
	}
}

// The pause begins with the last approval. In it any officer rejects, no owner signs, and one who can't approve any more is missing.
func TestThePauseOfAChange(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p := h.approvedChange(t)
	if rest := time.Until(p.SignableAt); rest < 23*time.Hour || rest > 24*time.Hour+time.Minute {
		t.Errorf("it rests %s", rest)
	}
	if p = h.advanced(t, p.ID).Proposal; p.PaymentID != uuid.Nil {
		t.Error("it has a payment before the pause is over")
	}
	if _, err := h.decides(t, p, exchange.Approve, h.merchant); err == nil {
		t.Error("a merchant approves")
	}
	h.every(t, "ends the pause", steps(p, `signable_at = now()`))
	h.every(t, "ends the pause otherwise", steps(p, `signable_at = NULL`))
	h.every(t, "shortens all pauses", `UPDATE multisig_policy SET pause_seconds = 0`)
	storetest.Exec(t, h.s, `UPDATE users SET is_active = false WHERE id = $1`, h.two.UserID)
	extra := storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleTreasury))
	if p = h.advanced(t, p.ID).Proposal; !p.SignableAt.IsZero() || p.StatusDetail != exchange.WaitSecond {
		t.Errorf("without enough officers: %+v", p)
	}
	out, err := h.decides(t, p, exchange.Approve, extra)
	if err != nil || out.StatusDetail != exchange.WaitPause {
		t.Fatalf("another officer approves: %+v, %v", out, err)
	}
	veto := storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleTreasury))
	if out, err = h.decides(t, out.Proposal, exchange.Reject, veto); err != nil || out.Status != exchange.ProposalRejected {
		t.Errorf("a rejection in the pause: %+v, %v", out, err)
	}
	if coming, err := h.s.ComingOwners(ctx, p.ID); err != nil || len(coming) != 0 {
		t.Errorf("coming: %+v, %v", coming, err)
	}
}

// rested makes a change of the owners older than its pause, with all that happened before.
func (h *reserve) rested(t *testing.T, p exchange.Proposal) {
	t.Helper()
	storetest.Exec(t, h.s, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE users SET standing_since = now() - interval '2 days';
		UPDATE multisig_proposals SET signable_at = now() - interval '1 second' WHERE id = `+quotedID(p.ID)+`; COMMIT`)
}

// switched switches an officer off and on again, as two officers may.
func (h *reserve) switched(t *testing.T, officer exchange.Principal) {
	t.Helper()
	for _, on := range []string{`false`, `true`} {
		storetest.Exec(t, h.s, `BEGIN; ALTER TABLE users DISABLE TRIGGER users_staff_active; UPDATE users SET is_active = `+on+` WHERE id = `+quotedID(officer.UserID)+`;
			ALTER TABLE users ENABLE TRIGGER users_staff_active; COMMIT`)
	}
}

// An officer who approved and was switched off and on again has the pause begin again, also when the flow did not look meanwhile.
func TestThePauseBeginsAgainForOfficersWhoReturn(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p := h.approvedChange(t)
	h.rested(t, p)
	h.switched(t, h.two)
	for range 2 {
		if p = h.advanced(t, p.ID).Proposal; p.PaymentID != uuid.Nil || p.StatusDetail != exchange.WaitPause || time.Until(p.SignableAt) < 23*time.Hour {
			t.Fatalf("after an officer returned: %+v", p)
		}
	}
	h.every(t, "ends the pause", steps(p, `signable_at = now()`))
	if err := h.together(t, store.RoleAPI, `UPDATE users SET standing_since = now() - interval '2 days' WHERE id = `+quotedID(h.two.UserID)); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, h.s, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE multisig_proposals SET signable_at = now() - interval '1 second' WHERE id = `+quotedID(p.ID)+`; COMMIT`)
	if p = h.advanced(t, p.ID).Proposal; p.PaymentID != uuid.Nil {
		t.Error("the API said since when an officer is on")
	}
	h.rested(t, p)
	if p = h.advanced(t, p.ID).Proposal; p.PaymentID == uuid.Nil || p.StatusDetail != exchange.WaitPayload {
		t.Fatalf("after both pauses: %+v", p)
	}
	h.makesKeys(t, p)
	h.switched(t, h.boss)
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	if _, err := h.chain.StorePayload(t.Context(), h.payloadFor(t, p)); err == nil || !strings.Contains(err.Error(), "lacks officers") {
		t.Errorf("a payload after an officer returned just now: %v", err)
	}
}

// At most all who can approve it do.
func TestChangesNeedAtMostAllOfficers(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	storetest.Exec(t, h.s, `UPDATE users SET is_active = false WHERE role IN ('admin', 'treasury') AND id NOT IN ($1, $2, $3, $4)`, h.boss.UserID, h.one.UserID, h.two.UserID, h.three.UserID)
	p, err := h.propose(t, h.changes(t), h.boss)
	if err != nil {
		t.Fatal(err)
	}
	if out := h.advanced(t, p.ID); out.Needed != 3 {
		t.Errorf("%d officers approve it, want the three others", out.Needed)
	}
}

// Officers who are switched off after it was opened do not lower how many approve it, nor do so few officers that a payment could be approved by
// more.
func TestSwitchedOffOfficersLeaveWhatAChangeNeeds(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	storetest.Pause(t, h.s, 0)
	p := h.openedChange(t)
	for _, by := range []exchange.Principal{h.one, h.three} {
		if _, err := h.decides(t, p, exchange.Approve, by); err != nil {
			t.Fatal(err)
		}
	}
	off := `UPDATE users SET is_active = false WHERE role IN ('admin', 'treasury') AND id NOT IN (` + quotedID(h.one.UserID) + `, ` + quotedID(h.three.UserID) + `)`
	if err := h.together(t, store.RoleAPI, off); err != nil {
		t.Fatal(err)
	}
	h.every(t, "rests it with all officers who are left", steps(p, `signable_at = now()`))
	if out := h.advanced(t, p.ID); out.Needed != 4 || out.StatusDetail != exchange.WaitSecond || !out.SignableAt.IsZero() {
		t.Errorf("with two officers left: %d needed, %+v", out.Needed, out.Proposal)
	}
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	if p = h.openedChange(t); h.advanced(t, p.ID).Needed != 3 {
		t.Error("a change needs fewer officers than a payment")
	}
	change := h.changes(t).Change.Encode()
	for _, needed := range []string{"1", "2", "4"} {
		h.refusedFor(t, store.RoleFlows, "and its policy", h.asksBeside(t, p, change, `"policy_needed": `+needed)...)
	}
	h.refusedFor(t, store.RoleFlows, "multisig_proposals_owners_key", h.asksBeside(t, p, change, `"policy_needed": 3`)...) // one at a time
}

// asksBeside are the statements that store a change of the owners beside the flows, like another one but for some columns. Its digest is right.
func (h *reserve) asksBeside(t *testing.T, p exchange.Proposal, change, columns string) []string {
	t.Helper()
	id := storetest.NewID(t)
	terms := exchange.ProposalRequest{ID: id, Kind: exchange.ProposeOwners, WalletID: h.wallet.ID, Reference: p.Reference}.Terms()
	terms["change"] = change
	a, err := storetest.Ask(t.Context(), h.api, exchange.IntendProposal, id, id, terms, h.merchant)
	if err != nil {
		t.Fatal(err)
	}
	row := `{"id": "` + id.String() + `", "intent_id": "` + a.IntentID.String() + `", "change": ` + change + `, "status": "proposed", "version": 1, ` + columns + `}`
	return []string{
		`UPDATE intents SET used_at = now(), used_by = 'multisig-proposal:' || object_id WHERE id = ` + quotedID(a.IntentID),
		`INSERT INTO multisig_proposals SELECT (jsonb_populate_record(n, jsonb_build_object('digest', proposal_digest(n)))).*
			FROM multisig_proposals s, jsonb_populate_record(s, ` + quoted(row) + `) n WHERE s.id = ` + quotedID(p.ID),
	}
}

// The database knows itself what a change may name, so that no flow stores one that could never be carried out.
func TestTheDatabaseRefusesUnsoundChanges(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p := h.openedChange(t)
	owner := func(address string, user uuid.UUID) string {
		return `{"address": "` + address + `", "user_id": "` + user.String() + `", "weight": 1}`
	}
	outsider := func(address string) string { return `{"address": "` + address + `", "weight": 1}` }
	three := `{"user_id": "` + h.three.UserID.String() + `", "weight": 1}`
	first, held := outsider(h.account.Owners[0].Address), h.account.Owners[1]
	change := func(threshold string, owners ...string) string {
		return `{"threshold": ` + threshold + `, "owners": [` + strings.Join(owners, ", ") + `]}`
	}
	var many []string
	for range 21 {
		many = append(many, outsider("owner-"+storetest.NewID(t).String()))
	}
	for what, c := range map[string]string{
		"no threshold":                   `{"owners": [` + first + `, ` + three + `]}`,
		"a threshold of nothing":         change("null", first, three),
		"a threshold of zero":            change("0", first, three),
		"a threshold of one owner":       change("1", first, three),
		"a threshold above all":          change("3", first, three),
		"no owners":                      change("1"),
		"one owner":                      change("1", first),
		"too many owners":                change("2", many...),
		"an address twice":               change("2", first, first),
		"an officer twice":               change("2", three, three),
		"an owner of nothing":            change("2", first, `{"weight": 1}`),
		"an empty address":               change("2", first, outsider("")),
		"the account itself":             change("2", first, outsider(p.Address)),
		"an address with an officer":     change("2", first, owner(faraway, h.three.UserID)),
		"another one's address":          change("2", first, owner(held.Address, h.three.UserID)),
		"an owner without the officer":   change("2", first, outsider(held.Address)),
		"no weight":                      change("2", first, `{"address": "`+faraway+`"}`),
		"a weight of zero":               change("2", first, three, `{"address": "`+faraway+`", "weight": 0}`),
		"a weight on a Safe":             change("3", first, `{"address": "`+faraway+`", "weight": 2}`),
		"a threshold of further changes": `{"threshold": 2, "control_threshold": 2, "owners": [` + first + `, ` + three + `]}`,
	} {
		if err := h.together(t, store.RoleFlows, h.asksBeside(t, p, c, `"policy_needed": 4`)...); err == nil || !strings.Contains(err.Error(), "names owners or thresholds") {
			t.Errorf("%s: %v", what, err)
		}
	}
	sound := change("2", first, three, owner(held.Address, held.UserID), outsider(faraway))
	h.refusedFor(t, store.RoleFlows, "multisig_proposals_owners_key", h.asksBeside(t, p, sound, `"policy_needed": 4`)...) // one at a time
}

// An owner comes once, by the flows, who complete what is there. Nothing is signed while one of a change is missing.
func TestOwnersComeOnceAndAllOfThem(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	storetest.Pause(t, h.s, 0)
	p := h.approvedChange(t)
	change, err := exchange.OwnersChangeOf(p.Change)
	if err != nil {
		t.Fatal(err)
	}
	comes := func(n string, o exchange.MultisigOwner) string {
		address, user, held := quoted(o.Address), `NULL`, `false`
		if o.Address == "" {
			address, user, held = `NULL`, quotedID(o.UserID), `true`
		}
		return `INSERT INTO multisig_owners (account_id, n, address, user_id, weight, label, held, standing, brought_by) VALUES (` + quotedID(h.account.ID) + `, ` + n + `, ` + address + `, ` + user +
			`, 1, ` + quoted(o.Label) + `, ` + held + `, 'coming', ` + quotedID(p.ID) + `)`
	}
	h.but(t, []store.Role{store.RoleFlows}, "brings an owner of the change", comes("8", change.Owners[2]))
	h.every(t, "brings one who stays", comes("8", change.Owners[0]))
	if err := h.together(t, store.RoleFlows, comes("8", change.Owners[2])); err != nil {
		t.Fatalf("the flows bring an owner: %v", err)
	}
	h.every(t, "brings an address twice", comes("9", change.Owners[2]))
	h.every(t, "brings an officer twice", comes("9", change.Owners[1]), comes("10", change.Owners[1]))
	p = h.advanced(t, p.ID).Proposal
	h.makesKeys(t, p)
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	storetest.Exec(t, h.s, `SET session_replication_role = replica; DELETE FROM multisig_owners WHERE n = 8 AND brought_by = '`+p.ID.String()+`'; SET session_replication_role = origin`)
	if _, err := h.chain.StorePayload(ctx, h.payloadFor(t, p)); err == nil || !strings.Contains(err.Error(), "lacks owners of its change") {
		t.Errorf("a payload while an owner is missing: %v", err)
	}
	if err := h.together(t, store.RoleFlows, comes("8", change.Owners[2])); err != nil {
		t.Fatal(err)
	}
	if _, err := h.chain.StorePayload(ctx, h.payloadFor(t, p)); err != nil {
		t.Errorf("a payload of all owners: %v", err)
	}
}

// fieldAt is the field that an error names, if there is one.
func fieldAt(err error) string {
	if e, ok := errors.AsType[*exchange.Error](err); ok && len(e.Fields) == 1 {
		return e.Fields[0].Pointer
	}
	return ""
}

// A change is refused with the field that is at fault.
func TestRefusedChangesOfOwners(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	storetest.Exec(t, h.s, `INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES ($1, 'ethereum', 'denied-000000000000000000000', 'test', $2, now())`, storetest.NewID(t), h.boss.UserID)
	for pointer, edit := range map[string]func(*exchange.OwnersChange){
		"/owners/2/address": func(c *exchange.OwnersChange) { c.Owners[2].Address = "denied-000000000000000000000" },
		"/owners/1/user_id": func(c *exchange.OwnersChange) { c.Owners[1].UserID = h.merchant.UserID },
		"/owners/0/address": func(c *exchange.OwnersChange) { c.Owners[0].Address = h.gas.Address },
		"/owners": func(c *exchange.OwnersChange) {
			*c = exchange.OwnersChange{Owners: h.account.Owners, Threshold: h.account.Threshold}
		},
		"/threshold":         func(c *exchange.OwnersChange) { c.Threshold = 1 },
		"/control_threshold": func(c *exchange.OwnersChange) { c.ControlThreshold = 3 },
	} {
		r := h.changes(t)
		edit(&r.Change)
		_, err := h.propose(t, r, h.boss)
		if at := fieldAt(err); at != pointer {
			t.Errorf("%s: at %q, %v", pointer, at, err)
		}
	}
	if _, err := h.propose(t, h.changes(t), h.boss); err != nil {
		t.Fatal(err)
	}
	_, err := h.propose(t, h.changes(t), h.boss)
	wantFault(t, err, exchange.CodeStateConflict) // one at a time
}

// On Solana the owners never change.
func TestNoChangesOnSolana(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Solana)
	_, err := h.propose(t, h.changes(t), h.boss)
	wantFault(t, err, exchange.CodeUnsupported)
}

// No login brings, drops or weighs an owner beside an approved change that was executed, nor has another change signed than was approved.
func TestTheDatabaseRefusesOtherOwners(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p := h.openedChange(t)
	account := quotedID(h.account.ID)
	comes := func(standing, by string) string {
		return `INSERT INTO multisig_owners (account_id, n, address, weight, label, held, standing, brought_by) VALUES (` + account + `, 9, 'mallory-0000000000000000000', 1, '', false, '` + standing + `', ` + by + `)`
	}
	refusals := func(when string) {
		t.Helper()
		h.every(t, when+": changes the change", steps(p, `change = '{"owners": [], "threshold": 1}'`))
		h.every(t, when+": brings an owner", comes("coming", quotedID(p.ID)))
		h.every(t, when+": adds an owner", comes("agreed", `NULL`))
		h.every(t, when+": adds an owner by the change", comes("agreed", quotedID(p.ID)))
		h.every(t, when+": drops an owner", `UPDATE multisig_owners SET standing = 'gone', gone_by = `+quotedID(p.ID)+` WHERE account_id = `+account+` AND n = 1`)
		h.every(t, when+": weighs an owner", `UPDATE multisig_owners SET weight = 2 WHERE account_id = `+account+` AND n = 1`)
		h.every(t, when+": removes an owner", `DELETE FROM multisig_owners WHERE account_id = `+account)
		h.every(t, when+": lowers the threshold", `UPDATE multisig_accounts SET threshold = 1, version = version + 1 WHERE id = `+account)
		h.every(t, when+": lowers the threshold with a newer block", `UPDATE multisig_accounts SET threshold = 1, checked_block = checked_block + 1, checked_at = now(), version = version + 1 WHERE id = `+account)
		h.every(t, when+": calls it executed", steps(p, `status = 'executed', completed_at = now()`))
	}
	refusals("proposed")
	h.every(t, "rests it without officers", steps(p, `signable_at = now()`))
	for _, by := range []exchange.Principal{h.boss, h.one, h.two} {
		if _, err := h.decides(t, p, exchange.Approve, by); err != nil {
			t.Fatal(err)
		}
	}
	h.every(t, "rests it with too few officers", steps(p, `signable_at = now()`))
	storetest.Pause(t, h.s, 0)
	if _, err := h.decides(t, p, exchange.Approve, h.three); err != nil {
		t.Fatal(err)
	}
	p = h.advanced(t, p.ID).Proposal
	refusals("released")
	h.makesKeys(t, p)
	p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
	y := h.payloadFor(t, p)
	y.Joint = []byte(`{"account": "` + p.Address + `", "owners": {"owners": [{"address": "mallory-0000000000000000000", "weight": 1}], "threshold": 1}}`)
	if _, err := h.chain.StorePayload(ctx, y); err == nil {
		t.Error("owners sign other owners than officers approved")
	}
	if y, err := h.chain.StorePayload(ctx, h.payloadFor(t, p)); err != nil {
		t.Error(err)
	} else {
		p = h.allSign(t, h.is(t, p, exchange.ProposalSigning, exchange.WaitOwners), y)
		refusals("signed")
		h.carriedOutByOthers(t, y)
		refusals("executed")
	}
}

// A change is stored with the digest that names all of it.
func TestDigestsOfChanges(t *testing.T) {
	t.Parallel()
	h := newReserve(t, exchange.Ethereum)
	p := h.openedChange(t)
	other := p
	other.Change = `{"owners": [{"address": "mallory-0000000000000000000", "weight": 1}], "threshold": 1}`
	if p.Digest != p.Intent() || other.Intent() == p.Digest {
		t.Error("the digest does not name the change")
	}
}

// cancel asks to make a proposal impossible.
func (h *reserve) cancel(t *testing.T, p exchange.Proposal) exchange.ProposalRequest {
	t.Helper()
	return exchange.ProposalRequest{ID: storetest.NewID(t), Kind: exchange.ProposeCancel, WalletID: h.wallet.ID, Supersedes: p.ID}
}

// A cancel takes the number of what it makes impossible, needs no officers, and its execution ends the other one.
func TestCancelsOfProposals(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
		p, y := h.ready(t, usdt("100"))
		if ends {
			if _, err := h.cancels(t, p, h.merchant); err != nil {
				t.Fatal(err)
			}
		}
		c, err := h.propose(t, h.cancel(t, p), h.merchant)
		if err != nil {
			t.Fatalf("propose a cancel: %v", err)
		}
		_, err = h.propose(t, h.cancel(t, p), h.boss)
		wantFault(t, err, exchange.CodeStateConflict)
		c = h.advanced(t, c.ID).Proposal
		if c.PaymentID == uuid.Nil || c.StatusDetail != exchange.WaitPayload {
			t.Fatalf("a cancel waits: %+v", c)
		}
		if _, err := h.decides(t, c, exchange.Approve, h.boss); err == nil {
			t.Error("officers approve a cancel")
		}
		other := h.payloadFor(t, c)
		other.Sequence = y.Sequence + 5
		if _, err := h.chain.StorePayload(ctx, other); err == nil {
			t.Error("a cancel has another number")
		}
		at := h.payloadFor(t, c)
		at.Sequence = y.Sequence
		stored, err := h.chain.StorePayload(ctx, at)
		if err != nil {
			t.Fatalf("store the payload of a cancel: %v", err)
		}
		c = h.signed(t, h.is(t, c, exchange.ProposalSigning, exchange.WaitOwners), stored)
		h.carriedOutByOthers(t, stored)
		h.is(t, c, exchange.ProposalExecuted, exchange.DetailOther)
		if ends {
			_, err = h.chain.VoidPayload(ctx, y.ID, "number taken")
		} else {
			_, err = h.chain.SupersedeProposal(ctx, p.ID, "0xother", "number taken")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A cancel that another tool executed is found also when the agreed owners are others by then.
func TestCancelsAreFoundAfterTheOwnersChanged(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	p, y := h.ready(t, usdt("100"))
	c, err := h.propose(t, h.cancel(t, p), h.merchant)
	if err != nil {
		t.Fatal(err)
	}
	at := h.payloadFor(t, h.advanced(t, c.ID).Proposal)
	at.Sequence = y.Sequence
	stored, err := h.chain.StorePayload(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, h.s, `BEGIN; SET LOCAL session_replication_role = replica; UPDATE multisig_owners SET standing = 'gone', gone_by = '`+p.ID.String()+`' WHERE NOT held; COMMIT`)
	h.carriedOutByOthers(t, stored)
	h.is(t, c, exchange.ProposalExecuted, exchange.DetailOther)
}

// A cancel of what has ended ends, and one of what no tool can execute is refused.
func TestPointlessCancels(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	waiting := h.released(t, usdt("10"))
	if _, err := h.propose(t, h.cancel(t, waiting), h.boss); fieldAt(err) != "/supersedes" {
		t.Errorf("a cancel of what has no payload: %v", err)
	}
	p, _ := h.ready(t, usdt("100"))
	stranger := storetest.PrincipalOf(storetest.User(t, h.s, exchange.RoleVendor))
	if _, err := h.propose(t, h.cancel(t, p), stranger); err == nil {
		t.Error("a stranger cancels")
	}
	c, err := h.propose(t, h.cancel(t, p), h.boss)
	if err != nil {
		t.Fatal(err)
	}
	c = h.advanced(t, c.ID).Proposal
	if _, err := h.chain.SupersedeProposal(ctx, p.ID, "0xelse", "number taken"); err != nil {
		t.Fatal(err)
	}
	if out := h.advanced(t, c.ID); out.Status != exchange.ProposalSuperseded || out.StatusDetail != exchange.DetailPointless {
		t.Errorf("a cancel of what has ended is %+v", out)
	}
}

// woken reads whose flows a used number wakes, and takes them as signalled.
func (h *reserve) woken(t *testing.T) []string {
	t.Helper()
	due, err := h.chain.DueWakeups(t.Context(), h.n)
	if err != nil {
		t.Fatal(err)
	}
	var flows []string
	var ids []uuid.UUID
	for _, u := range due {
		if u.DepositID != uuid.Nil {
			t.Errorf("it is about a deposit: %+v", u)
		}
		flows, ids = append(flows, u.WorkflowID), append(ids, u.ID)
	}
	slices.Sort(flows)
	if err := h.flows.RecordWoken(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	return flows
}

// A number of a Safe that is used up wakes the flows of what has it or a lower one, once. What has a later number can be executed still.
func TestAUsedNumberWakesOtherProposals(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newReserve(t, exchange.Ethereum)
	lower, first := h.signing(t, usdt("10"))
	p, y := h.signing(t, usdt("20"))
	later, _ := h.signing(t, usdt("30"))
	if _, err := h.cancels(t, p, h.merchant); err != nil {
		t.Fatal(err)
	}
	flows := func(all ...exchange.Proposal) []string {
		var ids []string
		for _, p := range all {
			ids = append(ids, "multisig-proposal:"+p.ID.String())
		}
		slices.Sort(ids)
		return ids
	}
	c, err := h.propose(t, h.cancel(t, p), h.merchant)
	if err != nil {
		t.Fatal(err)
	}
	c = h.advanced(t, c.ID).Proposal
	at := h.payloadFor(t, c)
	at.Sequence = y.Sequence
	stored, err := h.chain.StorePayload(ctx, at)
	if err != nil {
		t.Fatal(err)
	}
	h.signed(t, h.is(t, c, exchange.ProposalSigning, exchange.WaitOwners), stored)
	if got := h.woken(t); len(got) != 0 {
		t.Errorf("before a number is used up %v are woken", got)
	}
	h.carriedOutByOthers(t, stored)
	if got, want := h.woken(t), flows(lower, p); !slices.Equal(got, want) {
		t.Errorf("%v are woken, want %v; %s has a later number", got, want, later.ID)
	}
	if _, err := h.chain.VoidPayload(ctx, y.ID, "number taken"); err != nil { // the lower one has been woken for that number
		t.Fatal(err)
	}
	if got := h.woken(t); len(got) != 0 {
		t.Errorf("woken again: %v", got)
	}
	if _, err := h.chain.SupersedeProposal(ctx, later.ID, "0xelse", "number taken"); err != nil { // by a transaction that has no proposal
		t.Fatal(err)
	}
	if got, want := h.woken(t), flows(lower); !slices.Equal(got, want) {
		t.Errorf("%v are woken by another tool's transaction, want %v", got, want)
	}
	if _, err := h.chain.SupersedeProposal(ctx, lower.ID, "0xelse", "number taken"); err != nil || first.Sequence >= y.Sequence {
		t.Error(first.Sequence, y.Sequence, err)
	}
	if got := h.woken(t); len(got) != 0 {
		t.Errorf("what has ended is woken: %v", got)
	}
	h.every(t, "wakes a flow for nothing", `INSERT INTO deposit_wakeups (id, network, version, created_at) VALUES (gen_random_uuid(), 'ethereum', 1, now())`)
}
