package solana

import (
	"math/big"

	"github.com/gagliardetto/solana-go"

	"kivuko/dev/nodes/solana/svm"
)

// What tests compare a product's books with: the chain read directly, not
// through the interface under test.

// maxListed bounds the lists below; the newest entries win.
const maxListed = 10_000

// Movement is the change that one transaction made to one account's SOL or tokens.
type Movement struct {
	Slot      uint64           `json:"slot"`
	Signature solana.Signature `json:"signature"`
	// Account is whose balance changed, Owner who it belongs to. They are the same
	// for SOL.
	Account solana.PublicKey `json:"account"`
	Owner   solana.PublicKey `json:"owner"`
	// Token is the mint; "" for SOL.
	Token string `json:"token"`
	// Change is in lamports or token units, fees included.
	Change string `json:"change"`
	Final  bool   `json:"final"`
}

// Transaction is a transaction that names an address.
type Transaction struct {
	Signature solana.Signature `json:"signature"`
	Slot      uint64           `json:"slot"` // 0 while it waits for a block
	Height    uint64           `json:"height"`
	// Error is why it failed; "" if it did not.
	Error string `json:"error"`
	Fee   uint64 `json:"fee"` // lamports
	Units uint64 `json:"units"`
	Final bool   `json:"final"`
}

// Summary is the node at a glance.
type Summary struct {
	Head          Block            `json:"head"`
	Confirmed     Block            `json:"confirmed"`
	Final         Block            `json:"final"`
	Pending       int              `json:"pending"`
	Paused        bool             `json:"paused"`
	IntervalMilli int64            `json:"interval_ms"`
	ConfirmDepth  uint64           `json:"confirm_depth"`
	FinalDepth    uint64           `json:"final_depth"`
	Faults        Faults           `json:"faults"`
	GenesisHash   solana.Hash      `json:"genesis_hash"`
	Genesis       string           `json:"genesis_address"`
	USDT          string           `json:"usdt"`
	USDC          string           `json:"usdc"`
	FeeMint       string           `json:"fee_mint"`
	MemoOwner     string           `json:"memo_owner"`
	MemoAccount   solana.PublicKey `json:"memo_account"`
	StateDigest   solana.Hash      `json:"state_digest"`
}

// Movements lists the changes to what an address or the accounts that it owns
// hold, oldest first. Failed transactions move their fee.
func (n *Node) Movements(of solana.PublicKey) []Movement {
	l := n.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []Movement
	for _, h := range l.headers {
		for _, e := range l.blocks[h.slot] {
			for _, m := range movements(e) {
				if m.Account == of || m.Owner == of {
					m.Final = e.height <= l.root
					out = append(out, m)
				}
			}
		}
	}
	return out[max(0, len(out)-maxListed):]
}

func movements(e *entry) (out []Movement) {
	keys := e.tx.Keys()
	change := func(after, before uint64) *big.Int {
		return new(big.Int).Sub(new(big.Int).SetUint64(after), new(big.Int).SetUint64(before))
	}
	add := func(account, owner solana.PublicKey, token string, by *big.Int) {
		if by.Sign() != 0 {
			out = append(out, Movement{Slot: e.slot, Signature: e.tx.ID(), Account: account, Owner: owner, Token: token, Change: by.String()})
		}
	}
	for i, key := range keys {
		add(key, key, "", change(e.result.PostBalances[i], e.result.PreBalances[i]))
		before, had := balanceOf(e.result.PreTokens, i)
		after, has := balanceOf(e.result.PostTokens, i)
		switch {
		case had && has && before.Mint == after.Mint && before.Owner == after.Owner:
			add(key, after.Owner, after.Mint.String(), change(after.Amount, before.Amount))
		default: // opened, closed, or given to another owner
			if had {
				add(key, before.Owner, before.Mint.String(), change(0, before.Amount))
			}
			if has {
				add(key, after.Owner, after.Mint.String(), change(after.Amount, 0))
			}
		}
	}
	return out
}

func balanceOf(list []svm.TokenBalance, index int) (svm.TokenBalance, bool) {
	for _, b := range list {
		if b.AccountIndex == index {
			return b, true
		}
	}
	return svm.TokenBalance{}, false
}

// Transactions lists the transactions that name an address, oldest first, the
// waiting ones last.
func (n *Node) Transactions(of solana.PublicKey) []Transaction {
	l := n.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	var out []Transaction
	for _, e := range l.byAddress[of] {
		t := Transaction{
			Signature: e.tx.ID(), Slot: e.slot, Height: e.height, Fee: e.result.Fee, Units: e.result.Units, Final: e.height <= l.root,
		}
		if e.result.Err != nil {
			t.Error = e.result.Err.Error()
		}
		out = append(out, t)
	}
	for _, p := range l.pool.waiting {
		for _, key := range p.tx.Keys() {
			if key == of {
				out = append(out, Transaction{Signature: p.tx.ID()})
			}
		}
	}
	return out[max(0, len(out)-maxListed):]
}

// Summary describes the node. StateDigest is the same on two nodes that hold the
// same accounts.
func (n *Node) Summary() Summary {
	interval, paused := n.rhythm.State()
	s := Summary{Paused: paused, IntervalMilli: interval.Milliseconds()}
	s.Faults = n.CurrentFaults()
	l := n.ledger
	l.mu.RLock()
	defer l.mu.RUnlock()
	s.Head, s.Confirmed, s.Final = l.report(l.height()), l.report(l.confirmed), l.report(l.root)
	s.Pending, s.ConfirmDepth, s.FinalDepth = len(l.pool.waiting), l.confirmDepth, l.rootDepth
	s.GenesisHash, s.Genesis, s.USDT, s.USDC = GenesisHash(), GenesisAddress, USDTAddress, USDCAddress
	s.FeeMint, s.MemoOwner = FeeMintAddress, MemoOwnerAddress
	s.MemoAccount = associated(mustKey(MemoOwnerAddress), mustKey(FeeMintAddress), solana.Token2022ProgramID)
	s.StateDigest = l.accounts.digest(l.head().slot)
	return s
}
