package activities

import (
	"context"
	"slices"
	"strconv"
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

// OwnerKeyMaker creates and seals the key of one owner of an account.
type OwnerKeyMaker interface {
	CreateOwnerKey(ctx context.Context, account uuid.UUID, n exchange.Network, owner int) (address string, key exchange.SealedKey, err error)
}

// OwnerKeyStore stores the keys of owners. Of several for one owner, the first stays.
type OwnerKeyStore interface {
	multisigReader
	StoreOwnerKey(ctx context.Context, account uuid.UUID, n int, address string, key exchange.SealedKey) (exchange.MultisigOwner, error)
}

// MultisigKeys makes the keys of owners whose keys we hold. It is registered on signer queues only.
type MultisigKeys struct {
	Keys  OwnerKeyMaker
	Store OwnerKeyStore
}

// MakeOwnerKeys makes a key for each owner of an account whose key we hold and who has none. In a repeated run the stored keys stay.
func (m *MultisigKeys) MakeOwnerKeys(ctx context.Context, in MultisigInput) error {
	a, err := m.Store.MultisigAccountByID(ctx, in.AccountID)
	if err != nil {
		return Failure(ctx, err)
	}
	for _, o := range a.Owners {
		if !o.Held || o.Address != "" {
			continue
		}
		address, key, err := m.Keys.CreateOwnerKey(ctx, a.ID, a.Network, o.N)
		if err == nil {
			_, err = m.Store.StoreOwnerKey(ctx, a.ID, o.N, address, key)
		}
		if err != nil {
			return Failure(ctx, err)
		}
	}
	return nil
}

// MultisigStore is the database interface of Multisigs.
type MultisigStore interface {
	multisigReader
	// GasWallet is the wallet of the house that opens accounts on a network.
	GasWallet(ctx context.Context, n exchange.Network) (exchange.Wallet, error)
	// RefuseMultisig ends an account that is adopted and is another one than was agreed.
	RefuseMultisig(ctx context.Context, account uuid.UUID, detail string) (exchange.MultisigAccount, error)
	ActivateMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum) (exchange.MultisigAccount, error)
	CheckedMultisig(ctx context.Context, account uuid.UUID, q exchange.MultisigQuorum) (exchange.MultisigAccount, error)
	ActiveMultisigs(ctx context.Context, n exchange.Network) ([]exchange.MultisigAccount, error)
}

// MultisigReader is the part of a network's driver that reads who controls an account.
type MultisigReader interface {
	Network() exchange.Network
	Head(ctx context.Context) (chain.Head, error)
	Quorum(ctx context.Context, address string) (chain.Quorum, error)
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
// the account's id, so each call gives the same one.
func (m *Multisigs) PlaceMultisig(ctx context.Context, in MultisigInput) (MultisigPlace, error) {
	place, err := m.place(ctx, in.AccountID)
	return place, Failure(ctx, err)
}

func (m *Multisigs) place(ctx context.Context, id uuid.UUID) (MultisigPlace, error) {
	opener, ok := m.Client.(chain.Opener)
	if !ok {
		return MultisigPlace{}, exchange.Errorf(exchange.CodeUnsupported, "No account of several owners can be opened on %s.", m.Client.Network())
	}
	a, err := m.Store.MultisigAccountByID(ctx, id)
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
	q, moving, err := m.confirmed(ctx, a)
	if err != nil {
		return a, err
	}
	difference := a.Difference(q)
	switch {
	case moving:
		return a, NotYet("The account's owners or threshold are changing.", m.Poll)
	case difference == "":
		return m.Store.ActivateMultisig(ctx, a.ID, q)
	case a.Adopted:
		return m.Store.RefuseMultisig(ctx, a.ID, difference)
	case in.Paid && q.Foreign != "":
		return a, NotYet("The node does not have the account yet: "+q.Foreign, m.Poll)
	}
	return a, exchange.Errorf(exchange.CodeStateConflict, "The account %s is not the one that was agreed: %s", a.Address, difference)
}

// confirmed reads who controls an account, a second time from a later block when it is not who was agreed: one wrong or lagging node
// shall raise no alarm. moving is set while the newest block says something else than the final one.
func (m *Multisigs) confirmed(ctx context.Context, a exchange.MultisigAccount) (q exchange.MultisigQuorum, moving bool, err error) {
	q, moving, err = m.read(ctx, a)
	if err != nil || a.Difference(q) == "" {
		return q, moving, err
	}
	if err := pauseFor(ctx, m.Poll); err != nil {
		return q, moving, err
	}
	return m.read(ctx, a)
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
	out.Block, out.BlockID = q.Head.Final.Number, q.Head.Final.ID
	for _, o := range q.Owners {
		out.Owners = append(out.Owners, exchange.MultisigOwner{Address: o.Address, Weight: int(o.Weight)})
	}
	out.Threshold = int(q.Threshold)
	if a.Kind == exchange.MultisigTron {
		out.ControlThreshold, out.Foreign = control(q)
	}
	return out, q.Moving, nil
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

// control is the threshold of changes of the owners. Only owners who also make payments may have a part in them, with the same weight.
func control(q chain.Quorum) (threshold int, foreign string) {
	if q.Control == nil {
		return int(q.Threshold), ""
	}
	for _, o := range q.Control.Owners {
		if !slices.Contains(q.Owners, o) {
			return int(q.Control.Threshold), "the owner permission has the key " + o.Address + " with the weight " + strconv.FormatUint(uint64(o.Weight), 10) +
				", which the permission for payments has not"
		}
	}
	return int(q.Control.Threshold), ""
}

// MultisigsChecked is what a look at the accounts of a network found.
type MultisigsChecked struct {
	Checked int `json:"checked"`
	Differs int `json:"differs,omitempty"`
	Unread  int `json:"unread,omitempty"` // accounts whose owners could not be read, or are changing
}

// CheckMultisigs reads the owners of every active account of the network at a final block again. One with others than were agreed is
// marked, and so is one that has the agreed ones again. An account that can't be read now stays as it is; gauges count both.
func (m *Multisigs) CheckMultisigs(ctx context.Context) (MultisigsChecked, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	var out MultisigsChecked
	accounts, err := m.Store.ActiveMultisigs(ctx, m.Client.Network())
	if err != nil {
		return out, Failure(ctx, err)
	}
	for _, a := range accounts {
		q, moving, err := m.confirmed(ctx, a)
		switch {
		case ctx.Err() != nil:
			return out, Failure(ctx, ctx.Err())
		case err != nil || moving:
			out.Unread++
			activity.GetLogger(ctx).Warn("the owners of an account could not be read", "account", a.ID, "moving", moving, "error", err)
		default:
			if a, err = m.Store.CheckedMultisig(ctx, a.ID, q); err != nil {
				return out, Failure(ctx, err)
			}
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
