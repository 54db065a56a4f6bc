package ethereum

import (
	"crypto/ecdsa"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// The behaviour of the main network's tokens that a caller can meet.

// holder is a fresh account with ether and a hundred of both tokens.
func (b *bench) holder() *ecdsa.PrivateKey {
	b.t.Helper()
	k, err := crypto.GenerateKey()
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.Fund(addressOf(k), big.NewInt(1e18)); err != nil {
		b.t.Fatal(err)
	}
	for _, token := range []common.Address{USDTAddress(), USDCAddress()} {
		if _, err := b.FundToken(token, addressOf(k), big.NewInt(100)); err != nil {
			b.t.Fatal(err)
		}
	}
	b.mine(1)
	return k
}

// call mines a call of a contract and gives its receipt.
func (b *bench) call(k *ecdsa.PrivateKey, to common.Address, signature string, args ...[]byte) *types.Receipt {
	b.t.Helper()
	nonce, err := b.eth.PendingNonceAt(b.t.Context(), addressOf(k))
	if err != nil {
		b.t.Fatal(err)
	}
	tx, err := b.sign(k, &types.DynamicFeeTx{
		Nonce: nonce, Gas: callGas, To: &to, Data: Calldata(signature, args...), GasTipCap: big.NewInt(1e9), GasFeeCap: big.NewInt(1e10),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.send(tx)
	b.mine(1)
	r, err := b.eth.TransactionReceipt(b.t.Context(), tx.Hash())
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// view is what a call would give.
func (b *bench) view(from, to common.Address, signature string, args ...[]byte) ([]byte, error) {
	return b.eth.CallContract(b.t.Context(), ethereum.CallMsg{From: from, To: &to, Data: Calldata(signature, args...)}, nil)
}

func (b *bench) holds(token, holder common.Address, want int64) {
	b.t.Helper()
	out, err := b.view(holder, token, "balanceOf(address)", holder.Bytes())
	if err != nil || new(big.Int).SetBytes(out).Int64() != want {
		b.t.Errorf("%s holds %x of %s, want %d, %v", holder, out, tokens()[token], want, err)
	}
}

func n(v int64) []byte { return big.NewInt(v).Bytes() }

func TestTetherReturnsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	k, to := b.holder(), stranger(t)
	from := addressOf(k)
	for signature, args := range map[string][][]byte{
		"transfer(address,uint256)": {to.Bytes(), n(1)}, "approve(address,uint256)": {to.Bytes(), n(1)},
	} {
		if out, err := b.view(from, USDTAddress(), signature, args...); err != nil || len(out) != 0 {
			t.Errorf("USDT's %s gives %x, %v", signature, out, err)
		}
		if out, err := b.view(from, USDCAddress(), signature, args...); err != nil || new(big.Int).SetBytes(out).Int64() != 1 {
			t.Errorf("USDC's %s gives %x, %v", signature, out, err)
		}
	}
	// Too little of it burns all the gas, as the 2017 compiler's assert does.
	if r := b.call(k, USDTAddress(), "transfer(address,uint256)", to.Bytes(), n(101)); r.Status != 0 || r.GasUsed != callGas {
		t.Errorf("status %d after %d gas", r.Status, r.GasUsed)
	}
	if r := b.call(k, USDCAddress(), "transfer(address,uint256)", to.Bytes(), n(101)); r.Status != 0 || r.GasUsed > callGas/2 {
		t.Errorf("status %d after %d gas", r.Status, r.GasUsed)
	}
	// An allowance that is not zero is not replaced by another.
	spend := func(v int64, want uint64) {
		t.Helper()
		if r := b.call(k, USDTAddress(), "approve(address,uint256)", to.Bytes(), n(v)); r.Status != want {
			t.Errorf("approving %d has the status %d", v, r.Status)
		}
	}
	spend(5, 1)
	spend(6, 0)
	spend(0, 1)
	spend(6, 1)
}

func TestBlockLists(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	k := b.holder()
	from, blocked := addressOf(k), stranger(t)
	for token, receives := range map[common.Address]bool{USDTAddress(): true, USDCAddress(): false} {
		if err := b.SetBlocked(token, blocked, true); err != nil {
			t.Fatal(err)
		}
		if r := b.call(k, token, "transfer(address,uint256)", blocked.Bytes(), n(1)); (r.Status == 1) != receives {
			t.Errorf("%s to a blocked address has the status %d", tokens()[token], r.Status)
		}
		if err := b.SetBlocked(token, from, true); err != nil {
			t.Fatal(err)
		}
		if r := b.call(k, token, "transfer(address,uint256)", stranger(t).Bytes(), n(1)); r.Status != 0 {
			t.Errorf("%s from a blocked address has the status %d", tokens()[token], r.Status)
		}
	}
	if err := b.Issue(USDTAddress(), "destroyBlackFunds(address)", blocked.Bytes()); err != nil {
		t.Fatal(err)
	}
	b.holds(USDTAddress(), blocked, 0)
	// What the issuer does leaves no Transfer event.
	moved, err := b.Movements(IssuerAddress())
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Issue(USDTAddress(), "issue(uint256)", n(7)); err != nil {
		t.Fatal(err)
	}
	if again, err := b.Movements(IssuerAddress()); err != nil || len(again) != len(moved) {
		t.Errorf("issuing moved %v, %v", again, err)
	}
}

func TestTetherFeeLeavesTwoEvents(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	if err := b.SetTokenFee(10, 1); err != nil {
		t.Fatal(err)
	}
	k, to := b.holder(), stranger(t)
	if _, err := b.FundToken(USDTAddress(), addressOf(k), big.NewInt(1_000_000)); err != nil {
		t.Fatal(err)
	}
	b.mine(1)
	r := b.call(k, USDTAddress(), "transfer(address,uint256)", to.Bytes(), n(100_000))
	if len(r.Logs) != 2 || common.BytesToAddress(r.Logs[0].Topics[2][:]) != IssuerAddress() || common.BytesToAddress(r.Logs[1].Topics[2][:]) != to {
		t.Errorf("the events are %+v", r.Logs)
	}
	b.holds(USDTAddress(), to, 99_900)
	if err := b.SetTokenFee(20, 1); err == nil {
		t.Error("a rate above the contract's ceiling was taken")
	}
}

// A holder's signature takes the place of its transaction (EIP-2612), once and until its time is over.
func TestPermit(t *testing.T) {
	t.Parallel()
	b := newBench(t, Config{})
	owner, spender := b.holder(), b.holder()
	domain, err := b.view(addressOf(owner), USDCAddress(), "DOMAIN_SEPARATOR()")
	if err != nil {
		t.Fatal(err)
	}
	permit := func(deadline time.Time, used int64) *types.Receipt {
		t.Helper()
		var content []byte
		for _, w := range [][]byte{
			crypto.Keccak256([]byte("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)")),
			addressOf(owner).Bytes(), addressOf(spender).Bytes(), n(40), n(used), n(deadline.Unix()),
		} {
			content = append(content, common.LeftPadBytes(w, wordLength)...)
		}
		s, err := crypto.Sign(crypto.Keccak256([]byte{0x19, 0x01}, domain, crypto.Keccak256(content)), owner)
		if err != nil {
			t.Fatal(err)
		}
		return b.call(spender, USDCAddress(), "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)",
			addressOf(owner).Bytes(), addressOf(spender).Bytes(), n(40), n(deadline.Unix()), []byte{s[64] + 27}, s[:32], s[32:64])
	}
	later := time.Now().Add(time.Hour)
	if r := permit(time.Now().Add(-time.Hour), 0); r.Status != 0 {
		t.Error("a permit was taken after its time")
	}
	if r := permit(later, 0); r.Status != 1 {
		t.Fatal("the permit was refused")
	}
	if r := permit(later, 0); r.Status != 0 {
		t.Error("a permit was taken twice")
	}
	to := stranger(t)
	if r := b.call(spender, USDCAddress(), "transferFrom(address,address,uint256)", addressOf(owner).Bytes(), to.Bytes(), n(40)); r.Status != 1 {
		t.Error("the permit lets nothing be spent")
	}
	b.holds(USDCAddress(), to, 40)
	b.holds(USDCAddress(), addressOf(owner), 60)
}

// The addresses are part of configurations and must never move.
func TestAddressesOfTokens(t *testing.T) {
	t.Parallel()
	if USDTAddress().Hex() != "0x4E48c6d37445c1cC4e32CECa2923ec94Ba88e5b6" || USDCAddress().Hex() != "0x7Ab2686c3EaA99d80cd7788eF8c856595a5beB54" {
		t.Errorf("USDT %s, USDC %s", USDTAddress(), USDCAddress())
	}
}
