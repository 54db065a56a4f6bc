package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Wallets of the treasury that several owners control together. Two officers agree to one (this file), the signer makes the keys of owners
// that we hold (multisig_keys.go), and it becomes a wallet when the final chain has exactly what was agreed (multisig_open.go).

// The payment that opens an account has it as its object. On TRON there may be further ones, and the last counts.
const multisigColumns = `a.id, a.change_id, a.requested_by, a.network, a.kind, a.custody, a.name, a.label, a.asset, a.merchant_id, a.adopted, coalesce(a.address, '') AS address,
    a.threshold, coalesce(a.control_threshold, 0) AS control_threshold, a.policy_version, a.approvals, a.status, a.status_detail,
    coalesce((SELECT k.address FROM multisig_opening_keys k WHERE k.account_id = a.id AND k.seal = 1), '') AS opening_address,
    (SELECT p.id FROM chain_payments p WHERE p.purpose = 'multisig_open' AND p.object_id = a.id ORDER BY p.n DESC LIMIT 1) AS payment_id, coalesce(a.checked_block, 0) AS checked_block, a.checked_at,
    a.created_at, a.updated_at, a.version,
    (SELECT jsonb_agg(jsonb_strip_nulls(jsonb_build_object('n', o.n, 'address', o.address, 'user_id', o.user_id, 'weight', o.weight, 'label', o.label, 'held', o.held)) ORDER BY o.n)
        FROM multisig_owners o WHERE o.account_id = a.id AND o.standing = 'agreed') AS owners,
    (SELECT coalesce(jsonb_agg(jsonb_build_object('above', r.above::text, 'approvals', r.approvals) ORDER BY r.above), '[]')
        FROM multisig_rules r WHERE r.account_id = a.id AND r.version = a.policy_version) AS rules`

const (
	readMultisig       = `SELECT ` + multisigColumns + ` FROM multisig_accounts a WHERE a.id = $1`
	readScopedMultisig = readMultisig + ` AND ($2 OR a.merchant_id = $3)`
	lockMultisig       = `SELECT id FROM multisig_accounts WHERE id = $1 FOR NO KEY UPDATE`
)

// multisigRow is an account as a query returns it.
type multisigRow struct {
	ID, ChangeID, RequestedBy   uuid.UUID
	Network                     exchange.Network
	Kind                        exchange.MultisigKind
	Custody                     exchange.MultisigCustody
	Name, Label                 string
	Asset                       money.Asset
	MerchantID                  uuid.UUID
	Adopted                     bool
	Address                     string
	Threshold, ControlThreshold int
	OpeningAddress              string
	PolicyVersion, Approvals    int
	Status                      exchange.MultisigStatus
	StatusDetail                string
	PaymentID                   uuid.UUID
	CheckedBlock                uint64
	CheckedAt                   time.Time
	CreatedAt, UpdatedAt        time.Time
	Version                     int64
	Owners, Rules               json.RawMessage
}

// multisigOwnerDoc is an owner in the terms of a change, and as a query returns it.
type multisigOwnerDoc struct {
	N       int       `json:"n"`
	Address string    `json:"address,omitempty"`
	UserID  uuid.UUID `json:"user_id,omitzero"`
	Weight  int       `json:"weight"`
	Label   string    `json:"label"`
	Held    bool      `json:"held"`
}

// multisigRuleDoc is a rule in the terms of a change, and as a query returns it.
type multisigRuleDoc struct {
	Above     string `json:"above"` // in shillings
	Approvals int    `json:"approvals"`
}

func (r multisigRow) account() (exchange.MultisigAccount, error) {
	a := exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{
			ID: r.ID, Network: r.Network, Asset: r.Asset, Name: r.Name, Label: r.Label, MerchantID: r.MerchantID, Custody: r.Custody, Address: r.Address,
			Threshold: r.Threshold,
		},
		Kind: r.Kind, ChangeID: r.ChangeID, RequestedBy: r.RequestedBy, Adopted: r.Adopted, ControlThreshold: r.ControlThreshold, OpeningAddress: r.OpeningAddress, Status: r.Status,
		StatusDetail: r.StatusDetail, PaymentID: r.PaymentID, CheckedBlock: r.CheckedBlock, CheckedAt: r.CheckedAt, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		Version: r.Version,
	}
	var owners []multisigOwnerDoc
	var rules []multisigRuleDoc
	for _, doc := range []struct {
		from json.RawMessage
		to   any
	}{{r.Owners, &owners}, {r.Rules, &rules}} {
		if err := json.Unmarshal(doc.from, doc.to); err != nil {
			return a, exchange.Wrap(exchange.CodeInternal, err, "the account of several owners %s can't be read", r.ID)
		}
	}
	for _, o := range owners {
		a.Owners = append(a.Owners, exchange.MultisigOwner(o))
	}
	var err error
	a.Policy, err = multisigPolicy(r.PolicyVersion, r.Approvals, rules)
	return a, err
}

func multisigPolicy(version, approvals int, rules []multisigRuleDoc) (exchange.MultisigPolicy, error) {
	p := exchange.MultisigPolicy{Version: version, Approvals: approvals}
	for _, r := range rules {
		above, err := money.Parse(money.KES, r.Above)
		if err != nil {
			return p, exchange.Wrap(exchange.CodeInternal, err, "a stored rule of an account of several owners can't be read")
		}
		p.Rules = append(p.Rules, exchange.MultisigRule{Above: above, Approvals: r.Approvals})
	}
	return p, nil
}

// multisig reads an account in a transaction.
func (t unitTx) multisig(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error) {
	r, err := readOne[multisigRow](ctx, t, "account of several owners", readMultisig, id)
	if err != nil {
		return exchange.MultisigAccount{}, err
	}
	return r.account()
}

func (t unitTx) lockedMultisig(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error) {
	if _, err := readOne[uuid.UUID](ctx, t, "account of several owners", lockMultisig, id); err != nil {
		return exchange.MultisigAccount{}, err
	}
	return t.multisig(ctx, id)
}

// MultisigAccount reads an account of several owners: staff any, a merchant's people those that are shared with it.
func (s *Store) MultisigAccount(ctx context.Context, v View, id uuid.UUID) (exchange.MultisigAccount, error) {
	all, _, vendor := v.args()
	r, err := readOne[multisigRow](ctx, s.db, "account of several owners", readScopedMultisig, id, all, vendor)
	if err != nil {
		return exchange.MultisigAccount{}, err
	}
	return r.account()
}

// MultisigAccountByID reads an account for our own flows; CodeNotFound if there is none.
func (s *Store) MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error) {
	return s.MultisigAccount(ctx, Everything(), id)
}

// MultisigFilter narrows a list of accounts of several owners.
type MultisigFilter struct {
	Network    exchange.Network
	Status     exchange.MultisigStatus
	MerchantID uuid.UUID // with whom they are shared
}

// MultisigAccounts pages through the accounts of several owners that the view may see, the newest first, with their number.
func (s *Store) MultisigAccounts(ctx context.Context, v View, f MultisigFilter, p Page) ([]exchange.MultisigAccount, int, error) {
	var w where
	w.scope(v, "NULL::uuid", "a.merchant_id")
	w.eq("a.network", string(f.Network))
	w.eq("a.status", string(f.Status))
	w.id("a.merchant_id", f.MerchantID)
	rows, total, err := readPage[multisigRow](ctx, s, "account of several owners",
		list{columns: multisigColumns, from: "multisig_accounts a", where: w, order: "a.created_at DESC, a.id DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	all, err := convert(rows, multisigRow.account)
	return all, total, err
}

const readActiveMultisigs = `SELECT ` + multisigColumns + ` FROM multisig_accounts a WHERE a.network = $1 AND a.status IN ('active', 'differs') ORDER BY a.id`

// ActiveMultisigs lists the accounts of several owners of a network that are wallets, also those that differ from what was agreed.
func (s *Store) ActiveMultisigs(ctx context.Context, n exchange.Network) ([]exchange.MultisigAccount, error) {
	rows, err := readAll[multisigRow](ctx, s.db, "account of several owners", readActiveMultisigs, n)
	if err != nil {
		return nil, err
	}
	return convert(rows, multisigRow.account)
}

// multisigTerms are the terms of a change of the kind multisig_wallet.
type multisigTerms struct {
	ID         uuid.UUID                `json:"id"`
	Network    exchange.Network         `json:"network"`
	Kind       exchange.MultisigKind    `json:"account_kind"`
	Asset      money.Asset              `json:"asset"`
	Name       string                   `json:"name"`
	Label      string                   `json:"label"`
	MerchantID uuid.UUID                `json:"merchant_id,omitzero"`
	Custody    exchange.MultisigCustody `json:"custody"`
	Address    string                   `json:"address,omitempty"` // of an account that is adopted
	Threshold  int                      `json:"quorum"`
	Owners     []multisigOwnerDoc       `json:"owners"`
	Policy     multisigPolicyDoc        `json:"policy"`
}

type multisigPolicyDoc struct {
	Approvals  int               `json:"approvals"`
	ValueRules []multisigRuleDoc `json:"value_rules"`
}

func termsOfMultisig(r exchange.MultisigRequest) multisigTerms {
	t := multisigTerms{
		ID: r.ID, Network: r.Network, Kind: exchange.MultisigKindOn(r.Network), Asset: r.Asset, Name: r.Name, Label: r.Label, MerchantID: r.MerchantID, Custody: r.Custody,
		Address: r.Address, Threshold: r.Threshold, Policy: multisigPolicyDoc{Approvals: r.Policy.Approvals, ValueRules: []multisigRuleDoc{}},
	}
	for _, o := range r.Owners {
		t.Owners = append(t.Owners, multisigOwnerDoc(o))
	}
	for _, rule := range r.Policy.Rules {
		t.Policy.ValueRules = append(t.Policy.ValueRules, multisigRuleDoc{plain(rule.Above), rule.Approvals})
	}
	return t
}

// request is what the terms ask for.
func (d multisigTerms) request() (exchange.MultisigRequest, error) {
	r := exchange.MultisigRequest{
		ID: d.ID, Network: d.Network, Asset: d.Asset, Name: d.Name, Label: d.Label, MerchantID: d.MerchantID, Custody: d.Custody, Address: d.Address, Threshold: d.Threshold,
	}
	for _, o := range d.Owners {
		r.Owners = append(r.Owners, exchange.MultisigOwner(o))
	}
	var err error
	r.Policy, err = multisigPolicy(1, d.Policy.Approvals, d.Policy.ValueRules)
	return r, err
}

// ProposeMultisigWallet proposes a wallet of the treasury that several owners control; another officer confirms exactly it. CodeInvalid names
// every field at fault.
func (s *Store) ProposeMultisigWallet(ctx context.Context, r exchange.MultisigRequest, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	r = r.Complete()
	if err := r.Check(); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "account of several owners", func(t unitTx) error {
		err := t.mayOwn(ctx, r)
		if err == nil {
			proposed, err = t.propose(ctx, exchange.ControlMultisigWallet, uuid.Nil, struct{}{}, termsOfMultisig(r), by)
		}
		return err
	})
	return proposed, err
}

// An address of ours, on the network or in another network's form.
const multisigTaken = `
SELECT EXISTS (SELECT FROM wallets w WHERE w.network = $1 AND w.address = $2) OR is_counterpart($1, $2)
    OR EXISTS (SELECT FROM multisig_accounts a WHERE a.network = $1 AND a.address = $2 AND a.status <> 'refused')`

// An address that we pay as one of others. Were it ours midway, what goes there would be of other terms than those that officers approved.
const multisigPaid = `
SELECT EXISTS (SELECT FROM otc_destinations d WHERE d.network = $1 AND d.address = $2 AND d.status <> 'removed')
    OR EXISTS (SELECT FROM transfers f WHERE f.network = $1 AND f.to_address = $2 AND f.status NOT IN ('completed', 'cancelled', 'rejected', 'blocked', 'failed'))
    OR EXISTS (SELECT FROM chain_payments p WHERE p.network = $1 AND p.to_address = $2 AND p.status NOT IN ('completed', 'cancelled'))
    OR EXISTS (SELECT FROM refunds f WHERE f.network = $1 AND f.address = $2 AND f.status <> 'completed')
    OR EXISTS (SELECT FROM orders o WHERE o.network = $1 AND $2 IN (o.wallet_address, o.refund_address) AND o.status NOT IN ('completed', 'cancelled', 'failed'))`

const isActiveMultisig = `SELECT EXISTS (SELECT FROM multisig_accounts WHERE id = $1 AND status = 'active')`

const (
	isActiveMerchant = `SELECT EXISTS (SELECT FROM users WHERE id = $1 AND role = 'vendor' AND is_active)`
	isActiveOfficer  = `SELECT EXISTS (SELECT FROM users WHERE id = $1 AND role IN ('admin', 'treasury') AND is_active)`
)

// mayOwn checks a request against what is stored: the merchant, the officers among the owners, and that no address is ours already or denied, and that we
// pay the account as no one else's.
func (t unitTx) mayOwn(ctx context.Context, r exchange.MultisigRequest) error {
	if r.MerchantID != uuid.Nil {
		if err := t.requireRow(ctx, isActiveMerchant, true, exchange.FieldError{Pointer: "/treasury/merchant_id", Code: "not_found", Message: "must be an active master merchant"}, r.MerchantID); err != nil {
			return err
		}
	}
	for i, o := range r.Owners {
		if o.UserID == uuid.Nil {
			continue
		}
		at := exchange.FieldError{Pointer: fmt.Sprintf("/multisig/owners/%d/user_id", i), Code: "not_found", Message: "must be an active admin or treasury officer"}
		if err := t.requireRow(ctx, isActiveOfficer, true, at, o.UserID); err != nil {
			return err
		}
	}
	for i, o := range r.Owners {
		if err := t.freeAddress(ctx, fmt.Sprintf("/multisig/owners/%d/address", i), r.Network, o.Address); err != nil {
			return err
		}
	}
	if err := t.freeAddress(ctx, "/multisig/address", r.Network, r.Address); err != nil || r.Address == "" {
		return err
	}
	paid := exchange.FieldError{Pointer: "/multisig/address", Code: "paid", Message: "must not be a saved destination of a merchant, nor where something of ours is on its way"}
	return t.requireRow(ctx, multisigPaid, false, paid, r.Network, r.Address)
}

// freeAddress refuses an address, if there is one, that is ours already or that is denied.
func (t unitTx) freeAddress(ctx context.Context, pointer string, n exchange.Network, address string) error {
	if address == "" {
		return nil
	}
	if err := t.requireRow(ctx, multisigTaken, false, exchange.FieldError{Pointer: pointer, Code: "taken", Message: "is an address of ours already"}, n, address); err != nil {
		return err
	}
	return t.requireRow(ctx, isDenied, false, exchange.FieldError{Pointer: pointer, Code: "denied", Message: "is on the deny list"}, n, address)
}

// requireRow refuses a field unless a query answers as it should.
func (t unitTx) requireRow(ctx context.Context, query string, should bool, fault exchange.FieldError, args ...any) error {
	var is bool
	if err := t.Get(ctx, &is, query, args...); err != nil {
		return err
	}
	return require(is == should, fault.Pointer, fault.Code, fault.Message)
}

const (
	insertMultisig = `
INSERT INTO multisig_accounts (id, change_id, requested_by, network, kind, custody, name, label, asset, merchant_id, adopted, address, threshold, approvals, status, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, nullif($12, ''), $13, $14, 'preparing', $15, $15)`
	insertMultisigOwner = `
INSERT INTO multisig_owners (account_id, n, address, user_id, weight, label, held) VALUES ($1, $2, nullif($3, ''), $4, $5, $6, $7)`
	insertMultisigRule = `INSERT INTO multisig_rules (account_id, version, above, approvals) VALUES ($1, $2, $3, $4)`
)

// applyMultisigWallet stores the account that two officers agreed to. Its flow reads it on the chain, or opens it there.
func (t unitTx) applyMultisigWallet(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[multisigTerms](c)
	if err != nil {
		return err
	}
	r, err := terms.request()
	if err != nil {
		return err
	}
	if err := t.mayOwn(ctx, r); err != nil {
		return exchange.Wrap(exchange.CodeStateConflict, err, "The account can't be agreed to any more: an owner or the merchant is switched off, or an address is ours already, denied, or paid as another's.")
	}
	_, err = t.Exec(ctx, insertMultisig, r.ID, c.ID, c.ProposedBy, r.Network, terms.Kind, r.Custody, r.Name, r.Label, r.Asset, nullID(r.MerchantID), r.Address != "", r.Address,
		r.Threshold, r.Policy.Approvals, t.s.now())
	if pg.Broke(err, "multisig_accounts_address_key") {
		err = exchange.Wrap(exchange.CodeStateConflict, err, "The address is that of another account of several owners.")
	}
	if err != nil {
		return err
	}
	for _, o := range r.Owners {
		if _, err := t.Exec(ctx, insertMultisigOwner, r.ID, o.N, o.Address, nullID(o.UserID), o.Weight, o.Label, o.Held); err != nil {
			return err
		}
	}
	for _, rule := range r.Policy.Rules {
		if _, err := t.Exec(ctx, insertMultisigRule, r.ID, r.Policy.Version, rule.Above.Decimal(), rule.Approvals); err != nil {
			return err
		}
	}
	a, err := t.multisig(ctx, r.ID)
	if err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "multisig_account", id: a.ID, name: "multisig_account.preparing", after: multisigSnapshot(a)})
}

func multisigSnapshot(a exchange.MultisigAccount) map[string]any {
	return map[string]any{
		"id": a.ID, "change_id": a.ChangeID, "requested_by": a.RequestedBy, "network": a.Network, "kind": a.Kind, "custody": a.Custody, "name": a.Name,
		"merchant_id": nullID(a.MerchantID), "adopted": a.Adopted, "address": a.Address, "quorum": a.Threshold, "control_quorum": a.ControlThreshold,
		"policy_version": a.Policy.Version, "approvals": a.Policy.Approvals, "status": a.Status, "status_detail": a.StatusDetail, "version": a.Version,
	}
}
