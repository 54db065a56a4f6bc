package store_test

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Nothing but what its owners sign leaves a wallet of several owners: no flow, desk or schedule takes it as a source, and no login approves a
// payment out of it. The house has no other wallet here, so a wallet that is chosen by mistake is this one.
func TestNothingLeavesAWalletOfSeveralOwners(t *testing.T) {
	h := newShared(t)
	ctx := t.Context()
	a := h.active(t, exchange.Tron)
	storetest.Deposit(t, h.s, a.ID, usdt("500"))
	storetest.Gas(t, h.s, a.ID, trx("100"))
	storetest.Earned(t, h.s, a.ID, usdt("50"))

	t.Run("treasury", func(t *testing.T) {
		_, err := h.s.HouseWallet(ctx, exchange.Tron)
		wantFault(t, err, exchange.CodeNotFound)
		_, err = h.s.ProposeSwapMarks(ctx, exchange.SwapMarks{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Low: usdt("1"), High: usdt("2")}, h.one)
		wantFault(t, err, exchange.CodeUnsupported)
		if all, err := h.s.SwapInventory(ctx); err != nil || len(all) != 0 {
			t.Errorf("it has inventory for swaps: %+v, %v", all, err)
		}
	})
	t.Run("transfers", func(t *testing.T) {
		_, err := storetest.OpenTransfer(ctx, h.s, exchange.TransferRequest{
			ID: storetest.NewID(t), WalletID: a.ID, Network: exchange.Tron, RequestedBy: h.one.UserID, Amount: usdt("1"), Recipient: exchange.Recipient{Address: stranger},
		}, h.one)
		if fieldOf(err) != "/from_wallet_id" {
			t.Errorf("a transfer leaves it: %v", err)
		}
	})
	t.Run("swaps", func(t *testing.T) {
		_, err := h.s.OpenSwapQuote(ctx, exchange.SwapQuoteRequest{ID: storetest.NewID(t), WalletID: a.ID, From: money.USDT, To: money.USDC, Amount: usdt("1")}, h.one)
		if fieldOf(err) != "/wallet_id" {
			t.Errorf("a swap is quoted in it: %v", err)
		}
	})
	t.Run("inventory", func(t *testing.T) {
		if _, err := h.s.ProposeInventory(ctx, a.ID, usdt("1"), "x", h.one); fieldOf(err) != "/wallet_id" {
			t.Errorf("some of it is set aside: %v", err)
		}
	})
	t.Run("fees", func(t *testing.T) {
		storetest.TreasuryWallet(t, h.s, exchange.Tron)
		_, err := h.s.ProposeFeeSweep(ctx, store.FeeSweepRequest{ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Least: usdt("1")}, h.one)
		wantFault(t, err, exchange.CodeStateConflict)
		all, _, err := h.s.EarnedFees(ctx, store.FeesFilter{WalletID: a.ID}, onePage)
		if err != nil || len(all) != 1 || all[0].Sweepable {
			t.Errorf("earned there: %+v, %v", all, err)
		}
	})
	t.Run("gas", func(t *testing.T) {
		var kind *string
		if err := storetest.Owner(t, h.s).QueryRowContext(ctx, `SELECT gas_ahead_kind($1)`, a.ID).Scan(&kind); err != nil || kind != nil {
			t.Errorf("it gets gas ahead of need as %v, %v", kind, err)
		}
		if _, all, err := h.s.GasLow(ctx, exchange.Tron, map[exchange.GasKind]money.Amount{exchange.GasForVendor: trx("999"), exchange.GasForEscrow: trx("999"), exchange.GasForCoins: trx("999")}, 10); err != nil || len(all) != 0 {
			t.Errorf("it is low on gas: %+v, %v", all, err)
		}
	})
	t.Run("cold", func(t *testing.T) {
		if k, found, err := h.s.ColdKey(ctx, a.ID); err != nil || found {
			t.Errorf("it has a key: %+v, %v", k, err)
		}
	})
	spl, gas := h.active(t, exchange.Solana), h.gas[exchange.Solana]
	h.refusesPaymentsFrom(t, a)
	h.refusesObjectsOf(t, a)
	h.every(t, "opens a nonce account for it", `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, intent_hash, status, approved_by,
			created_at, updated_at) VALUES (gen_random_uuid(), 'nonce_account', `+quotedID(spl.ID)+`, 'solana', 'SOL', 0.001, `+quotedID(gas.ID)+`, `+quoted(gas.Address)+
		`, 'Shared-another-address', repeat('0', 64), 'approved', 'policy', now(), now())`)
}

// refusesPaymentsFrom tries a payment of every purpose out of a wallet. That of a proposal leaves it, but not without the proposal.
func (h *shared) refusesPaymentsFrom(t *testing.T, a exchange.MultisigAccount) {
	t.Helper()
	for _, purpose := range exchange.ChainPurposes() {
		for _, role := range loginsOfSwaps {
			err := h.together(t, role, `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, intent_hash, status, approved_by,
				created_at, updated_at) VALUES (gen_random_uuid(), `+quoted(string(purpose))+`, gen_random_uuid(), 'tron', 'USDT', 1, `+quotedID(a.ID)+`, `+quoted(a.Address)+`, `+quoted(stranger)+
				`, repeat('0', 64), 'approved', 'policy', now(), now())`)
			if !refused(err) || role == store.RoleFlows && purpose != exchange.ForProposal && !strings.Contains(err.Error(), "several owners control") {
				t.Errorf("%s pays out of it for a %s: %v", role, purpose, err)
			}
		}
	}
}

// refusesObjectsOf tries rows that make a payment out of a wallet, beside the store.
func (h *shared) refusesObjectsOf(t *testing.T, a exchange.MultisigAccount) {
	t.Helper()
	h.every(t, "gives it to a vendor", `UPDATE wallets SET vendor_id = `+quotedID(h.one.UserID)+` WHERE id = `+quotedID(a.ID))
	for _, change := range []string{`label = 'x'`, `asset = 'USDC'`, `created_by = ` + quotedID(h.two.UserID)} {
		h.every(t, "changes it: "+change, `UPDATE wallets SET `+change+` WHERE id = `+quotedID(a.ID))
	}
	h.every(t, "makes it custodial", `UPDATE wallets SET custody = 'custodial' WHERE id = `+quotedID(a.ID))
	h.every(t, "makes it hot", `UPDATE wallets SET type = 'hot' WHERE id = `+quotedID(a.ID))
	h.every(t, "makes it the treasury's", `UPDATE wallets SET purpose = 'treasury' WHERE id = `+quotedID(a.ID))
	h.every(t, "makes it a default", `UPDATE wallets SET is_default = true WHERE id = `+quotedID(a.ID))
	h.every(t, "makes a counterpart of it", `INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, counterpart_of, created_at, updated_at)
		VALUES (gen_random_uuid(), 'treasury', 'counterpart', 'ethereum', '0x0000000000000000000000000000000000000000', 'USDT', 'cold', 'custodial', '', false, `+quotedID(a.ID)+`, now(), now())`)
	h.every(t, "makes another wallet of several owners", `INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, created_at, updated_at)
		VALUES (gen_random_uuid(), 'treasury', 'multisig', 'tron', 'Shared-another-address', 'USDT', 'cold', 'multisig', '', false, now(), now())`)
	h.every(t, "makes a hot one", `INSERT INTO wallets (id, owner_type, purpose, network, address, asset, type, custody, label, is_default, created_at, updated_at)
		VALUES (gen_random_uuid(), 'treasury', 'treasury', 'tron', 'Shared-another-address', 'USDT', 'hot', 'multisig', '', false, now(), now())`)
}
