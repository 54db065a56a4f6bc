package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/workflows"
)

// MultisigFlows is what the API does with the flows that open wallets of several owners.
type MultisigFlows interface {
	// OpenMultisig starts the flow that opens or adopts a stored account. An account has at most one flow at a time.
	OpenMultisig(ctx context.Context, account uuid.UUID, n exchange.Network) error
}

func (t temporalFlows) OpenMultisig(ctx context.Context, account uuid.UUID, n exchange.Network) error {
	return t.startRow(ctx, exchange.LiveRow{Kind: exchange.LiveMultisig, ObjectID: account, Network: n})
}

const (
	multisigPath   = "/api/v1/auth/multisig/accounts"
	multisigObject = "multisig_account"
)

func (s *server) multisigRoutes() []route {
	operate := func(verb string) route {
		return route{
			method: post, path: multisigPath + "/{id}/" + verb, action: exchange.ActOperateFlows, limit: limitGeneral, key: keyRequired, timeout: flowTimeout,
			handle: s.operateMultisig(verb),
		}
	}
	return []route{
		{method: get, path: multisigPath, action: exchange.ActReadMultisig, limit: limitGeneral, handle: s.listMultisig},
		{method: get, path: multisigPath + "/{id}", action: exchange.ActReadMultisig, limit: limitGeneral, handle: s.getMultisig},
		operate(verbRetry), operate(verbRefund),
	}
}

// wireMultisigOwner is one of the owners of an account.
type wireMultisigOwner struct {
	N       int        `json:"n"`
	Address *string    `json:"address"`
	UserID  *uuid.UUID `json:"user_id"`
	Weight  int        `json:"weight"`
	Label   string     `json:"label"`
	Held    bool       `json:"held"`
}

// wireMultisigRule raises the number of approvals above a value.
type wireMultisigRule struct {
	Above     string `json:"above"`
	Approvals int    `json:"approvals"`
}

// wireMultisigPolicy is how many officers approve what leaves an account.
type wireMultisigPolicy struct {
	Version    int                `json:"version"`
	Approvals  int                `json:"approvals"`
	ValueRules []wireMultisigRule `json:"value_rules"`
}

// wireMultisig is an account of several owners.
type wireMultisig struct {
	ID               uuid.UUID           `json:"id"`
	ChangeID         uuid.UUID           `json:"change_id"`
	RequestedBy      *uuid.UUID          `json:"requested_by"`
	Network          string              `json:"network"`
	Kind             string              `json:"kind"`
	Custody          string              `json:"custody"`
	Name             string              `json:"name"`
	Label            *string             `json:"label"`
	Asset            string              `json:"asset"`
	MerchantID       *uuid.UUID          `json:"merchant_id"`
	Adopted          bool                `json:"adopted"`
	Address          *string             `json:"address"`
	Threshold        int                 `json:"threshold"`
	ControlThreshold *int                `json:"control_threshold"`
	Owners           []wireMultisigOwner `json:"owners"`
	Policy           wireMultisigPolicy  `json:"policy"`
	Status           string              `json:"status"`
	StatusDetail     string              `json:"status_detail"`
	PaymentID        *uuid.UUID          `json:"payment_id"`
	CheckedBlock     *uint64             `json:"checked_block"`
	CheckedAt        *timestamp          `json:"checked_at"`
	CreatedAt        timestamp           `json:"created_at"`
	UpdatedAt        timestamp           `json:"updated_at"`
	Retry            string              `json:"retry,omitempty"`
}

// multisigWire shows an account to a reader. Who of the staff signs and who asked for it is for the staff alone.
func multisigWire(reader exchange.Principal) func(exchange.MultisigAccount) wireMultisig {
	staff := forStaff(reader)
	return func(a exchange.MultisigAccount) wireMultisig {
		w := wireMultisig{
			ID: a.ID, ChangeID: a.ChangeID, RequestedBy: staff(a.RequestedBy), Network: string(a.Network), Kind: string(a.Kind), Custody: string(a.Custody),
			Name: a.Name, Label: optText(a.Label), Asset: string(a.Asset), MerchantID: optID(a.MerchantID), Adopted: a.Adopted, Address: optText(payable(a, reader)),
			Threshold: a.Threshold, Policy: multisigPolicyWire(a.Policy), Status: string(a.Status), StatusDetail: a.StatusDetail,
			PaymentID: optID(a.PaymentID), CheckedAt: optTime(a.CheckedAt), CreatedAt: stamp(a.CreatedAt), UpdatedAt: stamp(a.UpdatedAt),
		}
		if a.ControlThreshold > 0 {
			w.ControlThreshold = &a.ControlThreshold
		}
		if a.CheckedBlock > 0 {
			w.CheckedBlock = &a.CheckedBlock
		}
		w.Owners = each(a.Owners, func(o exchange.MultisigOwner) wireMultisigOwner {
			return wireMultisigOwner{N: o.N, Address: optText(o.Address), UserID: staff(o.UserID), Weight: o.Weight, Label: o.Label, Held: o.Held}
		})
		return w
	}
}

// payable is the address of an account that is a wallet. What is paid to one before is in no books, so it is not shown then, except
// to the staff that of an account that they themselves named.
func payable(a exchange.MultisigAccount, reader exchange.Principal) string {
	wallet, named := a.Status == exchange.MultisigActive || a.Status == exchange.MultisigDiffers, a.Adopted && reader.Role.Staff()
	if wallet || named {
		return a.Address
	}
	return ""
}

func multisigPolicyWire(p exchange.MultisigPolicy) wireMultisigPolicy {
	return wireMultisigPolicy{Version: p.Version, Approvals: p.Approvals, ValueRules: each(p.Rules, func(r exchange.MultisigRule) wireMultisigRule {
		return wireMultisigRule{r.Above.String(), r.Approvals}
	})}
}

var multisigStatuses = names(exchange.MultisigMachine.States())

func (s *server) listMultisig(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.MultisigFilter{
		Network: exchange.Network(q.oneOf("network", networkNames...)), Status: exchange.MultisigStatus(q.oneOf("status", multisigStatuses...)),
		MerchantID: q.id("merchant_id"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "multisig_accounts", page, multisigWire(c.who))(s.Store.MultisigAccounts(c.ctx, c.view(), filter, page))
}

func (s *server) getMultisig(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, multisigWire(c.who))(s.Store.MultisigAccount(c.ctx, c.view(), id))
}

// startMultisig starts the flow of the account that a second officer has confirmed.
func (s *server) startMultisig(c *call, change exchange.ControlChange) {
	if change.Kind != exchange.ControlMultisigWallet || change.Status != exchange.ControlConfirmed {
		return
	}
	var terms struct {
		ID uuid.UUID `json:"id"`
	}
	err := json.Unmarshal(change.Change, &terms)
	var a exchange.MultisigAccount
	if err == nil {
		a, err = s.Store.MultisigAccount(c.ctx, store.Everything(), terms.ID)
	}
	if err == nil {
		err = s.Flows.OpenMultisig(c.ctx, a.ID, a.Network)
	}
	if err != nil {
		s.log.Warn("the flow of an account of several owners was not started; it is within minutes", "change", change.ID, "error", err)
	}
}

// operateMultisig sends an operator's decision to the flow of an account: to try again, or to give the account up.
func (s *server) operateMultisig(verb string) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note := f.line("note", verb != verbRetry, maxNoteLength)
		if err := f.done(); err != nil {
			return err
		}
		read := func() (exchange.MultisigAccount, error) {
			return s.Store.MultisigAccount(c.ctx, store.Everything(), id)
		}
		if _, err := read(); err != nil {
			return hideAbsence(err)
		}
		if err := s.commandRow(c, multisigObject, id, verb, note, workflows.OpenMultisigID(id), "account"); err != nil {
			return err
		}
		now, err := read()
		if err != nil {
			return err
		}
		w := multisigWire(c.who)(now)
		if verb != verbRetry {
			return c.json(http.StatusOK, w)
		}
		w.Retry = retryRequested
		return c.json(http.StatusAccepted, w)
	}
}
