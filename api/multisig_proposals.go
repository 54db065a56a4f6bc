package api

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

const (
	proposalsPath  = "/api/v1/auth/multisig/proposals"
	proposalObject = "multisig_proposal"
)

func (s *server) proposalRoutes() []route {
	const one = proposalsPath + "/{id}"
	verb := func(name string, action exchange.Action, handle func(*call) error) route {
		return route{method: post, path: one + "/" + name, action: action, limit: limitGeneral, key: keyRequired, timeout: flowTimeout, handle: handle}
	}
	return []route{
		{method: get, path: proposalsPath, action: exchange.ActReadProposals, limit: limitGeneral, handle: s.listProposals},
		{method: post, path: proposalsPath, action: exchange.ActOpenProposals, limit: limitOrderCreate, key: keyRequired, timeout: flowTimeout, handle: s.openProposal},
		{method: get, path: one, action: exchange.ActReadProposals, limit: limitGeneral, handle: proposals.get(s)},
		{method: get, path: one + "/payload", one: true, action: exchange.ActReadProposals, limit: limitGeneral, handle: s.getPayload},
		verb("approve", exchange.ActApprove, s.decideProposal(exchange.Approve)),
		verb("reject", exchange.ActApprove, s.decideProposal(exchange.Reject)),
		verb("confirm", exchange.ActSignProposals, s.confirmProposal),
		verb("cancel", exchange.ActCancelProposals, s.cancelProposal),
		verb("execute", exchange.ActExecuteProposals, s.executeProposal),
		verb(verbRetry, exchange.ActOperateFlows, s.retryProposal),
	}
}

var (
	proposalStatuses = names(exchange.ProposalMachine.States())
	proposalKinds    = names(exchange.ProposalKinds())
	payloadStatuses  = []string{string(exchange.PayloadOpen), string(exchange.PayloadVoid), string(exchange.PayloadExecuted)}
)

// openProposal proposes something that the owners of a wallet sign.
func (s *server) openProposal(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	kind := exchange.ProposalKind(f.oneOf("kind", false, proposalKinds...))
	var asset money.Asset
	if kind == "" || kind == exchange.ProposePayment {
		asset = money.Asset(f.oneOf("asset", true, stablecoins...))
	}
	r := exchange.ProposalRequest{ID: c.objectID, Kind: kind, WalletID: f.id("wallet_id", true)}
	if r.Is() != exchange.ProposePayment {
		return s.openUnmoved(c, f, r)
	}
	r.Amount, r.Reference = f.amount("amount", asset, true), f.line("reference", false, exchange.MaxProposalReference)
	text := f.line("destination", true, maxAddressText)
	if err := f.done(); err != nil {
		return err
	}
	account, err := s.proposable(c, r.WalletID)
	if err != nil {
		return err
	}
	if err := s.canHold(account.Network, asset); err != nil {
		return err
	}
	if r.Destination, err = s.Addresses[account.Network](text); err != nil {
		return exchange.Invalid(exchange.FieldError{Pointer: "/destination", Code: "address", Message: exchange.MessageOf(addressError(account.Network, err))})
	}
	return s.askProposal(c, r, account)
}

// proposable is the account of a wallet for which the caller may propose something.
func (s *server) proposable(c *call, wallet uuid.UUID) (exchange.MultisigAccount, error) {
	account, err := s.Store.MultisigAccount(c.ctx, store.ViewOf(c.who, exchange.ActReadMultisig), wallet)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		err = exchange.Invalid(exchange.FieldError{Pointer: "/wallet_id", Code: "not_found", Message: "must be the id of a wallet of several owners from which you may propose payments"})
	}
	return account, err
}

func (s *server) askProposal(c *call, r exchange.ProposalRequest, account exchange.MultisigAccount) error {
	err := s.ask(c, exchange.IntendProposal, r.ID, r.Terms(), func(intent uuid.UUID) error { return s.Flows.OpenProposal(c.ctx, r, account, intent) })
	if err != nil {
		return err
	}
	return proposals.opened(s, c, r.ID)
}

func (s *server) listProposals(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.ProposalFilter{
		WalletID: q.id("wallet_id"), Status: exchange.ProposalStatus(q.oneOf("status", proposalStatuses...)), Network: exchange.Network(q.oneOf("network", networkNames...)),
		MerchantID: q.id("merchant_id"), ProposerID: q.id("proposer_id"), CreatedFrom: q.time("created_from"), CreatedTo: q.time("created_to"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return proposals.page(s, c, page)(s.Store.Proposals(c.ctx, c.view(), filter, page))
}

// decideProposal takes an officer's decision. The flow's handler also takes those from the Web UI.
func (s *server) decideProposal(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		p, err := s.Store.Proposal(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		k, token := s.ownTicket(c, exchange.ApproveProposal, p.ID, action, note)
		k.Amount, k.Digest = p.Amount, digest
		if _, err = s.Store.IssueProposalTicket(c.ctx, k, c.who); err != nil {
			return err
		}
		if err := s.unlessCounted(c, s.Flows.DecideProposal(c.ctx, p.ID, c.objectID, action, token)); err != nil {
			return proposals.ended(s, c, p.ID, err)
		}
		return proposals.answer(s, c, p.ID)
	}
}

const maxSignatureText = 400 // characters of a signature, in hexadecimal or base64

// confirmProposal takes the signature of an owner of one payload: one that another tool made, or that of the caller's own key in our key
// store, which the digest of exactly this payload asks for.
func (s *server) confirmProposal(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	payload := f.id("payload_id", true)
	signature, digest := f.signature("signature"), f.line("digest", f.has("digest"), digestLength)
	switch {
	case f.has("signature") && f.has("digest"):
		f.fail("digest", "conflict", "must be left out when signature is given")
	case !f.has("signature") && !f.has("digest"):
		f.fail("signature", "required", "is required, or digest for the own key in our key store")
	}
	if err := f.done(); err != nil {
		return err
	}
	p, facts, err := proposals.find(s, c, id)
	if err != nil {
		return err
	}
	y, found := payloadOf(facts, payload)
	if !found {
		return exchange.Invalid(exchange.FieldError{Pointer: "/payload_id", Code: "not_found", Message: "must be the id of a payload of the proposal"})
	}
	if signature != nil {
		known, err := s.verifySignature(c, p, y, signature)
		if err != nil {
			return err
		}
		if known {
			return proposals.answer(s, c, id)
		}
		o := exchange.OutsideSignature{PayloadID: payload, Signature: signature}
		return s.stepProposal(c, id, exchange.IntendProposalSign, o.Terms())
	}
	if !c.who.Role.Officer() {
		return exchange.Errorf(exchange.CodeForbidden, "The role %s has no keys in our key store; send a signature.", c.who.Role)
	}
	k, token := s.ownTicket(c, exchange.ApprovePayload, payload, exchange.Approve, "")
	k.Amount, k.Digest = p.Amount, digest
	if _, err := s.Store.IssuePayloadTicket(c.ctx, k, c.who); err != nil {
		return err
	}
	if err := s.unlessCounted(c, s.Flows.ConfirmPayload(c.ctx, id, payload, c.objectID, token)); err != nil {
		return proposals.ended(s, c, id, err)
	}
	return proposals.answer(s, c, id)
}

func payloadOf(f store.ProposalFacts, id uuid.UUID) (store.ProposalSignatures, bool) {
	for _, y := range f.Payloads {
		if y.ID == id {
			return y, true
		}
	}
	return store.ProposalSignatures{}, false
}

// verifySignature refuses what the flow would refuse, before it gets there: a flow takes only so many updates. It reports whether the owner has
// signed already: then the first signature stays.
func (s *server) verifySignature(c *call, p exchange.Proposal, y store.ProposalSignatures, signature []byte) (known bool, err error) {
	if !y.Open() || !p.Status.Signable() || p.Ending != "" {
		return false, exchange.Errorf(exchange.CodeStateConflict, "The payload is %s, and its proposal %s; it takes no signatures.", y.Status, p.Status)
	}
	verify := s.Signatures[p.Network]
	if verify == nil {
		return false, nil
	}
	owner, err := verify(y.Joint, signature)
	if err != nil {
		return false, err
	}
	account, err := s.Store.MultisigAccountByID(c.ctx, p.WalletID)
	if err != nil {
		return false, err
	}
	for _, o := range account.Owners {
		if o.Address == owner && !o.Held {
			signed := slices.ContainsFunc(y.Signatures, func(g exchange.MultisigSignature) bool { return g.Owner == owner })
			return signed, nil
		}
	}
	return false, exchange.Invalid(exchange.FieldError{Pointer: "/signature", Code: "signature", Message: "is refused: it is not of an owner who holds the key"})
}

// signature reads the bytes of a signature, in hexadecimal or base64; nil when absent or invalid. None is both: base64 of 64 or 65 bytes ends
// with a sign that is no digit.
func (f *form) signature(name string) []byte {
	text := f.line(name, f.has(name), maxSignatureText)
	if text == "" {
		return nil
	}
	raw, err := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if err != nil {
		raw, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil || len(raw) == 0 {
		f.fail(name, "format", "must be a signature in hexadecimal or base64")
		return nil
	}
	return raw
}

func (s *server) cancelProposal(c *call) error {
	return s.intendProposal(c, exchange.IntendProposalCancel)
}

// executeProposal has the signatures sent that enough owners made.
func (s *server) executeProposal(c *call) error {
	return s.intendProposal(c, exchange.IntendProposalExecute)
}

// intendProposal is a verb without parameters on a proposal that the caller may see.
func (s *server) intendProposal(c *call, kind exchange.IntentKind) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if _, err := s.Store.Proposal(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	return s.stepProposal(c, id, kind, nil)
}

// stepProposal has a proposal's flow carry out what the caller asks for, and answers with the proposal as it is then.
func (s *server) stepProposal(c *call, id uuid.UUID, kind exchange.IntentKind, terms exchange.Terms) error {
	err := s.ask(c, kind, id, terms, func(intent uuid.UUID) error { return s.Flows.StepProposal(c.ctx, id, intent, kind) })
	if err != nil {
		return proposals.ended(s, c, id, err)
	}
	return proposals.answer(s, c, id)
}

// retryProposal has the flow of a proposal that is parked try again.
func (s *server) retryProposal(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	note := f.line("note", false, maxNoteLength)
	if err := f.done(); err != nil {
		return err
	}
	if _, err := s.Store.Proposal(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	if err := s.commandRow(c, proposalObject, id, verbRetry, note, workflows.MultisigProposalID(id), "proposal"); err != nil {
		return err
	}
	w, err := proposals.now(s, c, id)
	if err != nil {
		return err
	}
	w.Retry = retryRequested
	return c.json(http.StatusAccepted, w)
}
