package store_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// reserve is a house with a wallet of three owners on a network, two of whom sign, and the logins of its processes. On TRON and where
// outside is set all owners hold their keys; otherwise the keys of two officers are ours. It is shared with a merchant.
type reserve struct {
	s, api, flows, chain, signer *store.Store
	n                            exchange.Network
	merchant                     exchange.Principal
	boss, one, two, three        exchange.Principal
	account                      exchange.MultisigAccount
	wallet, gas                  exchange.Wallet
	logins                       map[store.Role]*sql.Conn // of attackers
}

func newReserve(t *testing.T, n exchange.Network) *reserve {
	t.Helper()
	url := storetest.URL(t)
	as := func(r store.Role) *store.Store { return storetest.OpenAs(t, url, r, store.Options{}) }
	h := &reserve{logins: map[store.Role]*sql.Conn{}, n: n, s: storetest.Open(t, url, store.Options{}), api: as(store.RoleAPI), flows: as(store.RoleFlows), chain: as(store.RoleChain), signer: as(store.RoleSigner)}
	who := func(r exchange.Role) exchange.Principal { return storetest.PrincipalOf(storetest.User(t, h.s, r)) }
	h.merchant, h.boss, h.one, h.two, h.three = who(exchange.RoleVendor), who(exchange.RoleAdmin), who(exchange.RoleTreasury), who(exchange.RoleTreasury), who(exchange.RoleTreasury)
	storetest.Patch(t, h.s, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleVendor: {}}, Rules: rule("500000", "1000000")})
	storetest.Rested(t, h.s)
	storetest.AgreeValuations(t, h.s)
	first := blockOf("a", 100)
	first.Time = time.Now()
	if _, err := h.s.StartDeposits(t.Context(), n, first); err != nil {
		t.Fatal(err)
	}
	h.looks(t)
	h.gas = storetest.GasWallet(t, h.s, n)
	storetest.Gas(t, h.s, h.gas.ID, money.Must(n.NativeCoin(), "5"))
	r := exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: n, Asset: money.USDT, Name: "Reserve", MerchantID: h.merchant.UserID, Custody: exchange.MultisigSelf, Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: "owner-" + storetest.NewID(t).String(), Label: "A"}, {UserID: h.one.UserID}, {UserID: h.two.UserID}},
		Policy: exchange.MultisigPolicy{Approvals: 1, Rules: []exchange.MultisigRule{{Above: kes("10000"), Approvals: 2}, {Above: kes("50000"), Approvals: 3}}},
	}
	if n == exchange.Tron {
		r.Address = "account-" + storetest.NewID(t).String()
		for i := range r.Owners {
			r.Owners[i].Address = "owner-" + storetest.NewID(t).String()
		}
	}
	h.account = storetest.MultisigWallet(t, h.s, r)
	var err error
	if h.wallet, err = h.s.Wallet(t.Context(), store.Everything(), r.ID); err != nil {
		t.Fatal(err)
	}
	storetest.Deposit(t, h.s, h.wallet.ID, usdt("1000"))
	if n == exchange.Tron {
		storetest.Gas(t, h.s, h.wallet.ID, trx("500"))
	}
	return h
}

// looks has the watch look at the network, for long enough.
func (h *reserve) looks(t *testing.T) {
	t.Helper()
	if err := h.s.WatchAlive(t.Context(), h.n); err != nil {
		t.Fatal(err)
	}
	if err := h.s.RecordLook(t.Context(), exchange.WatchLook{Network: h.n, Final: exchange.ChainBlock{Number: 100, Time: testsBegan}}); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, h.s, `UPDATE deposit_looks SET looked_at = now() + interval '1 hour'`)
}

const faraway = "outside-0000000000000000000000000000"

func (h *reserve) asks(t *testing.T, m money.Amount) exchange.ProposalRequest {
	t.Helper()
	return exchange.ProposalRequest{ID: storetest.NewID(t), WalletID: h.wallet.ID, Amount: m, Destination: faraway, Reference: "invoice 7"}
}

// opened is a proposal of the merchant that waits for officers.
func (h *reserve) opened(t *testing.T, m money.Amount) exchange.Proposal {
	t.Helper()
	p, err := h.propose(t, h.asks(t, m), h.merchant)
	if err != nil {
		t.Fatalf("propose a payment: %v", err)
	}
	return h.advanced(t, p.ID).Proposal
}

// propose has the API write down what is asked for, and a flow carry it out.
func (h *reserve) propose(t *testing.T, r exchange.ProposalRequest, by exchange.Principal) (exchange.Proposal, error) {
	t.Helper()
	a, err := storetest.Ask(t.Context(), h.api, exchange.IntendProposal, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		t.Fatal(err)
	}
	return h.flows.OpenProposal(t.Context(), a)
}

func (h *reserve) advanced(t *testing.T, id uuid.UUID) exchange.ProposalStanding {
	t.Helper()
	out, err := h.flows.AdvanceProposal(t.Context(), id)
	if err != nil {
		t.Fatalf("advance a proposal: %v", err)
	}
	return out
}

// decides has an officer decide with a token from the API.
func (h *reserve) decides(t *testing.T, p exchange.Proposal, action exchange.ApprovalAction, by exchange.Principal) (exchange.ProposalStanding, error) {
	t.Helper()
	token, err := storetest.ProposalTicket(t.Context(), h.api, p, action, by)
	if err != nil {
		return exchange.ProposalStanding{}, err
	}
	return h.flows.DecideProposal(t.Context(), p.ID, action, token)
}

// released is a proposal whose payment is approved and whose recipient is cleared.
func (h *reserve) released(t *testing.T, m money.Amount) exchange.Proposal {
	t.Helper()
	p := h.opened(t, m)
	for _, by := range []exchange.Principal{h.boss, h.three, h.two} {
		out, err := h.decides(t, p, exchange.Approve, by)
		if err != nil {
			t.Fatalf("approve a proposal: %v", err)
		}
		if p = out.Proposal; p.PaymentID != uuid.Nil {
			break
		}
	}
	h.cleared(t, p)
	return p
}

func (h *reserve) cleared(t *testing.T, p exchange.Proposal) {
	t.Helper()
	if err := h.signer.RecordRecipient(t.Context(), p.PaymentID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}}); err != nil {
		t.Fatal(err)
	}
}

// payloadFor is what a driver could have prepared.
func (h *reserve) payloadFor(t *testing.T, p exchange.Proposal) exchange.MultisigPayload {
	t.Helper()
	y := storetest.PayloadOf(t, p)
	open, err := h.chain.OpenPayloads(t.Context(), h.wallet.ID)
	if err != nil {
		t.Fatal(err)
	}
	switch h.n {
	case exchange.Ethereum:
		y.Sequence = uint64(3 + len(open))
	case exchange.Solana:
		y.Signers = []string{h.account.Owners[0].Address, h.account.Owners[1].Address}
	case exchange.Tron:
	}
	return y
}

// signing is a proposal whose payload waits for owners.
func (h *reserve) signing(t *testing.T, m money.Amount) (exchange.Proposal, exchange.MultisigPayload) {
	t.Helper()
	p := h.released(t, m)
	y, err := h.chain.StorePayload(t.Context(), h.payloadFor(t, p))
	if err != nil {
		t.Fatalf("store a payload: %v", err)
	}
	return h.is(t, p, exchange.ProposalSigning, exchange.WaitOwners), y
}

// brings stores the signature of an owner outside, as the chain's worker does after it verified it.
func (h *reserve) brings(t *testing.T, y exchange.MultisigPayload, owner exchange.MultisigOwner, by exchange.Principal) (exchange.MultisigSignature, error) {
	t.Helper()
	raw := make([]byte, 65)
	copy(raw, owner.Address)
	a, err := storetest.AskProposal(t.Context(), h.api, exchange.IntendProposalSign, y.ProposalID, exchange.OutsideSignature{PayloadID: y.ID, Signature: raw}.Terms(), by)
	if err != nil {
		t.Fatal(err)
	}
	return h.chain.StoreSignature(t.Context(), exchange.MultisigSignature{PayloadID: y.ID, Owner: owner.Address, Signature: raw}, a)
}

// confirms has an officer confirm a payload, and the signer sign it with that officer's key.
func (h *reserve) confirms(t *testing.T, p exchange.Proposal, y exchange.MultisigPayload, by exchange.Principal) error {
	t.Helper()
	token, err := storetest.PayloadTicket(t.Context(), h.api, y, p.Amount, by)
	if err != nil {
		return err
	}
	owner, err := h.flows.ConfirmPayload(t.Context(), y.ID, token)
	if err != nil {
		return err
	}
	_, err = h.keySigns(t, y, owner)
	return err
}

// keySigns has the signer sign with the key of an owner that we hold.
func (h *reserve) keySigns(t *testing.T, y exchange.MultisigPayload, owner exchange.MultisigOwner) (exchange.MultisigSignature, error) {
	t.Helper()
	k, err := h.signer.OwnerKeyForSigning(t.Context(), y.ID, owner.Address)
	if err != nil {
		return exchange.MultisigSignature{}, err
	}
	raw := make([]byte, 65)
	copy(raw, owner.Address)
	return h.signer.StoreSignature(t.Context(),
		exchange.MultisigSignature{PayloadID: y.ID, Owner: owner.Address, Signature: raw, Held: true, UserID: k.UserID, ApprovalID: k.Approval}, exchange.Asked{})
}

// ready is a proposal that enough owners signed.
func (h *reserve) ready(t *testing.T, m money.Amount) (exchange.Proposal, exchange.MultisigPayload) {
	t.Helper()
	p, y := h.signing(t, m)
	return h.signed(t, p, y), y
}

func (h *reserve) signed(t *testing.T, p exchange.Proposal, y exchange.MultisigPayload) exchange.Proposal {
	t.Helper()
	for _, o := range h.account.Owners[:2] {
		var err error
		if o.Held {
			err = h.confirms(t, p, y, h.one)
		} else {
			_, err = h.brings(t, y, o, h.merchant)
		}
		if err != nil {
			t.Fatalf("sign a payload: %v", err)
		}
	}
	if _, err := h.flows.SignProposal(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	return h.is(t, p, exchange.ProposalReady, exchange.WaitExecution)
}

// executes has an officer have the proposal executed.
func (h *reserve) executes(t *testing.T, p exchange.Proposal, by exchange.Principal) (exchange.Proposal, error) {
	t.Helper()
	a, err := storetest.AskProposal(t.Context(), h.api, exchange.IntendProposalExecute, p.ID, nil, by)
	if err != nil {
		t.Fatal(err)
	}
	return h.flows.ExecuteProposal(t.Context(), p.ID, a)
}

func (h *reserve) cancels(t *testing.T, p exchange.Proposal, by exchange.Principal) (exchange.Proposal, error) {
	t.Helper()
	a, err := storetest.AskProposal(t.Context(), h.api, exchange.IntendProposalCancel, p.ID, nil, by)
	if err != nil {
		t.Fatal(err)
	}
	return h.flows.CancelProposal(t.Context(), p.ID, a)
}

// sends has the signer store a transaction with the signatures.
func (h *reserve) sends(t *testing.T, p exchange.Proposal, y exchange.MultisigPayload) (exchange.ChainAttempt, error) {
	t.Helper()
	if _, err := h.signer.ExecutionForSigning(t.Context(), p.PaymentID); err != nil {
		return exchange.ChainAttempt{}, err
	}
	return h.signer.SaveSignedAttempt(t.Context(), h.transaction(t, p, y))
}

func (h *reserve) transaction(t *testing.T, p exchange.Proposal, y exchange.MultisigPayload) exchange.ChainAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a := exchange.ChainAttempt{ID: id, PaymentID: p.PaymentID, Network: h.n, TxID: txID(id), Raw: []byte("signed"), FeeLimit: money.Must(h.n.NativeCoin(), "0.01")}
	switch h.n {
	case exchange.Ethereum:
		a.NonceWallet = h.gas.ID
		if next, open, err := h.s.NonceSequence(t.Context(), h.gas.ID); err != nil {
			t.Fatal(err)
		} else if open {
			a.Nonce = next.Next
		}
	case exchange.Tron:
		a.TxID, a.ExpiresAt, a.RefBlock = y.JointID, y.ExpiresAt, y.RefBlock
	case exchange.Solana:
		a.NonceAccount, a.RefBlock, a.NonceBlock = y.NonceAccount, y.RefBlock, y.Block
	}
	return a
}

// is reads a proposal, which must be in a status.
func (h *reserve) is(t *testing.T, p exchange.Proposal, status exchange.ProposalStatus, detail string) exchange.Proposal {
	t.Helper()
	got, err := h.api.Proposal(t.Context(), store.Everything(), p.ID)
	if err != nil || got.Status != status || got.StatusDetail != detail {
		t.Fatalf("the proposal is %s (%s), want %s (%s); %v", got.Status, got.StatusDetail, status, detail, err)
	}
	return got
}

// has compares what is posted and held in the wallet.
func (h *reserve) has(t *testing.T, posted, held string) {
	t.Helper()
	wantBalance(t, h.s, owed(h.wallet, money.USDT), posted, held)
	wantBooks(t, h.s)
}

func sameProposal(a, b exchange.Proposal) bool {
	return a.ID == b.ID && a.Status == b.Status && a.StatusDetail == b.StatusDetail && a.Version == b.Version
}

// A proposal lives on each network from its opening to its final execution, each step by the process that takes it.
func TestProposalsAreExecuted(t *testing.T) {
	t.Parallel()
	for _, n := range exchange.Networks() {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			ctx, h := t.Context(), newReserve(t, n)
			p := h.opened(t, usdt("100")) // 15,000 shillings: two officers by the policy
			h.has(t, "1000", "100")
			if p.PolicyNeeded != 2 || p.Threshold != 2 || p.Digest != p.Intent() || p.Status != exchange.ProposalApproving {
				t.Fatalf("the proposal is %+v", p)
			}
			out, err := h.decides(t, p, exchange.Approve, h.boss)
			if err != nil || out.Needed != 2 || out.Approvals != 1 || out.PaymentID != uuid.Nil {
				t.Fatalf("after one approval: %+v, %v", out, err)
			}
			h.is(t, p, exchange.ProposalApproving, exchange.WaitSecond)
			if out, err = h.decides(t, p, exchange.Approve, h.three); err != nil || out.PaymentID == uuid.Nil {
				t.Fatalf("after two approvals: %+v, %v", out, err)
			}
			p = h.is(t, p, exchange.ProposalApproving, exchange.WaitPayload)
			_, err = h.chain.StorePayload(ctx, h.payloadFor(t, p))
			wantFault(t, err, exchange.CodeStateConflict) // its recipient is not screened
			h.cleared(t, p)
			first := h.payloadFor(t, p)
			y := twice(t, func(a, b exchange.MultisigPayload) bool { return a.ID == b.ID }, func() (exchange.MultisigPayload, error) { return h.chain.StorePayload(ctx, first) })
			if again, err := h.chain.StorePayload(ctx, h.payloadFor(t, p)); err != nil || again.ID != y.ID {
				t.Errorf("another payload beside the open one: %+v, %v", again, err)
			}
			p = h.is(t, p, exchange.ProposalSigning, exchange.WaitOwners)
			p = h.signed(t, p, y)
			if p, err = h.executes(t, p, h.two); err != nil || p.ExecutedBy != h.two.UserID || p.PayloadID != y.ID {
				t.Fatalf("executed: %+v, %v", p, err)
			}
			a, err := h.sends(t, p, y)
			if err != nil {
				t.Fatal(err)
			}
			h.is(t, p, exchange.ProposalBroadcasting, exchange.WaitBroadcast)
			for range 2 {
				if _, err := h.chain.RecordBroadcast(ctx, a.ID, "SUCCESS", true); err != nil {
					t.Fatal(err)
				}
				if _, err := h.chain.RecordIncluded(ctx, a.ID, 101, "a-101"); err != nil {
					t.Fatal(err)
				}
			}
			h.is(t, p, exchange.ProposalConfirming, exchange.WaitFinality)
			h.has(t, "1000", "100")
			for range 2 {
				if _, err := h.chain.RecordFinal(ctx, a.ID, true, 101, "a-101", money.Must(n.NativeCoin(), "0.005"), "SUCCESS"); err != nil {
					t.Fatal(err)
				}
			}
			p = h.is(t, p, exchange.ProposalExecuted, exchange.WaitNothing)
			if p.TxHash != a.TxID || p.CompletedAt.IsZero() {
				t.Errorf("executed: %+v", p)
			}
			h.has(t, "900", "0")
			payer := h.gas
			if n == exchange.Tron {
				payer = h.wallet
			}
			if got, err := h.s.Account(ctx, exchange.Owned(exchange.AccCustody, payer.ID, n.NativeCoin())); err != nil || got.Posted.Cmp(money.Must(n.NativeCoin(), map[bool]string{true: "499.995", false: "4.995"}[n == exchange.Tron])) > 0 {
				t.Errorf("the fee was paid by another wallet: %s, %v", got.Posted, err)
			}
			if done, err := h.s.Payload(ctx, y.ID); err != nil || done.Status != exchange.PayloadExecuted {
				t.Errorf("the payload is %+v, %v", done, err)
			}
			if _, err := h.flows.AdvanceProposal(ctx, p.ID); err != nil {
				t.Error(err)
			}
		})
	}
}
