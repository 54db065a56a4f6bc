package conformance

import (
	"strconv"
	"testing"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"
	"github.com/gagliardetto/solana-go/programs/token"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange/money"
)

func TestSolanaMultisig(t *testing.T) {
	t.Parallel()
	set := solanaPrograms(t)
	chaintest.RunMultisig(t, func(t testing.TB) chaintest.MultisigHarness {
		return &sharedHarness{solanaHarness: startSolana(t, set)}
	})
}

// sharedHarness has accounts of several owners, opened by a wallet of ours as the driver does it, and nonce accounts of the
// wallet that pays for joint transactions.
type sharedHarness struct {
	*solanaHarness
	opened int
	shared []string          // the accounts
	nonces map[string]string // by the fee payer
}

func (h *sharedHarness) Rules() chaintest.JointRules {
	return chaintest.JointRules{Exclusive: true, Named: true}
}

// Reorganise undoes as many blocks as it is given: a joint transaction does not refer to a block.
func (h *sharedHarness) Reorganise(t testing.TB, depth int, vanish bool) {
	t.Helper()
	if err := h.node.Reorganise(depth, vanish); err != nil {
		t.Fatal(err)
	}
}

func ownersOf(accounts []chaintest.Account) []chain.Owner {
	var all []chain.Owner
	for _, a := range accounts {
		all = append(all, chain.Owner{Address: a.Address, Weight: 1})
	}
	return all
}

// run sends what one wallet signs alone, and waits until it is final.
func (h *sharedHarness) run(t testing.TB, d chain.Draft, key chain.Key) chain.Signed {
	t.Helper()
	signed := h.offer(t, d, key)
	h.Finalise(t)
	return signed
}

// offer sends what one wallet signs alone, and makes a block.
func (h *sharedHarness) offer(t testing.TB, d chain.Draft, key chain.Key) chain.Signed {
	t.Helper()
	u, err := h.client.Prepare(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := h.client.Sign(u, key)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := h.client.Broadcast(t.Context(), signed.Raw); err != nil || b.State != chain.BroadcastAccepted {
		t.Fatalf("broadcast: %+v, %v", b, err)
	}
	h.Mine(t, 1)
	return signed
}

// openingOf is the draft of an account of several owners.
func (h *sharedHarness) openingOf(t testing.TB, by chaintest.Account, owners []chaintest.Account, threshold uint32) chain.Draft {
	t.Helper()
	h.opened++
	q, seed := chain.OwnersChange{Owners: ownersOf(owners), Threshold: threshold}, strconv.Itoa(h.opened)
	address, err := h.client.MultisigAccount(by.Address, seed, q)
	if err != nil {
		t.Fatal(err)
	}
	rent, err := h.client.MultisigRent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return chain.Draft{Transfer: chain.Transfer{From: by.Address, To: address, Amount: rent}, Seed: seed, Owners: &q}
}

func (h *sharedHarness) NewMultisig(t testing.TB, owners []chaintest.Account, threshold uint32) string {
	t.Helper()
	by := h.Sponsor(t)
	d := h.openingOf(t, by, owners, threshold)
	signed := h.run(t, d, by.Key)
	if got := h.verdict(t, signed); got != chain.VerdictSucceeded {
		t.Fatalf("the account was opened: %s", got)
	}
	h.shared = append(h.shared, d.To)
	return d.To
}

// Pause freezes the accounts of several owners: the Token program pauses no token, but its issuer can refuse them one by one.
func (h *sharedHarness) Pause(t testing.TB, asset money.Asset) {
	t.Helper()
	for _, address := range h.shared {
		h.Block(t, asset, address)
	}
}

func (h *sharedHarness) Payer(t testing.TB) chaintest.Account {
	t.Helper()
	payer := h.Sponsor(t)
	if h.nonces == nil {
		h.nonces = map[string]string{}
	}
	h.nonces[payer.Address] = h.newNonce(t, payer, nonceSeed)
	return payer
}

func (h *sharedHarness) newNonce(t testing.TB, payer chaintest.Account, seed string) string {
	t.Helper()
	account, err := h.client.NonceAccount(payer.Address, seed)
	if err != nil {
		t.Fatal(err)
	}
	rent, err := h.client.NonceRent(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.run(t, chain.Draft{Transfer: chain.Transfer{From: payer.Address, To: account, Amount: rent}, Step: chain.NonceOpen, Seed: seed}, payer.Key)
	return account
}

func (h *sharedHarness) Complete(_ testing.TB, d chain.JointDraft, payer chaintest.Account) chain.JointDraft {
	d.FeePayer, d.NonceAccount = payer.Address, h.nonces[payer.Address]
	return d
}

// raw makes an account of the Token program, and returns it with the key that it has.
func (h *sharedHarness) raw(t testing.TB, size uint64, more ...func(sdk.PublicKey) sdk.Instruction) string {
	t.Helper()
	payer, key := h.Sponsor(t), h.NewAccount(t)
	address := solanaKey(t, key.Address)
	const rent = 10_000_000
	all := []sdk.Instruction{system.NewCreateAccountInstruction(rent, size, sdk.TokenProgramID, solanaKey(t, payer.Address), address).Build()}
	for _, make := range more {
		all = append(all, make(address))
	}
	h.send(t, []sdk.PrivateKey{sdk.PrivateKey(payer.Key.(ed25519Key).PrivateKey), sdk.PrivateKey(key.Key.(ed25519Key).PrivateKey)}, all...)
	h.Finalise(t)
	return key.Address
}

func (h *sharedHarness) ForeignAccounts(t testing.TB) map[string]string {
	t.Helper()
	const size, tokenSize = 355, 165
	var many []sdk.PublicKey
	for range 11 {
		many = append(many, solanaKey(t, h.NewAccount(t).Address))
	}
	shared := func(m uint8, owners ...sdk.PublicKey) func(sdk.PublicKey) sdk.Instruction {
		return func(at sdk.PublicKey) sdk.Instruction {
			return token.NewInitializeMultisig2Instruction(m, at, owners).Build()
		}
	}
	tokens := func(at sdk.PublicKey) sdk.Instruction {
		return token.NewInitializeAccount3Instruction(many[0], at, solanaKey(t, solananode.USDTAddress)).Build()
	}
	holder, _, err := sdk.FindAssociatedTokenAddress(many[0], solanaKey(t, solananode.USDTAddress))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"an account that is not initialised":     h.raw(t, size),
		"a token account":                        h.raw(t, tokenSize, tokens),
		"an owner twice":                         h.raw(t, size, shared(2, many[0], many[1], many[0])),
		"more signers than a transaction allows": h.raw(t, size, shared(7, many...)),
		"an owner without a key":                 h.raw(t, size, shared(1, many[0], holder)),
	}
}
