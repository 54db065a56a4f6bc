package ethereum

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth"
	gethnode "github.com/ethereum/go-ethereum/node"

	"kivuko/dev/nodes/ethereum/safe"
	"kivuko/dev/nodes/ethereum/safe/safetest"
)

// codeHashes are those of the main network (safe-global/safe-deployments 1.37.63, v1.4.1).
var codeHashes = map[string]string{
	"Safe": "0x1fe2df852ba3299d6534ef416eefa406e56ced995bca886ab7a553e6d0c5e1c4", "SafeL2": "0xb1f926978a0f44a2c0ec8fe822418ae969bd8c3f18d61e5103100339894f81ff",
	"SafeProxyFactory":             "0x50c3cdc4074750a7a974204a716c999edd37482f907608d960b2b025ee0b3317",
	"CompatibilityFallbackHandler": "0x7c6007a5d711cea8dfd5d91f5940ec29c7f200fe511eb1fc1397b367af3c42f9",
	"MultiSend":                    "0x0e4f7fc66550a322d1e7688e181b75e217e662a4f3f4d6a29b22bc61217c4b77",
	"MultiSendCallOnly":            "0xecd5bd14a08c5d2122379900b2f272bdf107a7e92423c10dd5fe3254386c9939",
	"SignMessageLib":               "0x525c754a46b79e05543a59bb61e8de3c9eee0d955a59352409cbe67ea1077528",
	"CreateCall":                   "0x2b3060c55fcb8275653e99ad511a71f67ba76934ed66a7d74d6e68b52afff889",
	"SimulateTxAccessor":           "0x91f82615581fc73b190b83d72e883608b25e392f72322035df1b13d51766cf8d",
}

// hasContracts checks that every contract of Safe has the main network's code.
func (b *bench) hasContracts(set safe.Set) {
	b.t.Helper()
	if len(set) != len(codeHashes) {
		b.t.Errorf("%d contracts, want %d", len(set), len(codeHashes))
	}
	for _, c := range set {
		code, err := b.eth.CodeAt(b.t.Context(), c.Address, nil)
		if got := crypto.Keccak256Hash(code); err != nil || got != common.HexToHash(codeHashes[c.Name]) {
			b.t.Errorf("%s has the code hash %s, want %s: %v", c.Name, got, codeHashes[c.Name], err)
		}
	}
}

func TestContractsOfSafeAreAsOnTheMainNetwork(t *testing.T) {
	t.Parallel()
	set := safetest.Set(t)
	newBench(t, Config{Contracts: set}).hasContracts(set)
}

// A chain that was begun without the contracts gets them when the node starts with them, once.
func TestContractsOfSafeComeLater(t *testing.T) {
	t.Parallel()
	set, dir := safetest.Set(t), t.TempDir()
	for i, contracts := range []safe.Set{nil, set, set, nil} {
		n, err := New(Config{DataDir: dir, Contracts: contracts, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Start(context.Background()); err != nil {
			t.Fatal(err)
		}
		if want := uint64(min(1+i, 2)); n.Head().Number != want {
			t.Errorf("start %d: the newest block is %d, want %d", i, n.Head().Number, want)
		}
		if err := n.Close(); err != nil {
			t.Fatal(err)
		}
	}
	newBench(t, Config{DataDir: dir}).hasContracts(set)
}

// A chain of an older version has another first block. The error says what to do.
func TestChainOfAnotherVersion(t *testing.T) {
	t.Parallel()
	n := &Node{config: Config{DataDir: t.TempDir()}}
	old, err := gethnode.New(n.nodeConfig())
	if err != nil {
		t.Fatal(err)
	}
	settings := chainSettings()
	delete(settings.Genesis.Alloc, safe.Factory)
	if _, err := eth.New(old, settings); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := New(n.config); err == nil || !strings.Contains(err.Error(), "make clean-data") {
		t.Errorf("a chain with another first block: %v", err)
	}
}
