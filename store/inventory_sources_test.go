package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// sources are the wallets that the inventory of an asset on TRON names, with what they have.
func (h *shared) sources(t *testing.T, asset money.Asset) (all []string) {
	t.Helper()
	found, err := h.api.SwapInventory(t.Context())
	i := slices.IndexFunc(found, func(i exchange.SwapInventory) bool { return i.Network == exchange.Tron && i.Asset == asset })
	if err != nil || i < 0 {
		t.Fatalf("the inventory is %+v, %v", found, err)
	}
	for _, s := range found[i].Sources {
		if s.Network != exchange.Tron || s.Asset != asset || s.Available.Asset() != asset {
			t.Errorf("a source of %s is %+v", asset, s)
		}
		all = append(all, s.Name+" "+s.Available.String())
	}
	return all
}

// Inventory can be brought from wallets of several owners on the network that have some of the asset, that are the house's alone, and whose owners
// are those that were agreed. What is held there is for something else.
func TestInventoryHasSources(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	storetest.TreasuryWallet(t, h.s, exchange.Tron)
	storetest.AgreeValuations(t, h.s)
	merchant := storetest.User(t, h.s, exchange.RoleVendor).ID
	brings := func(n exchange.Network, name string, with uuid.UUID, some ...money.Amount) exchange.MultisigAccount {
		a := h.active(t, n, func(r *exchange.MultisigRequest) { r.Name, r.MerchantID = name, with })
		for _, m := range some {
			storetest.Deposit(t, h.s, a.ID, m)
		}
		return a
	}
	has := func(what string, asset money.Asset, want ...string) {
		t.Helper()
		if got := h.sources(t, asset); !slices.Equal(got, want) {
			t.Errorf("%s: %s can be brought from %q, not %q", what, asset, got, want)
		}
	}
	has("without any", money.USDT)
	a := brings(exchange.Tron, "A", uuid.Nil, usdt("30"), usdc("7"))
	brings(exchange.Tron, "B", uuid.Nil, usdt("40"))
	brings(exchange.Tron, "empty", uuid.Nil)
	brings(exchange.Tron, "shared", merchant, usdt("500"), usdc("500"))
	brings(exchange.Solana, "elsewhere", uuid.Nil, usdt("500"))
	h.agreed(t, h.asks(t, exchange.Tron, existing(t))) // which is no wallet yet
	storetest.Deposit(t, h.s, storetest.GasWallet(t, h.s, exchange.Tron).ID, usdt("500"))
	has("all", money.USDT, "B 40.000000", "A 30.000000")
	has("the other asset", money.USDC, "A 7.000000")

	spends := func(m money.Amount) {
		t.Helper()
		r := exchange.ProposalRequest{ID: storetest.NewID(t), WalletID: a.ID, Amount: m, Destination: stranger, Reference: "rent"}
		if _, err := storetest.OpenProposal(t.Context(), h.s, r, h.one); err != nil {
			t.Fatal(err)
		}
	}
	spends(usdt("10"))
	has("some is held", money.USDT, "B 40.000000", "A 20.000000")
	spends(usdt("20"))
	has("all is held", money.USDT, "B 40.000000")

	q := quorumOf(a, 101)
	q.Threshold++
	if got, err := h.chain.CheckedMultisig(t.Context(), a.ID, q); err != nil || got.Status != exchange.MultisigDiffers {
		t.Fatalf("it is %+v, %v", got, err)
	}
	has("its owners are others", money.USDC)
	if got, err := h.chain.CheckedMultisig(t.Context(), a.ID, quorumOf(a, 102)); err != nil || got.Status != exchange.MultisigActive {
		t.Fatalf("it is %+v, %v", got, err)
	}
	has("they are the agreed ones again", money.USDC, "A 7.000000")
}

// The event about too little says where more is, if there is more.
func TestTooLittleSaysWhereMoreIs(t *testing.T) {
	t.Parallel()
	h := newShared(t)
	treasury := storetest.TreasuryWallet(t, h.s, exchange.Tron)
	for _, asset := range []money.Asset{money.USDT, money.USDC} {
		m := exchange.SwapMarks{ID: storetest.NewID(t), Network: exchange.Tron, Asset: asset, Low: money.Must(asset, "5"), High: money.Must(asset, "9")}
		c, err := h.api.ProposeSwapMarks(t.Context(), m, h.one)
		if err == nil {
			_, err = h.api.ConfirmChange(t.Context(), c.ID, "", h.two)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a := h.active(t, exchange.Tron)
	storetest.Deposit(t, h.s, a.ID, usdt("30"))
	watches := func() {
		t.Helper()
		if _, err := h.flows.WatchSwapInventory(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	watches()
	storetest.Deposit(t, h.s, treasury.ID, usdt("6"))
	watches()
	said := map[string]string{}
	rows, err := storetest.Owner(t, h.s).QueryContext(t.Context(), `SELECT type || ' ' || (payload->>'asset'), coalesce(payload->>'more_in', '') FROM events WHERE object_type = 'swap_marks' AND type <> 'swap_marks.changed'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var about, text string
		if err := rows.Scan(&about, &text); err != nil {
			t.Fatal(err)
		}
		said[about] = text
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	more := said["swap_marks.low USDT"]
	delete(said, "swap_marks.low USDT")
	for _, part := range []string{`"Reserve"`, "30.000000 USDT", treasury.Address} {
		if !strings.Contains(more, part) {
			t.Errorf("%q does not say %s", more, part)
		}
	}
	if len(said) != 2 || said["swap_marks.low USDC"] != "" || said["swap_marks.refilled USDT"] != "" {
		t.Errorf("the other events say %q", said)
	}
}

// withReserve makes a wallet of several owners with USDT on TRON.
func withReserve(t *testing.T, s *store.Store, amount string) {
	t.Helper()
	owner := func() exchange.MultisigOwner { return exchange.MultisigOwner{Address: placeOf(t)} }
	a := storetest.MultisigWallet(t, s, exchange.MultisigRequest{
		ID: storetest.NewID(t), Network: exchange.Tron, Asset: money.USDT, Name: "Reserve", Custody: exchange.MultisigSelf, Address: placeOf(t), Threshold: 2,
		Owners: []exchange.MultisigOwner{owner(), owner()}, Policy: exchange.MultisigPolicy{Approvals: 1},
	})
	storetest.Deposit(t, s, a.ID, usdt(amount))
}
