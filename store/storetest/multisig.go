package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// MultisigWallet makes a wallet of several owners: two officers agree to the request, the signer makes the keys of owners that we hold, and the
// final chain has what was agreed, and nothing else. The deposit watch of the network must have begun. A new account is opened by the house's gas wallet of its network, which must exist and have coins.
func MultisigWallet(t testing.TB, s *store.Store, r exchange.MultisigRequest) exchange.MultisigAccount {
	t.Helper()
	ctx := t.Context()
	by := PrincipalOf(User(t, s, exchange.RoleAdmin))
	if err := Agreed(t, s)(s.ProposeMultisigWallet(ctx, r, by)); err != nil {
		t.Fatalf("seed a wallet of several owners: %v", err)
	}
	a, err := s.MultisigAccount(ctx, store.Everything(), r.ID)
	for _, o := range a.Owners {
		if o.Held && err == nil {
			_, err = s.StoreOwnerKey(ctx, a.ID, o.N, "owner-"+NewID(t).String(), exchange.SealedKey{
				WalletID: a.ID, Purpose: exchange.OwnerKeyPurpose(o.N), Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1",
			})
		}
	}
	if err == nil && r.Address == "" {
		err = openMultisig(t, s, a)
	}
	if err == nil {
		a, err = s.MultisigAccount(ctx, store.Everything(), r.ID)
	}
	if err == nil {
		err = activate(ctx, s, a)
	}
	if err == nil {
		a, err = s.MultisigAccount(ctx, store.Everything(), r.ID)
	}
	if err != nil {
		t.Fatalf("seed a wallet of several owners: %v", err)
	}
	return a
}

// openMultisig carries out the payment that opens an account.
func openMultisig(t testing.TB, s *store.Store, a exchange.MultisigAccount) error {
	ctx, rent := t.Context(), money.Zero(a.Network.NativeCoin())
	if a.Network == exchange.Solana {
		rent = money.Must(money.SOL, "0.0033")
	}
	a, err := s.OpenMultisig(ctx, a.ID, "account-"+NewID(t).String(), rent)
	if err != nil {
		return err
	}
	p, err := s.ChainPayment(ctx, a.PaymentID)
	if err != nil {
		return err
	}
	tx := exchange.ChainAttempt{ID: NewID(t), PaymentID: p.ID, Network: p.Network, Raw: []byte("signed"), FeeLimit: money.Must(p.Network.NativeCoin(), "0.01")}
	if tx.TxID = "open" + tx.ID.String(); a.Network == exchange.Ethereum {
		next, open, err := s.NonceSequence(ctx, p.WalletID)
		if err != nil {
			return err
		}
		if tx.NonceWallet = p.WalletID; open {
			tx.Nonce = next.Next
		}
	}
	if tx, err = s.SaveSignedAttempt(ctx, tx); err != nil {
		return err
	}
	_, err = s.RecordFinal(ctx, tx.ID, true, 80, "b-80", money.Must(p.Network.NativeCoin(), "0.001"), "SUCCESS")
	return err
}

// activate makes an account that has nothing a wallet, at the block up to which the deposit watch has read.
func activate(ctx context.Context, s *store.Store, a exchange.MultisigAccount) error {
	c, _, err := s.DepositCursor(ctx, a.Network)
	if err != nil {
		return err
	}
	var none []money.Amount
	w := exchange.Wallet{Network: a.Network, Custody: exchange.Multisig}
	for _, asset := range a.Network.WalletAssets() {
		if w.Moves(asset) {
			none = append(none, money.Zero(asset))
		}
	}
	_, err = s.ActivateMultisig(ctx, a.ID, QuorumOf(a, c.Final.Number), none)
	return err
}

// QuorumOf is what the chain says at a block about an account that is as it was agreed.
func QuorumOf(a exchange.MultisigAccount, block uint64) exchange.MultisigQuorum {
	q := exchange.MultisigQuorum{Address: a.Address, Threshold: a.Threshold, ControlThreshold: a.ControlThreshold, Block: block, BlockID: "b"}
	if a.Network == exchange.Tron && q.ControlThreshold == 0 {
		q.ControlThreshold = a.Sum()
	}
	for _, o := range a.Owners {
		q.Owners = append(q.Owners, exchange.MultisigOwner{Address: o.Address, Weight: o.Weight})
	}
	return q
}

// OpenProposal proposes a payment from a wallet of several owners.
func OpenProposal(ctx context.Context, s *store.Store, r exchange.ProposalRequest, by exchange.Principal) (exchange.Proposal, error) {
	a, err := Ask(ctx, s, exchange.IntendProposal, r.ID, r.ID, r.Terms(), by)
	if err != nil {
		return exchange.Proposal{}, err
	}
	return s.OpenProposal(ctx, a)
}

// AskProposal writes down what somebody asks for about a proposal, under a new request.
func AskProposal(ctx context.Context, s *store.Store, kind exchange.IntentKind, id uuid.UUID, terms exchange.Terms, by exchange.Principal) (exchange.Asked, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return exchange.Asked{}, err
	}
	return Ask(ctx, s, kind, request, id, terms, by)
}

// DecideProposal has an officer approve or reject a proposal.
func DecideProposal(ctx context.Context, s *store.Store, p exchange.Proposal, action exchange.ApprovalAction, by exchange.Principal) (exchange.ProposalStanding, error) {
	token, err := ProposalTicket(ctx, s, p, action, by)
	if err != nil {
		return exchange.ProposalStanding{}, err
	}
	return s.DecideProposal(ctx, p.ID, action, token)
}

// ProposalTicket gives an officer the right to one decision about a proposal, and returns its token.
func ProposalTicket(ctx context.Context, s *store.Store, p exchange.Proposal, action exchange.ApprovalAction, by exchange.Principal) (string, error) {
	k, token, err := ticket(exchange.ApproveProposal, p.ID, action, p.Amount, p.Digest, by)
	if err == nil {
		_, err = s.IssueProposalTicket(ctx, k, by)
	}
	return token, err
}

// PayloadTicket gives an officer the right to have the own key sign a payload, and returns its token.
func PayloadTicket(ctx context.Context, s *store.Store, y exchange.MultisigPayload, amount money.Amount, by exchange.Principal) (string, error) {
	k, token, err := ticket(exchange.ApprovePayload, y.ID, exchange.Approve, amount, y.Intent(), by)
	if err == nil {
		_, err = s.IssuePayloadTicket(ctx, k, by)
	}
	return token, err
}

func ticket(object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, amount money.Amount, digest string, by exchange.Principal) (exchange.ApprovalTicket, string, error) {
	token, err := uuid.NewV7()
	return exchange.ApprovalTicket{
		ID: token, OfficerID: by.UserID, ObjectType: object, ObjectID: id, Action: action, Amount: amount, Digest: digest, Channel: exchange.ChannelAPI, Note: "seen",
		TokenHash: sha256.Sum256([]byte(token.String())), CreatedAt: time.Now(), ExpiresAt: time.Now().Add(time.Minute),
	}, token.String(), err
}

// PayloadOf is what a driver could have prepared for a proposal, different each time.
func PayloadOf(t testing.TB, p exchange.Proposal) exchange.MultisigPayload {
	t.Helper()
	id := NewID(t)
	digest := sha256.Sum256(id[:])
	y := exchange.MultisigPayload{
		ID: id, ProposalID: p.ID, Joint: []byte(`{"body": "` + id.String() + `"}`), Digest: digest[:], JointID: hex.EncodeToString(digest[:]), Block: 95, BlockID: "b-95",
	}
	if !p.Kind.Moves() {
		y.Joint = jointOf(t, p)
	}
	switch p.Network {
	case exchange.Tron:
		y.ExpiresAt, y.RefBlock = time.Now().Add(time.Hour), "b-94"
	case exchange.Solana:
		y.NonceAccount, y.RefBlock = "nonce-"+p.WalletID.String(), "value-1"
	case exchange.Ethereum:
	}
	return y
}

// jointOf says what owners sign for a proposal that moves nothing.
func jointOf(t testing.TB, p exchange.Proposal) []byte {
	t.Helper()
	j := map[string]any{"account": p.Address}
	change, err := exchange.OwnersChangeOf(p.After)
	if err != nil {
		t.Fatal(err)
	}
	if p.Kind == exchange.ProposeOwners {
		owners := []map[string]any{}
		for _, o := range change.Owners {
			owners = append(owners, map[string]any{"address": o.Address, "weight": o.Weight})
		}
		said := map[string]any{"owners": owners, "threshold": change.Threshold}
		if change.ControlThreshold > change.Threshold {
			said["control"] = map[string]any{"owners": owners, "threshold": change.ControlThreshold}
		}
		j["owners"] = said
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Pause is how long a change of the owners rests from now on. The service can't change it.
func Pause(t testing.TB, s *store.Store, seconds int) {
	t.Helper()
	Exec(t, s, `UPDATE multisig_policy SET pause_seconds = $1`, seconds)
}
