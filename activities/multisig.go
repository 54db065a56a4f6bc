package activities

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// multisigReader reads accounts of several owners.
type multisigReader interface {
	MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error)
}

// MultisigRowStore moves accounts of several owners for their flow. Every method is one transaction and may be called again.
type MultisigRowStore interface {
	multisigReader
	// OpenMultisig approves the payment that opens an account at an address, or finds it.
	OpenMultisig(ctx context.Context, account uuid.UUID, address string, rent money.Amount) (exchange.MultisigAccount, error)
	// FundMultisig approves a further payment to an account that lacks coins to be given to its owners, or finds it.
	FundMultisig(ctx context.Context, account uuid.UUID, missing money.Amount) (exchange.MultisigAccount, error)
	GiveUpMultisig(ctx context.Context, account uuid.UUID, by exchange.Principal) (exchange.MultisigAccount, error)
	actingStore
}

// MultisigRows changes the rows of accounts of several owners. It is registered on the flows queue.
type MultisigRows struct{ Store MultisigRowStore }

// MultisigInput names an account of several owners.
type MultisigInput struct {
	AccountID uuid.UUID `json:"account_id"`
}

// MultisigState is how far an account of several owners is.
type MultisigState struct {
	Status    exchange.MultisigStatus `json:"status"`
	Detail    string                  `json:"detail,omitempty"`
	Network   exchange.Network        `json:"network,omitempty"`
	Adopted   bool                    `json:"adopted,omitempty"`
	PaymentID uuid.UUID               `json:"payment_id,omitzero"` // that opens it
}

func multisigState(a exchange.MultisigAccount) MultisigState {
	return MultisigState{Status: a.Status, Detail: a.StatusDetail, Network: a.Network, Adopted: a.Adopted, PaymentID: a.PaymentID}
}

// ReadMultisig returns how far an account is.
func (m *MultisigRows) ReadMultisig(ctx context.Context, in MultisigInput) (MultisigState, error) {
	a, err := m.Store.MultisigAccountByID(ctx, in.AccountID)
	return multisigState(a), Failure(ctx, err)
}

// OpenMultisigInput names an account and the place at which it is opened.
type OpenMultisigInput struct {
	AccountID uuid.UUID     `json:"account_id"`
	Place     MultisigPlace `json:"place"`
}

// ApproveOpening approves the payment that opens an account, or finds it.
func (m *MultisigRows) ApproveOpening(ctx context.Context, in OpenMultisigInput) (MultisigState, error) {
	a, err := m.Store.OpenMultisig(ctx, in.AccountID, in.Place.Address, in.Place.Rent)
	return multisigState(a), Failure(ctx, err)
}

// GiveUpMultisigInput gives an account up that could not be opened, by an operator's command.
type GiveUpMultisigInput struct {
	AccountID uuid.UUID `json:"account_id"`
	Proof     Proof     `json:"proof"`
}

// GiveUpMultisig gives an account up; CodeStateConflict while a transaction may still open it.
func (m *MultisigRows) GiveUpMultisig(ctx context.Context, in GiveUpMultisigInput) error {
	by, err := actor(ctx, m.Store, in.Proof.Behalf())
	if err == nil {
		_, err = m.Store.GiveUpMultisig(ctx, in.AccountID, by)
	}
	return Failure(ctx, err)
}

// OwnerKeyMaker creates and seals the key of one owner of an account, and the key with which an account begins.
type OwnerKeyMaker interface {
	CreateOpeningKey(ctx context.Context, account uuid.UUID, n exchange.Network) (address string, key exchange.SealedKey, err error)
	CreateOwnerKey(ctx context.Context, account uuid.UUID, n exchange.Network, owner int) (address string, key exchange.SealedKey, err error)
}

// OwnerKeyStore stores the keys of owners, and those with which accounts begin. Of several for one owner or account, the first stays.
type OwnerKeyStore interface {
	multisigReader
	ProposalByID(ctx context.Context, id uuid.UUID) (exchange.Proposal, error)
	// ComingOwners are the owners whom a released change of the owners brings, until it was executed.
	ComingOwners(ctx context.Context, proposal uuid.UUID) ([]exchange.MultisigOwner, error)
	StoreOpeningKey(ctx context.Context, account uuid.UUID, address string, key exchange.SealedKey) (exchange.MultisigAccount, error)
	StoreOwnerKey(ctx context.Context, account uuid.UUID, n int, address string, key exchange.SealedKey) (exchange.MultisigOwner, error)
}

// MultisigKeys makes the keys of owners whose keys we hold. It is registered on signer queues only.
type MultisigKeys struct {
	Keys  OwnerKeyMaker
	Store OwnerKeyStore
}

// MakeComingKeys makes a key for each owner whom a released change of the owners brings, whose key we hold and who has none. In a repeated run the
// stored keys stay.
func (m *MultisigKeys) MakeComingKeys(ctx context.Context, in ProposalInput) error {
	p, err := m.Store.ProposalByID(ctx, in.ProposalID)
	if err != nil {
		return Failure(ctx, err)
	}
	coming, err := m.Store.ComingOwners(ctx, p.ID)
	if err != nil {
		return Failure(ctx, err)
	}
	return Failure(ctx, m.makeFor(ctx, p.WalletID, p.Network, coming))
}

func (m *MultisigKeys) makeFor(ctx context.Context, account uuid.UUID, n exchange.Network, owners []exchange.MultisigOwner) error {
	for _, o := range owners {
		if !o.Held || o.Address != "" {
			continue
		}
		address, key, err := m.Keys.CreateOwnerKey(ctx, account, n, o.N)
		if err == nil {
			_, err = m.Store.StoreOwnerKey(ctx, account, o.N, address, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// MakeOwnerKeys makes a key for each owner of an account whose key we hold and who has none, and on TRON the key with which the account begins. In a
// repeated run the stored keys stay.
func (m *MultisigKeys) MakeOwnerKeys(ctx context.Context, in MultisigInput) error {
	a, err := m.Store.MultisigAccountByID(ctx, in.AccountID)
	if err != nil {
		return Failure(ctx, err)
	}
	if err := m.makeFor(ctx, a.ID, a.Network, a.Owners); err != nil {
		return Failure(ctx, err)
	}
	if !a.Given() || a.OpeningAddress != "" {
		return nil
	}
	address, key, err := m.Keys.CreateOpeningKey(ctx, a.ID, a.Network)
	if err == nil {
		_, err = m.Store.StoreOpeningKey(ctx, a.ID, address, key)
	}
	return Failure(ctx, err)
}

// MultisigStore is the database interface of Multisigs.
type MultisigStore interface {
	multisigReader
	HandoverStore
	// GasWallet is the wallet of the house that opens accounts on a network.
	GasWallet(ctx context.Context, n exchange.Network) (exchange.Wallet, error)
	// ChainPayment is the payment that opens an account.
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	// RefuseMultisig ends an account that is adopted and is another one than was agreed.
	RefuseMultisig(ctx context.Context, account uuid.UUID, detail string) (exchange.MultisigAccount, error)
	// ActivateMultisig makes an account a wallet that had these balances at the quorum's block: one of each asset that the wallet can move.
	ActivateMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum, balances []money.Amount) (exchange.MultisigAccount, error)
	CheckedMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum) (exchange.MultisigAccount, error)
	ActiveMultisigs(ctx context.Context, n exchange.Network) ([]exchange.MultisigAccount, error)
}

// MultisigReader is the part of a network's driver that reads who controls an account, and what it holds.
type MultisigReader interface {
	Network() exchange.Network
	Head(ctx context.Context) (chain.Head, error)
	Quorum(ctx context.Context, address string) (chain.Quorum, error)
	Supports(a money.Asset) error
	Balances(ctx context.Context, of []chain.Holding) ([]chain.Balance, error)
}

// Multisigs reads accounts of several owners on one network.
type Multisigs struct {
	Store  MultisigStore
	Client MultisigReader
	Poll   time.Duration // between two looks: the network's block time
}

// MultisigPlace is where an account is opened, and what must be paid into it.
type MultisigPlace struct {
	Address string       `json:"address"`
	Rent    money.Amount `json:"rent"`
}

// PlaceMultisig computes the address of an account that is to be opened. It follows from the owners, the threshold, the gas wallet and
// the account's id, or on TRON from the key with which the account begins, so each call gives the same one.
func (m *Multisigs) PlaceMultisig(ctx context.Context, in MultisigInput) (MultisigPlace, error) {
	place, err := m.place(ctx, in.AccountID)
	return place, Failure(ctx, err)
}

func (m *Multisigs) place(ctx context.Context, id uuid.UUID) (MultisigPlace, error) {
	a, err := m.Store.MultisigAccountByID(ctx, id)
	if err != nil {
		return MultisigPlace{}, err
	}
	if a.Given() {
		return m.givenPlace(ctx, a)
	}
	opener, err := m.opener()
	if err != nil {
		return MultisigPlace{}, err
	}
	gas, err := m.Store.GasWallet(ctx, m.Client.Network())
	if err != nil {
		return MultisigPlace{}, err
	}
	var p MultisigPlace
	seed, owners := chain.OpeningOf(a)
	if p.Address, err = opener.MultisigAccount(gas.Address, seed, owners); err != nil {
		return p, err
	}
	p.Rent, err = opener.MultisigRent(ctx)
	return p, err
}

func (m *Multisigs) opener() (chain.Opener, error) {
	opener, ok := m.Client.(chain.Opener)
	if !ok {
		return nil, exchange.Errorf(exchange.CodeUnsupported, "No account of several owners can be opened on %s.", m.Client.Network())
	}
	return opener, nil
}

// inPlace refuses an account that was opened at another address than follows from what was agreed and from the wallet that paid for it.
// The flow alone has said where it is, and whoever controls the flows shall not bring in an account of their own.
func (m *Multisigs) inPlace(ctx context.Context, a exchange.MultisigAccount) error {
	if a.Adopted {
		return nil
	}
	if a.Given() {
		return m.begins(a)
	}
	opener, err := m.opener()
	if err != nil {
		return err
	}
	p, err := m.Store.ChainPayment(ctx, a.PaymentID)
	if err != nil {
		return err
	}
	seed, owners := chain.OpeningOf(a)
	address, err := opener.MultisigAccount(p.FromAddress, seed, owners)
	if err == nil && address != a.Address {
		err = exchange.Errorf(exchange.CodeStateConflict, "The account of these owners is %s, not %s.", address, a.Address)
	}
	return err
}

// VerifyMultisigInput names an account whose owners are read.
type VerifyMultisigInput struct {
	AccountID uuid.UUID `json:"account_id"`
	Paid      bool      `json:"paid,omitempty"` // the payment that opens it is final, so the account is there soon
}

// VerifyMultisig reads the owners of an account at a final block, and makes it active when they are the agreed ones. An adopted one with
// others is refused; for an opened one they are CodeStateConflict. It returns NotYet while the newest block says something else than the
// final one, or while a node has no account yet that is paid. An account that is past this is returned as it is.
func (m *Multisigs) VerifyMultisig(ctx context.Context, in VerifyMultisigInput) (MultisigState, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	a, err := m.verify(ctx, in)
	return multisigState(a), Failure(ctx, err)
}

func (m *Multisigs) verify(ctx context.Context, in VerifyMultisigInput) (exchange.MultisigAccount, error) {
	a, err := m.Store.MultisigAccountByID(ctx, in.AccountID)
	if err != nil || a.Status != exchange.MultisigPreparing && a.Status != exchange.MultisigOpening {
		return a, err
	}
	if err := m.inPlace(ctx, a); err != nil {
		return a, err
	}
	q, moving, err := m.confirmed(ctx, a)
	if err != nil {
		return a, err
	}
	difference := a.Difference(q)
	switch {
	case moving:
		return a, NotYet("The account's owners or threshold are changing.", m.Poll)
	case difference == "":
		return m.activate(ctx, a)
	case a.Adopted:
		return m.Store.RefuseMultisig(ctx, a.ID, difference)
	case in.Paid && q.Foreign != "":
		return a, NotYet("The node does not have the account yet: "+q.Foreign, m.Poll)
	}
	return a, exchange.Errorf(exchange.CodeStateConflict, "The account %s is not the one that was agreed: %s", a.Address, difference)
}

// activate makes an account a wallet that has the agreed owners, with what it holds at the block of its quorum. Not every network says what
// an account held at a block, so it is read before and after the quorum: what is the same then was so in between.
func (m *Multisigs) activate(ctx context.Context, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
	before, err := m.contents(ctx, a)
	if err != nil {
		return a, err
	}
	q, moving, err := m.read(ctx, a)
	if err != nil {
		return a, err
	}
	after, err := m.contents(ctx, a)
	if err != nil {
		return a, err
	}
	if moving || a.Difference(q) != "" || before.last > q.Block || q.Block > after.first || !slices.EqualFunc(before.held, after.held, money.Amount.Equal) {
		return a, NotYet("The account is changing, or a node is behind the others.", m.Poll)
	}
	return m.Store.ActivateMultisig(ctx, a.ID, q, after.held)
}

// contents are what an account holds of each asset that its wallet can move, at final blocks from first to last.
type contents struct {
	held        []money.Amount
	first, last uint64
}

// contents reads them. Of an asset that is off on the network, an account counts as having none.
func (m *Multisigs) contents(ctx context.Context, a exchange.MultisigAccount) (contents, error) {
	c, wallet := contents{first: math.MaxUint64}, exchange.Wallet{Network: a.Network, Custody: exchange.Multisig}
	var of []chain.Holding
	for _, asset := range a.Network.WalletAssets() {
		switch {
		case !wallet.Moves(asset):
		case m.Client.Supports(asset) != nil:
			c.held = append(c.held, money.Zero(asset))
		default:
			of = append(of, chain.Holding{Address: a.Address, Asset: asset})
		}
	}
	read, err := m.Client.Balances(ctx, of)
	for _, b := range read {
		c.held, c.first, c.last = append(c.held, b.Amount), min(c.first, b.At.Number), max(c.last, b.At.Number)
	}
	return c, err
}

// confirmed reads who controls an account, a second time from a later block when it is not who was agreed, or when the account is about to
// be adopted: one wrong or lagging node shall raise no alarm, and bring in no account. moving is set while the newest block says something
// else than the final one, or the second look at an account that is about to be adopted something else than the first.
func (m *Multisigs) confirmed(ctx context.Context, a exchange.MultisigAccount) (q exchange.MultisigQuorum, moving bool, err error) {
	q, moving, err = m.read(ctx, a)
	first := a.Difference(q)
	if err != nil || first == "" && !adopting(a) {
		return q, moving, err
	}
	if err := pauseFor(ctx, m.Poll); err != nil {
		return q, moving, err
	}
	q, moving, err = m.read(ctx, a)
	return q, moving || adopting(a) && a.Difference(q) != first, err
}

func adopting(a exchange.MultisigAccount) bool {
	return a.Adopted && a.Status == exchange.MultisigPreparing
}

// read reads who controls an account now. What a driver refuses to understand is a quorum with the reason, at a final block that was
// read before it.
func (m *Multisigs) read(ctx context.Context, a exchange.MultisigAccount) (exchange.MultisigQuorum, bool, error) {
	head, err := m.Client.Head(ctx)
	if err != nil {
		return exchange.MultisigQuorum{}, false, err
	}
	out := exchange.MultisigQuorum{Address: a.Address, Block: head.Final.Number, BlockID: head.Final.ID}
	q, err := m.Client.Quorum(ctx, a.Address)
	if foreign, ok := foreignAccount(err); ok {
		out.Foreign = foreign
		return out, false, nil
	}
	if err != nil {
		return out, false, err
	}
	out = q.Read(a)
	if out.Foreign == "" && adopting(a) {
		out.Foreign, err = m.allowed(ctx, a.Address)
	}
	return out, q.Moving, err
}

// allowed is who else may take what an account has, or empty. It is asked of accounts that others opened: the owners that they have today
// need not be those who allowed it, and what owners allow later they sign.
func (m *Multisigs) allowed(ctx context.Context, address string) (string, error) {
	reader, ok := m.Client.(chain.AllowanceReader)
	if !ok {
		return "", nil
	}
	left, err := reader.Allowances(ctx, address)
	if foreign, ok := foreignAccount(err); ok {
		return foreign, nil
	}
	if err != nil || len(left) == 0 {
		return "", err
	}
	return fmt.Sprintf("%s has a right to its %s (%s) without its owners", left[0].Spender, left[0].Asset, left[0].Right), nil
}

// foreignAccount is why a driver does not accept an account as one of several owners; false for other errors.
func foreignAccount(err error) (string, bool) {
	switch chainReason(err) {
	case chain.ReasonForeign, chain.ReasonAddress:
		return chain.DetailOf(err), true
	default:
		return "", false
	}
}

// MultisigsChecked is what a look at the accounts of a network found.
type MultisigsChecked struct {
	Checked int `json:"checked"`
	Differs int `json:"differs,omitempty"`
	Unread  int `json:"unread,omitempty"` // accounts whose owners could not be read or compared, or are changing
}

// CheckMultisigs reads the owners of every active account of the network at a final block again. One with others than were agreed is
// marked, and so is one that has the agreed ones again. An account that can't be read or compared now stays as it is; gauges count both.
func (m *Multisigs) CheckMultisigs(ctx context.Context) (MultisigsChecked, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	var out MultisigsChecked
	accounts, err := m.Store.ActiveMultisigs(ctx, m.Client.Network())
	if err != nil {
		return out, Failure(ctx, err)
	}
	for _, a := range accounts {
		now, err := m.check(ctx, a)
		switch {
		case ctx.Err() != nil:
			return out, Failure(ctx, ctx.Err())
		case err != nil:
			out.Unread++
			activity.GetLogger(ctx).Warn("the owners of an account could not be read or compared", "account", a.ID, "error", err)
		default:
			a = now
			out.Checked++
		}
		if a.Status == exchange.MultisigDiffers {
			out.Differs++
		}
	}
	of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"network": string(m.Client.Network())})
	of.Gauge("kivuko_multisig_differs").Update(float64(out.Differs)) //nolint:forbidigo // a gauge of the SDK takes nothing else, and a count is no money
	of.Gauge("kivuko_multisig_unread").Update(float64(out.Unread))   //nolint:forbidigo // as above
	return out, nil
}

// check reads the owners of a wallet and stores what it found. An error of one wallet keeps no other one from being looked at.
func (m *Multisigs) check(ctx context.Context, a exchange.MultisigAccount) (exchange.MultisigAccount, error) {
	q, moving, err := m.confirmed(ctx, a)
	if err != nil {
		return a, err
	}
	if moving {
		return a, exchange.Errorf(exchange.CodeStateConflict, "The account's owners or threshold are changing.")
	}
	return m.Store.CheckedMultisig(ctx, a.ID, q)
}
