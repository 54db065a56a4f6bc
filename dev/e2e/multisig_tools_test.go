package e2e

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/ed25519"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/ethereum"
	"kivuko/chain/solana"
	"kivuko/chain/tron"
	"kivuko/dev/demo"
	ethnode "kivuko/dev/nodes/ethereum"
	solananode "kivuko/dev/nodes/solana"
	tronnode "kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// outsiders are people with keys of their own, who use a network without Kivuko.
type outsiders struct {
	chain.Multisig
	node demo.Node
}

// outsider is one of them.
type outsider struct {
	address string
	key     chain.Key
}

type secp256k1Key struct{ *ecdsa.PrivateKey }

func (k secp256k1Key) PublicKey() []byte { return crypto.FromECDSAPub(&k.PrivateKey.PublicKey) }

func (k secp256k1Key) Sign(digest []byte) ([]byte, error) { return crypto.Sign(digest, k.PrivateKey) }

type ed25519Key struct{ ed25519.PrivateKey }

func (k ed25519Key) PublicKey() []byte { return k.PrivateKey[ed25519.SeedSize:] }

func (k ed25519Key) Sign(message []byte) ([]byte, error) {
	return ed25519.Sign(k.PrivateKey, message), nil
}

// outsidersOn are those of a network.
func (w *harness) outsidersOn(t *testing.T, n demo.Node) *outsiders {
	t.Helper()
	const headAge = 2 * time.Hour // the nodes' clocks may run ahead
	at := w.stack.Addresses
	var client interface {
		chain.Multisig
		Close()
	}
	var err error
	switch n.Network {
	case exchange.Ethereum:
		client, err = ethereum.New(ethereum.Config{ChainID: ethnode.ChainID, Nodes: []ethereum.Endpoint{{URL: "http://" + at.EthereumRPC}}, MaxHeadAge: headAge, Tokens: map[money.Asset]string{
			money.USDT: ethnode.USDTAddress().Hex(), money.USDC: ethnode.USDCAddress().Hex(),
		}})
	case exchange.Tron:
		client, err = tron.New(tron.Config{
			FullNodes: []tron.Endpoint{{Address: at.TronGRPC}}, SolidityNodes: []tron.Endpoint{{Address: at.TronSolidity}}, MaxHeadAge: headAge, USDCEnabled: true,
			Tokens: map[money.Asset]string{money.USDT: tronnode.USDTAddress, money.USDC: tronnode.USDCAddress},
		})
	case exchange.Solana:
		client, err = solana.New(solana.Config{Nodes: []solana.Endpoint{{URL: "http://" + at.SolanaRPC}}, Genesis: solananode.GenesisHash().String(), MaxHeadAge: headAge, Tokens: map[money.Asset]string{
			money.USDT: solananode.USDTAddress, money.USDC: solananode.USDCAddress,
		}})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return &outsiders{Multisig: client, node: n}
}

// person makes a key, and brings its address coins.
func (o *outsiders) person(t *testing.T, coins string) outsider {
	t.Helper()
	var p outsider
	if o.Network() == exchange.Solana {
		_, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			t.Fatal(err)
		}
		p.key = ed25519Key{private}
	} else {
		private, err := crypto.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		p.key = secp256k1Key{private}
	}
	var err error
	if p.address, err = o.Address(p.key.PublicKey()); err != nil {
		t.Fatal(err)
	}
	if coins != "" {
		m := money.Must(o.Network().NativeCoin(), coins)
		if err := o.node.Fund(t.Context(), p.address, m); err != nil {
			t.Fatal(err)
		}
		eventually(t, p.address+" has its coins", func() error {
			b, err := o.Balance(t.Context(), p.address, m.Asset())
			if err == nil && b.Amount.Cmp(m) < 0 {
				err = fmt.Errorf("it has %s", b.Amount)
			}
			return err
		})
	}
	return p
}

// people make keys, ordered by address.
func (o *outsiders) people(t *testing.T, n int) []outsider {
	t.Helper()
	all := make([]outsider, n)
	for i := range all {
		all[i] = o.person(t, "")
	}
	slices.SortFunc(all, func(a, b outsider) int { return cmp.Compare(a.address, b.address) })
	return all
}

// quorumOf is a quorum of people with equal weights.
func quorumOf(people []outsider, threshold uint32) chain.OwnersChange {
	q := chain.OwnersChange{Threshold: threshold}
	for _, p := range people {
		q.Owners = append(q.Owners, chain.Owner{Address: p.address, Weight: 1})
	}
	return q
}

// sends sends what is signed, and waits until it is final.
func (o *outsiders) sends(t *testing.T, signed chain.Signed, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "transaction "+signed.TxID+" of another tool is final", func() error {
		if _, err := o.Broadcast(t.Context(), signed.Raw); err != nil {
			return err
		}
		l, err := o.Locate(t.Context(), signed.TxID)
		if err == nil && (l.Stage != chain.StageFinal || !l.OK) {
			err = fmt.Errorf("it is %s, %s", l.Stage, l.Code)
		}
		return err
	})
}

// opens opens an account of several owners, and returns its address when it is final.
func (o *outsiders) opens(t *testing.T, seed string, q chain.OwnersChange) string {
	t.Helper()
	if o.Network() == exchange.Tron {
		own := o.person(t, "100") // what a change of permissions costs
		o.signs(t, chain.JointDraft{
			Account: own.address, Quorum: chain.Quorum{Owners: []chain.Owner{{Address: own.address, Weight: 1}}, Threshold: 1}, Owners: &q,
		}, outsider{}, own)
		return own.address
	}
	signed, err := o.opening(t, o.person(t, "1"), seed, q, false)
	o.sends(t, signed, err)
	return signed.Transfer.To
}

// opening signs a transaction that opens an account; one in haste offers more than others.
func (o *outsiders) opening(t *testing.T, payer outsider, seed string, q chain.OwnersChange, haste bool) (chain.Signed, error) {
	t.Helper()
	opener := o.Multisig.(chain.Opener)
	address, err := opener.MultisigAccount(payer.address, seed, q)
	if err != nil {
		return chain.Signed{}, err
	}
	rent, err := opener.MultisigRent(t.Context())
	if err != nil {
		return chain.Signed{}, err
	}
	d := chain.Draft{Transfer: chain.Transfer{From: payer.address, To: address, Amount: rent}, Seed: seed, Owners: &q}
	u, err := o.Prepare(t.Context(), d)
	if err == nil && haste {
		d.Bump = u.Bid
		u, err = o.Prepare(t.Context(), d)
	}
	if err != nil {
		return chain.Signed{}, err
	}
	return o.Sign(u, payer.key)
}

// changes gives an account other owners, or another threshold, by the signatures of these people.
func (o *outsiders) changes(t *testing.T, account string, to chain.OwnersChange, people ...outsider) {
	t.Helper()
	var q chain.Quorum
	eventually(t, "the owners of "+account+" can be read", func() (err error) {
		if q, err = o.Quorum(t.Context(), account); err == nil && q.Moving {
			err = fmt.Errorf("they are changing")
		}
		return err
	})
	o.signs(t, chain.JointDraft{Account: account, Quorum: q, Sequence: q.Sequence, Owners: &to}, o.person(t, "1"), people...)
}

// signs carries out what people sign, paid by another one where the account itself does not.
func (o *outsiders) signs(t *testing.T, d chain.JointDraft, payer outsider, people ...outsider) {
	t.Helper()
	j, err := o.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	var signatures []chain.OwnerSignature
	for _, p := range people {
		made, err := p.key.Sign(j.Digest)
		if err != nil {
			t.Fatal(err)
		}
		one, err := o.Signature(j, made)
		if err != nil {
			t.Fatal(err)
		}
		signatures = append(signatures, one)
	}
	var keys []chain.Key
	if payer.key != nil {
		keys = append(keys, payer.key)
	}
	x, err := o.PrepareExecution(t.Context(), j, signatures, chain.ExecutionDraft{Payer: payer.address})
	var signed chain.Signed
	if err == nil {
		signed, err = o.SignExecution(x, keys...)
	}
	o.sends(t, signed, err)
}

// newSeed is a seed that was never used.
func newSeed() string { return uuid.NewString() }
