package api

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/workflows"
)

const (
	approvalTokenBytes = 32          // of chance in a token
	digestLength       = 64          // of a digest in hexadecimal
	apiTokenLife       = time.Minute // of a token that the API makes for its own update
)

// decideTransfer takes an officer's decision. The flow is handed a token for exactly this decision, as it
// would be from the Web UI: there is one door behind the two, and nothing but a token opens it.
func (s *server) decideTransfer(action exchange.ApprovalAction) func(*call) error {
	return func(c *call) error {
		id, err := c.pathID("id")
		if err != nil {
			return err
		}
		f, err := c.body()
		if err != nil {
			return err
		}
		note, digest := f.line("note", action == exchange.Reject, maxNoteLength), f.line("digest", false, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		t, err := s.Store.Transfer(c.ctx, c.view(), id)
		if err != nil {
			return hideAbsence(err)
		}
		if digest == "" {
			digest = t.Digest
		}
		token, now := s.ownToken(c.objectID), s.now().UTC()
		_, err = s.Store.IssueTicket(c.ctx, exchange.ApprovalTicket{
			ID: c.objectID, OfficerID: c.who.UserID, ObjectType: exchange.ApproveTransfer, ObjectID: t.ID, Action: action, Amount: t.Amount,
			Digest: digest, Door: exchange.DoorAPI, Note: note, TokenHash: sha256.Sum256([]byte(token)), CreatedAt: now, ExpiresAt: now.Add(apiTokenLife),
		}, c.who)
		if err != nil {
			return err
		}
		if err := s.Flows.DecideTransfer(c.ctx, t.ID, c.objectID, action, token); err != nil {
			// A repeated request may find its decision counted and the flow further, or over.
			counted, readErr := s.Store.TicketCounted(c.ctx, c.objectID)
			if readErr != nil {
				return readErr
			}
			if !counted {
				return s.endedTransfer(c, t.ID, err)
			}
		}
		return s.tellTransfer(c, t.ID)
	}
}

// ownToken is the token of a request's own decision. It follows from the request, so that a retry hands in
// the same one, and from the pepper, so that nobody else can make it.
func (s *server) ownToken(request uuid.UUID) string {
	mac := hmac.New(sha256.New, s.hasher.pepper)
	fmt.Fprintf(mac, "kivuko approval v1\n%s", request)
	return hex.EncodeToString(mac.Sum(nil))
}

// tokenWire answers with a token, once: it is stored nowhere.
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

// issueToken gives an officer the right to one decision, to be handed in by a signal. The PIN confirms that
// it is the officer: an access token alone must not approve money behind its owner's back.
func (s *server) issueToken(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	if f.oneOf("object_type", true, string(exchange.ApproveTransfer), string(exchange.ApproveRefund)) == string(exchange.ApproveRefund) {
		return s.issueRefundToken(c, f)
	}
	id := f.id("object_id", true)
	action := exchange.ApprovalAction(f.oneOf("action", true, string(exchange.Approve), string(exchange.Reject)))
	digest, pin := f.line("digest", true, digestLength), f.secret("pin", true)
	note := f.line("note", false, maxNoteLength)
	f.decimalText("amount", true)
	about, err := s.Store.Transfer(c.ctx, store.ViewOf(c.who, exchange.ActApprove), id)
	switch {
	case exchange.CodeOf(err) == exchange.CodeNotFound:
		if id != uuid.Nil {
			f.fail("object_id", "not_found", "is not the id of a transfer")
		}
	case err != nil:
		return err
	}
	amount := f.optionalAmount("amount", about.Amount.Asset())
	if err := f.done(); err != nil {
		return err
	}
	if err := s.confirmPIN(c, pin); err != nil {
		return err
	}
	token, now := make([]byte, approvalTokenBytes), s.now().UTC()
	if _, err := rand.Read(token); err != nil {
		return err
	}
	text := hex.EncodeToString(token)
	k := exchange.ApprovalTicket{
		ID: newID(), OfficerID: c.who.UserID, ObjectType: exchange.ApproveTransfer, ObjectID: id, Action: action, Amount: amount, Digest: digest,
		Door: exchange.DoorSignal, Note: note, TokenHash: sha256.Sum256([]byte(text)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}
	if _, err := s.Store.IssueTicket(c.ctx, k, c.who); err != nil {
		return err
	}
	signal := workflows.SignalReject
	if action == exchange.Approve {
		signal = workflows.SignalApprove
	}
	return c.json(http.StatusCreated, tokenWire{
		ID: k.ID, Token: text, ObjectType: string(k.ObjectType), ObjectID: id, Action: string(action), Asset: string(amount.Asset()),
		Amount: amount.String(), Digest: digest, WorkflowID: workflows.TransferID(id), Signal: signal, ExpiresAt: stamp(k.ExpiresAt),
	})
}

// confirmPIN asks for the caller's PIN once more, under the same counters as the login.
func (s *server) confirmPIN(c *call, pin string) error {
	credentials, err := s.Store.CredentialsOf(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	ok, err := s.provePIN(c, c.user, credentials, "", pin)
	if err != nil || ok {
		return err
	}
	return exchange.Invalid(exchange.FieldError{Pointer: "/pin", Code: "wrong", Message: "is not your PIN; set one if you have none"})
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

// pendingApprovals lists what waits for the caller: what others asked for and it has not decided about.
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
	c.fc.Set("X-Total-Count", strconv.Itoa(total))
	return c.json(http.StatusOK, map[string]any{ // of changes and refunds there are never so many that they need pages
		"approvals": each(list, pendingWire), "changes": each(changes, changeWire), "refunds": each(refunds, pendingRefundWire), "page_id": page.Number, "page_size": page.Size, "total": total,
	})
}
