package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

const (
	approvalTokenBytes = 32          // of randomness in a token
	digestLength       = 64          // of a digest in hexadecimal
	apiTokenLife       = time.Minute // of a token that the API makes for its own update
)

// decideTransfer takes an officer's decision. It passes the flow a token for exactly this decision, like a signal
// from the Web UI does: one handler takes both, and it accepts only tokens.
func (s *server) decideTransfer(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		t, err := s.Store.Transfer(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		k, token := s.ownTicket(c, exchange.ApproveTransfer, t.ID, action, note)
		k.Amount, k.Digest = t.Amount, digest
		if _, err = s.Store.IssueTicket(c.ctx, k, c.who); err != nil {
			return err
		}
		if err := s.unlessCounted(c, s.Flows.DecideTransfer(c.ctx, t.ID, c.objectID, action, token)); err != nil {
			return s.endedTransfer(c, t.ID, err)
		}
		return s.answerTransfer(c, t.ID)
	}
}

// unlessCounted returns a flow's refusal of the decision in the request, or nil when the decision counts already: on a
// repeated request, the flow may have moved on or ended.
func (s *server) unlessCounted(c *call, refusal error) error {
	if refusal == nil {
		return nil
	}
	counted, err := s.Store.TicketCounted(c.ctx, c.objectID)
	if err != nil || counted {
		return err
	}
	return refusal
}

// ticket is the right of the caller to one decision. It holds only the token's hash.
func (s *server) ticket(c *call, object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, note, token string) exchange.ApprovalTicket {
	return exchange.ApprovalTicket{
		OfficerID: c.who.UserID, ObjectType: object, ObjectID: id, Action: action, Note: note, TokenHash: sha256.Sum256([]byte(token)), CreatedAt: s.now().UTC(),
	}
}

// ownTicket is the ticket for the decision in the request itself. Its token is derived from the request, so that a retry
// has the same token, and from the pepper, so that only this service can compute it.
func (s *server) ownTicket(c *call, object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, note string) (exchange.ApprovalTicket, string) {
	token := hex.EncodeToString(s.hasher.mac("kivuko approval v1", c.objectID.String()))
	k := s.ticket(c, object, id, action, note, token)
	k.ID, k.Channel, k.ExpiresAt = c.objectID, exchange.ChannelAPI, k.CreatedAt.Add(apiTokenLife)
	return k, token
}

// signalTicket is the ticket for a random token that the officer sends by a signal.
func (s *server) signalTicket(c *call, object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, note string) (exchange.ApprovalTicket, string, error) {
	raw := make([]byte, approvalTokenBytes)
	if _, err := rand.Read(raw); err != nil {
		return exchange.ApprovalTicket{}, "", err
	}
	token := hex.EncodeToString(raw)
	k := s.ticket(c, object, id, action, note, token)
	k.ID, k.Channel, k.ExpiresAt = newID(), exchange.ChannelSignal, k.CreatedAt.Add(exchange.ApprovalTokenTTL)
	return k, token, nil
}

// The decisions that a token may be for.
var (
	approvalObjects = []string{string(exchange.ApproveTransfer), string(exchange.ApproveRefund), string(exchange.ApproveSale), string(exchange.ApproveWithdrawal), string(exchange.ApproveSwap), string(exchange.ApproveProposal)}
	approvalActions = []string{string(exchange.Approve), string(exchange.Reject)}
)

// tokenWire is the only response that shows the token: it is not stored.
type tokenWire struct {
	ID         uuid.UUID `json:"token_id"`
	Token      string    `json:"token"`
	ObjectType string    `json:"object_type"`
	ObjectID   uuid.UUID `json:"object_id"`
	Action     string    `json:"action"`
	Asset      string    `json:"asset"`
	Amount     string    `json:"amount"`
	Digest     string    `json:"digest"`
	WorkflowID string    `json:"workflow_id"`
	Signal     string    `json:"signal"`
	ExpiresAt  timestamp `json:"expires_at"`
}

// issueToken gives an officer the right to one decision, which the officer sends by a signal. Like every decision it needs
// a passkey's proof, so that a stolen access token alone can't approve money.
func (s *server) issueToken(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	object := exchange.ApprovalObject(f.oneOf("object_type", true, approvalObjects...))
	id := f.id("object_id", true)
	action := exchange.ApprovalAction(f.oneOf("action", true, approvalActions...))
	digest := f.line("digest", true, digestLength)
	note := f.line("note", false, maxNoteLength)
	f.decimalText("amount", true)
	asset, flow, err := s.awaiting(c, object, id)
	if exchange.CodeOf(err) == exchange.CodeNotFound && id != uuid.Nil {
		f.fail("object_id", "not_found", "is not the id of a transfer, a refund, an order, a withdrawal, a swap or a proposal that waits for approval")
	} else if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		return err
	}
	var amount money.Amount
	if object == exchange.ApproveProposal && asset.Valid() && !asset.Stablecoin() {
		amount = f.nothing("amount", asset)
	} else {
		amount = f.optionalAmount("amount", asset)
	}
	if err := f.done(); err != nil {
		return err
	}
	k, text, err := s.signalTicket(c, object, id, action, note)
	if err != nil {
		return err
	}
	k.Amount, k.Digest = amount, digest
	switch object {
	case exchange.ApproveRefund:
		_, err = s.Store.IssueRefundTicket(c.ctx, k, c.who)
	case exchange.ApproveSale:
		err = s.Store.IssueSaleTicket(c.ctx, k, c.who)
	case exchange.ApproveWithdrawal:
		_, err = s.Store.IssueWithdrawalTicket(c.ctx, k, c.who)
	case exchange.ApproveSwap:
		_, err = s.Store.IssueSwapTicket(c.ctx, k, c.who)
	case exchange.ApproveProposal:
		_, err = s.Store.IssueProposalTicket(c.ctx, k, c.who)
	case exchange.ApproveTransfer, exchange.ApproveBankPayout, exchange.ApprovePayload: // payouts by bank have no tokens, and payloads none for signals
		_, err = s.Store.IssueTicket(c.ctx, k, c.who)
	}
	if err != nil {
		return err
	}
	signal := workflows.SignalReject
	if action == exchange.Approve {
		signal = workflows.SignalApprove
	}
	return c.json(http.StatusCreated, tokenWire{
		ID: k.ID, Token: text, ObjectType: string(object), ObjectID: id, Action: string(action), Asset: string(amount.Asset()),
		Amount: amount.String(), Digest: digest, WorkflowID: flow, Signal: signal, ExpiresAt: stamp(k.ExpiresAt),
	})
}

// awaiting returns the asset of the object that waits for a decision, and the id of the flow that takes the signal.
func (s *server) awaiting(c *call, object exchange.ApprovalObject, id uuid.UUID) (money.Asset, string, error) {
	if object == exchange.ApproveSale {
		o, err := s.Store.Order(c.ctx, store.ViewOf(c.who, exchange.ActApprove), id)
		return o.Asset, workflows.OffRampID(id), err
	}
	if object == exchange.ApproveWithdrawal {
		return s.awaitingWithdrawal(c, id)
	}
	if object == exchange.ApproveSwap {
		return s.awaitingSwap(c, id)
	}
	if object == exchange.ApproveProposal {
		return s.awaitingProposal(c, id)
	}
	if object != exchange.ApproveRefund {
		t, err := s.Store.Transfer(c.ctx, store.ViewOf(c.who, exchange.ActApprove), id)
		return t.Amount.Asset(), workflows.TransferID(id), err
	}
	r, err := s.Store.Refund(c.ctx, id)
	if err != nil {
		return "", "", err
	}
	if r.Rail != exchange.RefundOnChain {
		return "", "", notFound()
	}
	flow, err := s.refundFlow(c, r)
	return r.Amount.Asset(), flow, err
}

// wirePending is a transfer that waits for the caller.
type wirePending struct {
	ObjectType        string         `json:"object_type"`
	ObjectID          uuid.UUID      `json:"object_id"`
	WorkflowID        string         `json:"workflow_id"`
	RequestedBy       uuid.UUID      `json:"requested_by"`
	Network           string         `json:"network"`
	Asset             string         `json:"asset"`
	Amount            string         `json:"amount"`
	FromAddress       string         `json:"from_address"`
	ToAddress         string         `json:"to_address"`
	FiatEquivalent    equivalentWire `json:"fiat_equivalent"`
	Digest            string         `json:"digest"`
	ApprovalsRequired int            `json:"approvals_required"`
	ApprovalsGiven    int            `json:"approvals_given"`
	CreatedAt         timestamp      `json:"created_at"`
}

func pendingWire(t exchange.Transfer) wirePending {
	return wirePending{
		ObjectType: string(exchange.ApproveTransfer), ObjectID: t.ID, WorkflowID: workflows.TransferID(t.ID), RequestedBy: t.RequestedBy,
		Network: string(t.Network), Asset: string(t.Amount.Asset()), Amount: t.Amount.String(), FromAddress: t.FromAddress, ToAddress: t.ToAddress,
		FiatEquivalent: equivalent(t), Digest: t.Digest, ApprovalsRequired: t.ApprovalsRequired, ApprovalsGiven: t.Approvals, CreatedAt: stamp(t.CreatedAt),
	}
}

// pendingApprovals lists what waits for the caller's decision: requests of others that the caller has not decided yet.
func (s *server) pendingApprovals(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	list, total, err := s.Store.PendingApprovals(c.ctx, c.who.UserID, page)
	if err != nil {
		return err
	}
	changes, err := s.Store.ChangesFor(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	refunds, err := s.Store.PendingRefunds(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	sales, err := s.Store.PendingSales(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	withdrawals, err := s.pendingWithdrawals(c)
	if err != nil {
		return err
	}
	swaps, err := s.pendingSwaps(c)
	if err != nil {
		return err
	}
	proposals, err := s.pendingProposals(c)
	if err != nil {
		return err
	}
	payloads, err := s.pendingPayloads(c)
	if err != nil {
		return err
	}
	total += len(changes) + len(refunds) + len(sales) + len(withdrawals) + len(swaps) + len(proposals) + len(payloads)
	c.fc.Set(headerTotal, strconv.Itoa(total))
	return c.json(http.StatusOK, map[string]any{ // all but transfers are few and need no pages
		"approvals": each(list, pendingWire), "changes": each(changes, changeWire), "refunds": each(refunds, pendingRefundWire),
		"orders": each(sales, pendingSaleWire), "withdrawals": withdrawals, "swaps": swaps,
		"multisig_proposals": proposals, "multisig_payloads": payloads, "page_id": page.Number, "page_size": page.Size, "total": total,
	})
}
