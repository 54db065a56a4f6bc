package conformance

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"testing"
	"time"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/token"
	"github.com/gagliardetto/solana-go/rpc"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/solana"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/solana/programs"
	"kivuko/exchange/money"
)

func TestSolana(t *testing.T) {
	t.Parallel()
	set := solanaPrograms(t)
	chaintest.Run(t, func(t testing.TB) chaintest.Harness { return startSolana(t, set) })
}

// solanaPrograms are the real token programs.
func solanaPrograms(t testing.TB) programs.Set {
	t.Helper()
	dir, err := programs.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	set, err := programs.Cached(dir)
	if err != nil {
		t.Skipf("Solana's programs are not on this machine (the local stack takes them from npm when it starts): %v", err)
	}
	return set
}

const (
	solanaFinalDepth = 32
	// A blockhash is valid for 150 blocks. Half of solanaLife plus the blocks until finality must be less than that. One
	// and a half times solanaLife plus those blocks must be more, by less than the blocks until finality.
	solanaLife = 88 * solananode.DefaultSlotInterval
)

// solanaHarness is a development node in this process, with a driver that is configured with its address only.
type solanaHarness struct {
	client *solana.Client
	node   *solananode.Node
	config solananode.Config
	rpc    *rpc.Client
}

var solanaMints = map[money.Asset]string{money.USDT: solananode.USDTAddress, money.USDC: solananode.USDCAddress}

// ed25519Key is a private key of a test.
type ed25519Key struct{ ed25519.PrivateKey }

func (k ed25519Key) PublicKey() []byte { return k.PrivateKey[ed25519.SeedSize:] }

func (k ed25519Key) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(k.PrivateKey, message), nil
}

func startSolana(t testing.TB, set programs.Set) *solanaHarness {
	t.Helper()
	h := &solanaHarness{config: solananode.Config{DataDir: t.TempDir(), RPCAddr: keptAddress(t), Programs: set, FinalDepth: solanaFinalDepth, Log: slog.New(slog.DiscardHandler)}}
	h.start(t)
	h.connect(t)
	t.Cleanup(func() {
		h.client.Close()
		if err := h.node.Close(); err != nil {
			t.Error(err)
		}
	})
	h.Finalise(t) // the genesis block has a fixed, old date
	return h
}

func (h *solanaHarness) start(t testing.TB) {
	t.Helper()
	n, err := solananode.New(h.config)
	if err != nil {
		t.Fatal(err)
	}
	h.node = n
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	// The scenarios expect the newest block to be confirmed.
	if err := h.node.SetFinality(0, solanaFinalDepth); err != nil {
		t.Fatal(err)
	}
}

func (h *solanaHarness) connect(t testing.TB) {
	t.Helper()
	url := "http://" + h.node.RPCAddr()
	var err error
	h.client, err = solana.New(solana.Config{
		Nodes: []solana.Endpoint{{URL: url}}, Genesis: solananode.GenesisHash().String(), Tokens: solanaMints,
		MaxHeadAge: time.Hour, RetryAfter: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.rpc = rpc.New(url)
}

func (h *solanaHarness) Client() chain.Client     { return h.client }
func (h *solanaHarness) Tokens() []money.Asset    { return []money.Asset{money.USDT, money.USDC} }
func (h *solanaHarness) Unsupported() money.Asset { return money.TRX }
func (h *solanaHarness) Gas() money.Amount        { return money.Must(money.SOL, "0.1") }
func (h *solanaHarness) Life() time.Duration      { return solanaLife }
func (h *solanaHarness) Poolless()                {}

func (h *solanaHarness) BadAddresses() []string {
	return []string{
		"0xdAC17F958D2ee523a2206206994597C13D831ec7",
		"TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
		"bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
		"O0Il1111111111111111111111111111111111111111",
		sdk.SystemProgramID.String(),
		sdk.TokenProgramID.String(),
		solananode.USDTAddress,
		"1nc1nerator11111111111111111111111111111111",
		"EDNd1ycsydWYwVmrYZvqYazFqwk1QjBgAUKFjBoz1jKP", // a token account, off the curve
	}
}

func (h *solanaHarness) NewAccount(t testing.TB) chaintest.Account {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return chaintest.Account{Address: sdk.PublicKey(key.Public().(ed25519.PublicKey)).String(), Key: ed25519Key{key}}
}

func (h *solanaHarness) Sponsor(t testing.TB) chaintest.Account {
	t.Helper()
	a := h.NewAccount(t)
	h.Fund(t, a.Address, money.Must(money.SOL, "10"))
	return a
}

func solanaKey(t testing.TB, s string) sdk.PublicKey {
	t.Helper()
	key, err := sdk.PublicKeyFromBase58(s)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (h *solanaHarness) Fund(t testing.TB, to string, amount money.Amount) {
	t.Helper()
	h.give(t, to, amount)
	h.Mine(t, 1)
	h.Finalise(t)
}

// give sends without waiting for a block.
func (h *solanaHarness) give(t testing.TB, to string, amount money.Amount) {
	t.Helper()
	var err error
	if amount.Asset() == money.SOL {
		_, err = h.node.FundSOL(solanaKey(t, to), amount.Units().Uint64())
	} else {
		_, err = h.node.FundToken(solanaKey(t, solanaMints[amount.Asset()]), solanaKey(t, to), amount.Units().Uint64())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (h *solanaHarness) Mine(t testing.TB, blocks int) {
	t.Helper()
	if _, err := h.node.ProduceBlocks(blocks); err != nil {
		t.Fatal(err)
	}
}

func (h *solanaHarness) Finalise(t testing.TB) {
	t.Helper()
	if _, err := h.node.Finalise(); err != nil {
		t.Fatal(err)
	}
}

// AdvanceTime lets slots pass: nothing on this network depends on a clock. Every fourth slot has no block, so that
// slots and heights differ.
func (h *solanaHarness) AdvanceTime(t testing.TB, d time.Duration) {
	t.Helper()
	for block := range int(d / solananode.DefaultSlotInterval) {
		if block%3 == 2 {
			if err := h.node.SkipSlots(1); err != nil {
				t.Fatal(err)
			}
		}
		h.Mine(t, 1)
	}
}

func (h *solanaHarness) faults(t testing.TB, f solananode.Faults) {
	t.Helper()
	if err := h.node.SetFaults(f); err != nil {
		t.Fatal(err)
	}
}

func (h *solanaHarness) LoseNextAnswer(t testing.TB) { h.faults(t, solananode.Faults{LoseNext: 1}) }
func (h *solanaHarness) DropNext(t testing.TB)       { h.faults(t, solananode.Faults{DropNext: 1}) }
func (h *solanaHarness) BusyNext(t testing.TB)       { h.faults(t, solananode.Faults{BusyNext: 1}) }
func (h *solanaHarness) FailNext(t testing.TB)       { h.faults(t, solananode.Faults{FailNext: 1}) }

// Reorganise keeps the oldest of the blocks: the scenarios undo blocks back to the one whose hash their transaction
// uses. Without that block the transaction would be invalid, not pending, which TestSolanaReferenceIsUndone covers.
func (h *solanaHarness) Reorganise(t testing.TB, depth int, vanish bool) {
	t.Helper()
	if err := h.node.Reorganise(depth-1, vanish); err != nil {
		t.Fatal(err)
	}
}

func (h *solanaHarness) Stop(t testing.TB) {
	t.Helper()
	if err := h.node.Close(); err != nil {
		t.Fatal(err)
	}
}

func (h *solanaHarness) Restart(t testing.TB) { h.start(t) }

func (h *solanaHarness) Block(t testing.TB, asset money.Asset, address string) {
	t.Helper()
	if _, err := h.node.Freeze(solanaKey(t, solanaMints[asset]), solanaKey(t, address), true); err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	h.Finalise(t)
}

func (h *solanaHarness) Pause(t testing.TB, _ money.Asset) {
	t.Helper()
	t.Skip("the Token program has no way to pause a token")
}

func (h *solanaHarness) TakeFee(testing.TB, money.Asset) bool { return false }

func (h *solanaHarness) blockhash(t testing.TB) sdk.Hash {
	t.Helper()
	latest, err := h.rpc.GetLatestBlockhash(t.Context(), rpc.CommitmentConfirmed)
	if err != nil {
		t.Fatal(err)
	}
	return latest.Value.Blockhash
}

// send makes a block of instructions, signed by the given keys. The first key pays.
func (h *solanaHarness) send(t testing.TB, keys []sdk.PrivateKey, all ...sdk.Instruction) sdk.Signature {
	t.Helper()
	tx, err := sdk.NewTransaction(all, h.blockhash(t), sdk.TransactionPayer(keys[0].PublicKey()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Sign(func(want sdk.PublicKey) *sdk.PrivateKey {
		for i := range keys {
			if keys[i].PublicKey() == want {
				return &keys[i]
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	id, err := h.rpc.SendTransactionWithOpts(t.Context(), tx, rpc.TransactionOpts{PreflightCommitment: rpc.CommitmentConfirmed})
	if err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	return id
}

func solanaATA(t testing.TB, wallet, mint sdk.PublicKey) sdk.PublicKey {
	t.Helper()
	a, _, err := sdk.FindAssociatedTokenAddress(wallet, mint)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TransferFrom lets the genesis account move tokens as a delegate.
func (h *solanaHarness) TransferFrom(t testing.TB, owner chaintest.Account, to string, amount money.Amount) {
	t.Helper()
	mint, spender := solanaKey(t, solanaMints[amount.Asset()]), solananode.GenesisKey()
	holder, units := solanaKey(t, owner.Address), amount.Units().Uint64()
	source, dest := solanaATA(t, holder, mint), solanaATA(t, solanaKey(t, to), mint)
	ownerKey := sdk.PrivateKey(owner.Key.(ed25519Key).PrivateKey)
	h.send(t, []sdk.PrivateKey{spender, ownerKey}, token.NewApproveInstruction(units, source, spender.PublicKey(), holder, nil).Build())
	h.send(t, []sdk.PrivateKey{spender}, token.NewTransferCheckedInstruction(units, uint8(amount.Asset().Scale()), source, mint, dest, spender.PublicKey(), nil).Build())
}
