package solana

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	sdk "github.com/gagliardetto/solana-go"

	"kivuko/chain"
	"kivuko/exchange/money"
)

// sharedData is the content of an account of several owners.
func sharedData(threshold byte, owners ...sdk.PublicKey) []byte {
	data := make([]byte, multisigSize)
	data[multisigRequired], data[multisigOwners], data[multisigState] = threshold, byte(len(owners)), multisigReady
	for i, o := range owners {
		copy(data[ownersAt+i*keyLength:], o[:])
	}
	return data
}

func sharedAccount(data []byte) map[string]any {
	return accountJSON(3_361_680, sdk.TokenProgramID, data)
}

// names makes so many owners.
func names(n int) []sdk.PublicKey {
	var all []sdk.PublicKey
	for i := range n {
		all = append(all, named(fmt.Sprint("owner ", i)).key())
	}
	return all
}

// committee is a stub network with an account of 100 USDT whose owners are n, of whom m sign, and the draft of a payment.
func committee(t testing.TB, m, n int) (*stub, *Client, chain.JointDraft) {
	t.Helper()
	s, c, d := vault(t)
	account := named("treasury").key()
	owners := names(n)
	s.accounts[account.String()] = sharedAccount(sharedData(byte(m), owners...))
	s.accounts[ataOf(t, account, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), account, 100_000_000, 1)
	q, err := c.Quorum(t.Context(), account.String())
	if err != nil {
		t.Fatal(err)
	}
	j := chain.JointDraft{
		Account: account.String(), Quorum: q, Transfer: &chain.Transfer{From: account.String(), To: named("bob").address(), Amount: money.Must(money.USDT, "10")},
		FeePayer: d.FeePayer, NonceAccount: d.NonceAccount,
	}
	for _, o := range owners[:m] {
		j.Signers = append(j.Signers, o.String())
	}
	return s, c, j
}

func jointIn(t testing.TB, c *Client, d chain.JointDraft) chain.Joint {
	t.Helper()
	j, err := c.PrepareJoint(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// Each rule of an account of several owners is named when it is broken.
func TestQuorumNamesTheRule(t *testing.T) {
	t.Parallel()
	owners := names(3)
	edited := func(edit func([]byte)) map[string]any {
		data := sharedData(2, owners...)
		edit(data)
		return sharedAccount(data)
	}
	for name, q := range map[string]struct {
		account map[string]any
		rule    string
	}{
		"no account":         {nil, "does not exist"},
		"a wallet":           {walletAccount(5), "controlled by one key"},
		"of Token-2022":      {accountJSON(1, sdk.Token2022ProgramID, sharedData(2, owners...)), "not to the Token program"},
		"a token account":    {holdingAccount(sdk.MustPublicKeyFromBase58(usdt), owners[0], 1, 1), "has 165 bytes"},
		"a mint":             {mintAccount(6, sdk.TokenProgramID), "has 82 bytes"},
		"a byte more":        {sharedAccount(append(sharedData(2, owners...), 0)), "has 356 bytes"},
		"not initialised":    {edited(func(b []byte) { b[multisigState] = 0 }), "is not initialised"},
		"another state":      {edited(func(b []byte) { b[multisigState] = 2 }), "is not initialised"},
		"no owners":          {edited(func(b []byte) { b[multisigOwners] = 0 }), "has 0 owners"},
		"twelve owners":      {edited(func(b []byte) { b[multisigOwners] = 12 }), "has 12 owners"},
		"none must sign":     {edited(func(b []byte) { b[multisigRequired] = 0 }), "needs 0 of 3"},
		"four of three":      {edited(func(b []byte) { b[multisigRequired] = 4 }), "needs 4 of 3"},
		"seven of eleven":    {sharedAccount(sharedData(7, names(11)...)), "room for 6"},
		"an owner twice":     {sharedAccount(sharedData(2, owners[0], owners[1], owners[0])), "twice"},
		"an owner off curve": {sharedAccount(sharedData(2, owners[0], ataOf(t, owners[0], usdt))), "without a key"},
		"an empty owner":     {sharedAccount(sharedData(2, owners[0], sdk.PublicKey{})), "without a key"},
	} {
		s := newStub()
		key := named("treasury").address()
		s.accounts[key] = q.account
		_, err := stubbed(t, s).Quorum(t.Context(), key)
		wantReason(t, name, err, chain.ReasonForeign)
		if err != nil && !strings.Contains(err.Error(), q.rule) {
			t.Errorf("%s: %q is missing in: %v", name, q.rule, err)
		}
	}
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	for _, q := range []struct{ m, n int }{{1, 1}, {2, 3}, {6, 11}} {
		_, _, d := committee(t, q.m, q.n)
		if int(d.Quorum.Threshold) != q.m || len(d.Quorum.Owners) != q.n || d.Quorum.Moving || d.Quorum.Head.Final.Number != 1068 || d.Quorum.Head.Latest.Number != 1100 {
			t.Errorf("%d of %d: %+v", q.m, q.n, d.Quorum)
		}
		if !slices.IsSortedFunc(d.Quorum.Owners, func(a, b chain.Owner) int { return strings.Compare(a.Address, b.Address) }) {
			t.Errorf("the owners are not in order: %+v", d.Quorum.Owners)
		}
	}
}

func TestPrepareJointRefuses(t *testing.T) {
	t.Parallel()
	type edit = func(*stub, *chain.JointDraft)
	change := func(f func(*chain.JointDraft)) edit { return func(_ *stub, d *chain.JointDraft) { f(d) } }
	for name, q := range map[string]struct {
		edit edit
		want chain.Reason
	}{
		"owners":              {change(func(d *chain.JointDraft) { d.Owners = &chain.OwnersChange{} }), chain.ReasonUnsupported},
		"nothing":             {change(func(d *chain.JointDraft) { d.Transfer = nil }), chain.ReasonUnsupported},
		"SOL":                 {change(func(d *chain.JointDraft) { d.Transfer.Amount = money.Must(money.SOL, "1") }), chain.ReasonUnsupported},
		"a number":            {change(func(d *chain.JointDraft) { d.Sequence = 1 }), chain.ReasonUnsupported},
		"no fee payer":        {change(func(d *chain.JointDraft) { d.FeePayer = "" }), chain.ReasonUnsupported},
		"no nonce account":    {change(func(d *chain.JointDraft) { d.NonceAccount = "" }), chain.ReasonUnsupported},
		"another sender":      {change(func(d *chain.JointDraft) { d.Transfer.From = named("alice").address() }), chain.ReasonAddress},
		"an owner pays":       {change(func(d *chain.JointDraft) { d.FeePayer = d.Quorum.Owners[0].Address }), chain.ReasonUnsupported},
		"a signer less":       {change(func(d *chain.JointDraft) { d.Signers = d.Signers[:1] }), chain.ReasonUnsupported},
		"a signer more":       {change(func(d *chain.JointDraft) { d.Signers = append(d.Signers, names(3)[2].String()) }), chain.ReasonUnsupported},
		"no signers":          {change(func(d *chain.JointDraft) { d.Signers = nil }), chain.ReasonUnsupported},
		"a signer twice":      {change(func(d *chain.JointDraft) { d.Signers = []string{d.Signers[0], d.Signers[0]} }), chain.ReasonForeign},
		"another signer":      {change(func(d *chain.JointDraft) { d.Signers[0] = named("mallory").address() }), chain.ReasonForeign},
		"a weight":            {change(func(d *chain.JointDraft) { d.Quorum.Owners[0].Weight = 2 }), chain.ReasonForeign},
		"another threshold":   {change(func(d *chain.JointDraft) { d.Quorum.Threshold = 1; d.Signers = d.Signers[:1] }), chain.ReasonForeign},
		"a permission":        {change(func(d *chain.JointDraft) { d.Quorum.Permission = 2 }), chain.ReasonUnsupported},
		"the account is gone": {func(s *stub, d *chain.JointDraft) { delete(s.accounts, d.Account) }, chain.ReasonForeign},
		"other owners": {func(s *stub, d *chain.JointDraft) {
			s.accounts[d.Account] = sharedAccount(sharedData(2, names(4)[1:]...))
		}, chain.ReasonForeign},
		"another nonce's authority": {func(s *stub, d *chain.JointDraft) {
			s.accounts[d.NonceAccount] = nonceAccountOf(1, names(1)[0], hashAt(5))
		}, chain.ReasonReverts},
		"too little": {func(s *stub, d *chain.JointDraft) {
			account := sdk.MustPublicKeyFromBase58(d.Account)
			s.accounts[ataOf(t, account, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), account, 9_999_999, 1)
		}, chain.ReasonFunds},
		"frozen": {func(s *stub, d *chain.JointDraft) {
			account := sdk.MustPublicKeyFromBase58(d.Account)
			s.accounts[ataOf(t, account, usdt).String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), account, 50_000_000, 2)
		}, chain.ReasonBlocked},
		"a poor fee payer": {func(s *stub, d *chain.JointDraft) { s.accounts[d.FeePayer] = walletAccount(1_000_000) }, chain.ReasonGas},
	} {
		s, c, d := committee(t, 2, 3)
		d.Quorum.Owners = slices.Clone(d.Quorum.Owners)
		q.edit(s, &d)
		_, err := c.PrepareJoint(t.Context(), d)
		wantReason(t, name, err, q.want)
	}
}

// Where all owners must sign, they need not be named. The order in which signers are named changes nothing.
func TestJointSigners(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 3, 3)
	first := jointIn(t, c, d)
	reversed := d
	reversed.Signers = slices.Clone(d.Signers)
	slices.Reverse(reversed.Signers)
	unnamed := d
	unnamed.Signers = nil
	for _, other := range []chain.JointDraft{reversed, unnamed} {
		if second := jointIn(t, c, other); !slices.Equal(first.Signers, second.Signers) || !slices.IsSorted(first.Signers) || len(first.Signers) != 3 {
			t.Errorf("signers %v and %v", first.Signers, second.Signers)
		}
	}
	m, err := readMessage(first.Body)
	if err != nil {
		t.Fatal(err)
	}
	got := m.Signers().ToBase58()
	if len(got) != 4 || got[0] != d.FeePayer || !slices.Equal(slices.Sorted(slices.Values(got[1:])), first.Signers) {
		t.Errorf("the message is signed by %v", got)
	}
	transfer := m.Instructions[len(m.Instructions)-1]
	accounts, err := transfer.ResolveInstructionAccounts(m)
	if err != nil {
		t.Fatal(err)
	}
	if a := accounts[3]; a.PublicKey.String() != d.Account || a.IsSigner || a.IsWritable {
		t.Errorf("the account itself is %+v", a)
	}
	for i, a := range accounts[4:] {
		if a.PublicKey.String() != first.Signers[i] || !a.IsSigner || a.IsWritable {
			t.Errorf("a signer is %+v", a)
		}
	}
}

// Every byte of a joint transaction matters, except for the memo and the budget within its bounds, and these change its id.
func TestCheckJointRefuses(t *testing.T) {
	t.Parallel()
	_, c, d := committee(t, 2, 3)
	j := jointIn(t, c, d)
	for name, edit := range map[string]func(*chain.Joint){
		"another payer":         func(j *chain.Joint) { j.FeePayer = named("mallory").address() },
		"another nonce account": func(j *chain.Joint) { j.NonceAccount = named("mallory").address() },
		"another value":         func(j *chain.Joint) { j.RefBlock = hashAt(6) },
		"no block":              func(j *chain.Joint) { j.Block = chain.Block{} },
		"another signer":        func(j *chain.Joint) { j.Signers = []string{j.Signers[0], names(3)[2].String()} },
		"an expiry":             func(j *chain.Joint) { j.ExpiresAt = stubNow },
		"a fee of the account":  func(j *chain.Joint) { j.FeeLimit = lamports(1) },
		"another id":            func(j *chain.Joint) { j.ID = jointID(nil) },
		"another digest":        func(j *chain.Joint) { j.Digest = flipped(j.Digest, 200) },
		"another threshold":     func(j *chain.Joint) { j.Quorum.Threshold = 3 },
		"owners as well":        func(j *chain.Joint) { j.Owners = &chain.OwnersChange{} },
	} {
		bad := j
		edit(&bad)
		if err := c.CheckJoint(bad); err == nil {
			t.Errorf("%s: it passed", name)
		}
	}
	for i := range j.Body {
		bad := j
		bad.Body = flipped(j.Body, i)
		bad.Digest = bad.Body
		if err := c.CheckJoint(bad); err == nil {
			t.Errorf("byte %d: it passed", i)
		}
		bad.ID = jointID(bad.Body)
		if err := c.CheckJoint(bad); err == nil {
			in, err := c.jointOf(j.JointDraft)
			if err != nil {
				t.Fatal(err)
			}
			if _, good, err := reads(c.unsigned(j), in); err != nil || !sameMeaning(c, bad.Body, good) {
				t.Errorf("byte %d: it passed under its own id (%v)", i, err)
			}
		}
	}
}

// A message that can't be changed while its owners sign has room for what changes meanwhile: its bid and its computation.
func TestJointIsAmple(t *testing.T) {
	t.Parallel()
	s, c, d := committee(t, 2, 3)
	side, holder := named("side").key(), named("holder").key()
	s.accounts[side.String()] = holdingAccount(sdk.MustPublicKeyFromBase58(usdt), holder, 1, 1)
	s.answers["simulateTransaction"] = at(1100, map[string]any{"err": nil, "unitsConsumed": 1_500})
	d.Transfer.To = side.String()
	j := jointIn(t, c, d)
	in, err := c.jointOf(d)
	if err != nil {
		t.Fatal(err)
	}
	if _, p, err := reads(c.unsigned(j), in); err != nil || p.create || p.limit != createUnits || p.price != c.config.Fees.PriceCeiling {
		t.Errorf("%+v, %v", p, err)
	}
}

// Tokens may be paid to an account of several owners, whatever its rules, but never to one that anyone may still initialise.
func TestPreparePaysSeveralOwners(t *testing.T) {
	t.Parallel()
	keyless := ataOf(t, named("bob").key(), usdc) // an address off the curve
	for _, to := range []sdk.PublicKey{named("treasury").key(), keyless} {
		for name, q := range map[string]struct {
			data   []byte
			amount money.Amount
			want   chain.Reason
		}{
			"two of three":    {sharedData(2, names(3)...), money.Must(money.USDT, "1"), ""},
			"eleven":          {sharedData(11, names(11)...), money.Must(money.USDT, "1"), ""},
			"SOL":             {sharedData(2, names(3)...), money.Must(money.SOL, "0.1"), chain.ReasonAddress},
			"not initialised": {make([]byte, multisigSize), money.Must(money.USDT, "1"), chain.ReasonAddress},
		} {
			s, d := harness(t)
			s.accounts[to.String()] = sharedAccount(q.data)
			d.To, d.Amount = to.String(), q.amount
			_, err := stubbed(t, s).Prepare(t.Context(), d)
			wantReason(t, name+" at "+to.String(), err, q.want)
		}
	}
	s, d := harness(t)
	d.To = keyless.String()
	for _, amount := range []string{"USDT", "SOL"} {
		d.Amount = money.Must(money.Asset(amount), "0.5")
		_, err := stubbed(t, s).Prepare(t.Context(), d)
		wantReason(t, amount+" to an address without a key", err, chain.ReasonAddress)
	}
	_, err := stubbed(t, s).Balance(t.Context(), keyless.String(), money.USDT)
	wantReason(t, "the balance of an address without a key", err, chain.ReasonAddress)
}
