package exchange

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
)

// IntentKind is what somebody asks for.
type IntentKind string

// The kinds of intents. An intent of a kind that opens something names the id of the new object.
const (
	IntendTransfer       IntentKind = "transfer.open"
	IntendTransferCancel IntentKind = "transfer.cancel"
	IntendColdPayload    IntentKind = "transfer.payload" // the unsigned transaction of a cold wallet
	IntendColdImport     IntentKind = "transfer.import"  // that transaction, signed
	IntendPurchase       IntentKind = "purchase.open"
	IntendPurchaseCancel IntentKind = "purchase.cancel"
	IntendPrompt         IntentKind = "purchase.prompt" // another prompt to the payer
	IntendSale           IntentKind = "sale.open"
	IntendSaleCancel     IntentKind = "sale.cancel"
	IntendSaleAccept     IntentKind = "sale.accept" // to be paid for another amount that came
	IntendSaleReturn     IntentKind = "sale.return" // to have that back
	IntendWallet         IntentKind = "wallet.create"

	IntendWithdrawal        IntentKind = "withdrawal.open"
	IntendWithdrawalCancel  IntentKind = "withdrawal.cancel"
	IntendWithdrawalHold    IntentKind = "withdrawal.hold"
	IntendWithdrawalUnhold  IntentKind = "withdrawal.unhold"
	IntendWithdrawalExecute IntentKind = "withdrawal.execute"
	IntendWithdrawalPaid    IntentKind = "withdrawal.confirm" // an officer says that a bank has paid it
	IntendRefundPaid        IntentKind = "refund.confirm"     // an officer says that a bank has paid it
	IntendOTCDraft          IntentKind = "deposit.draft"
	IntendOTCOpen           IntentKind = "deposit.open" // draft, quote and submit in one
	IntendOTCEdit           IntentKind = "deposit.edit"
	IntendOTCQuote          IntentKind = "deposit.quote"
	IntendOTCSubmit         IntentKind = "deposit.submit"
	IntendOTCProof          IntentKind = "deposit.proof"
	IntendOTCAssign         IntentKind = "deposit.assign"
	IntendOTCClaim          IntentKind = "deposit.claim"
	IntendOTCRelease        IntentKind = "deposit.release"
	IntendOTCAsk            IntentKind = "deposit.request_info"
	IntendOTCAnswer         IntentKind = "deposit.provide_info"
	IntendOTCHold           IntentKind = "deposit.hold"
	IntendOTCUnhold         IntentKind = "deposit.unhold"
	IntendOTCConfirm        IntentKind = "deposit.confirm"
	IntendOTCReject         IntentKind = "deposit.reject"
	IntendOTCSettle         IntentKind = "deposit.settle"
	IntendOTCCancel         IntentKind = "deposit.cancel"
	IntendOTCAudit          IntentKind = "deposit.audit"
	IntendOTCMatch          IntentKind = "deposit.match" // an officer names the payment to our number that is its money
	IntendSwap              IntentKind = "swap.open"
	IntendSwapCancel        IntentKind = "swap.cancel"
	IntendProposal          IntentKind = "proposal.open"
	IntendProposalCancel    IntentKind = "proposal.cancel"
	IntendProposalSign      IntentKind = "proposal.sign" // the signature of an owner whose key is not ours
	IntendProposalExecute   IntentKind = "proposal.execute"
)

// intentFlows are the prefixes of the ids of the flows that may use intents, by kind. 0028_otc_deposits.sql has the same.
var intentFlows = map[IntentKind]string{
	IntendTransfer: "transfer:", IntendTransferCancel: "transfer:", IntendColdPayload: "transfer:", IntendColdImport: "transfer:",
	IntendPurchase: "on-ramp:", IntendPurchaseCancel: "on-ramp:", IntendPrompt: "on-ramp:",
	IntendSale: "off-ramp:", IntendSaleCancel: "off-ramp:", IntendSaleAccept: "off-ramp:", IntendSaleReturn: "off-ramp:",
	IntendWallet:   "wallet:",
	IntendOTCDraft: otcFlow, IntendOTCOpen: otcFlow, IntendOTCEdit: otcFlow, IntendOTCQuote: otcFlow, IntendOTCSubmit: otcFlow, IntendOTCProof: otcFlow,
	IntendOTCAssign: otcFlow, IntendOTCClaim: otcFlow, IntendOTCRelease: otcFlow, IntendOTCAsk: otcFlow, IntendOTCAnswer: otcFlow, IntendOTCHold: otcFlow,
	IntendOTCUnhold: otcFlow, IntendOTCConfirm: otcFlow, IntendOTCReject: otcFlow, IntendOTCSettle: otcFlow, IntendOTCCancel: otcFlow, IntendOTCAudit: otcFlow,
	IntendOTCMatch:   otcFlow,
	IntendWithdrawal: outFlow, IntendWithdrawalCancel: outFlow, IntendWithdrawalHold: outFlow, IntendWithdrawalUnhold: outFlow,
	IntendWithdrawalExecute: outFlow, IntendWithdrawalPaid: outFlow,
	IntendRefundPaid: "bank-refund:",
	IntendSwap:       "swap:", IntendSwapCancel: "swap:",
	IntendProposal: proposalFlow, IntendProposalCancel: proposalFlow, IntendProposalSign: proposalFlow, IntendProposalExecute: proposalFlow,
}

const (
	otcFlow = "otc-deposit:"
	outFlow = "otc-withdrawal:"

	proposalFlow = "multisig-proposal:"
)

// IntentKinds lists the kinds in a fixed order.
func IntentKinds() []IntentKind {
	all := make([]IntentKind, 0, len(intentFlows))
	for k := range intentFlows {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// How long an intent may wait for its flow: as long as a request may be repeated under its Idempotency-Key. One that opens an
// order has names and numbers of accounts, and waits little longer than the order itself would live.
const (
	IntentLife      = 24 * time.Hour
	OrderIntentLife = 45 * time.Minute
)

// Life is how long an intent of the kind may wait for its flow.
func (k IntentKind) Life() time.Duration {
	if k == IntendPurchase || k == IntendSale {
		return OrderIntentLife
	}
	return IntentLife
}

// Intent is what an authenticated caller asked for, written down before anything starts. A flow gets its id and nothing
// else. It is used once, by one flow, or refused; then it allows nothing more.
type Intent struct {
	ID        uuid.UUID
	Kind      IntentKind
	ObjectID  uuid.UUID // what it opens or is about
	By        Principal
	Terms     Terms
	CreatedAt time.Time // with milliseconds
	ExpiresAt time.Time

	// What became of it. This is no part of its statement.
	UsedAt    time.Time
	UsedBy    string // the id of the flow
	RefusedAt time.Time
	Refusal   Code // what the caller was told
}

// Asked names the row by which a flow acts for somebody: an intent, or an operator's command. Without either the flow acts
// by a rule of its own.
type Asked struct {
	IntentID  uuid.UUID
	CommandID uuid.UUID
	Flow      string // the id of the flow, as the server of flows reports it to the activity
}

// Flow is the id of the only flow that may use the intent.
func (i Intent) Flow() string { return intentFlows[i.Kind] + i.ObjectID.String() }

// Statement is the canonical form of what was asked, by whom and when: a JSON object of texts, with sorted members and no
// spaces, as RFC 8785 writes it. Members without a value are left out. Two intents with the same statement are the same.
func (i Intent) Statement() []byte {
	by := Terms{
		"user_id": textOf(i.By.UserID), "role": string(i.By.Role), "vendor_id": textOf(i.By.VendorID), "session_id": textOf(i.By.SessionID),
		"assurance": string(i.By.Assurance), "stepped_up_at": momentText(i.By.SteppedUpAt), "stepped_up_by": string(i.By.SteppedUpBy), "ip": i.By.IP, "request_id": i.By.RequestID,
	}
	return appendObject(nil, map[string]any{
		"id": i.ID.String(), "kind": string(i.Kind), "object_id": i.ObjectID.String(), "by": by, "terms": i.Terms,
		"created_at": momentText(i.CreatedAt), "expires_at": momentText(i.ExpiresAt),
	})
}

// intentDomain separates the digests of intents from all other hashes. Another form of statements gets another number.
const intentDomain = "kivuko intent v1\x00"

// Digest is the SHA-256 of the statement behind its domain. Whoever signs an intent signs these 32 bytes.
func (i Intent) Digest() [sha256.Size]byte { return DigestOfIntent(i.Statement()) }

// DigestOfIntent is the digest of an intent by its statement.
func DigestOfIntent(statement []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(intentDomain), statement...))
}

// ParseIntent reads a statement. One that is not in its canonical form is refused, because it would have another digest
// than the intent that it describes.
func ParseIntent(statement []byte) (Intent, error) {
	var s struct {
		ID        uuid.UUID  `json:"id"`
		Kind      IntentKind `json:"kind"`
		ObjectID  uuid.UUID  `json:"object_id"`
		By        Terms      `json:"by"`
		Terms     Terms      `json:"terms"`
		CreatedAt string     `json:"created_at"`
		ExpiresAt string     `json:"expires_at"`
	}
	bad := func(cause error) (Intent, error) {
		return Intent{}, Wrap(CodeInternal, cause, "a statement of an intent can't be read")
	}
	if err := json.Unmarshal(statement, &s); err != nil {
		return bad(err)
	}
	i := Intent{ID: s.ID, Kind: s.Kind, ObjectID: s.ObjectID, Terms: s.Terms}
	var role, assurance, proof string
	r := termReader{of: s.By}
	r.read(
		idTerm("user_id", &i.By.UserID), textTerm("role", &role), idTerm("vendor_id", &i.By.VendorID), idTerm("session_id", &i.By.SessionID),
		textTerm("assurance", &assurance), momentTerm("stepped_up_at", &i.By.SteppedUpAt), textTerm("stepped_up_by", &proof), textTerm("ip", &i.By.IP), textTerm("request_id", &i.By.RequestID),
	)
	i.By.Role, i.By.Assurance, i.By.SteppedUpBy = Role(role), Assurance(assurance), Assurance(proof)
	times := termReader{of: Terms{"created_at": s.CreatedAt, "expires_at": s.ExpiresAt}}
	times.read(momentTerm("created_at", &i.CreatedAt), momentTerm("expires_at", &i.ExpiresAt))
	if r.err != nil || times.err != nil {
		return bad(errors.Join(r.err, times.err))
	}
	if !bytes.Equal(i.Statement(), statement) {
		return bad(nil)
	}
	return i, nil
}

// appendObject appends the canonical form of an object, whose values are texts, Terms or objects. Empty ones are left out.
func appendObject(b []byte, members map[string]any) []byte {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // names are ASCII, so that this is the order of RFC 8785
	b = append(b, '{')
	first := true
	for _, name := range names {
		value := canonical(members[name])
		if len(value) == 0 {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(appendText(b, name), ':'), value...)
	}
	return append(b, '}')
}

// canonical is the canonical form of a value, nil for an empty one.
func canonical(value any) []byte {
	switch v := value.(type) {
	case string:
		if v != "" {
			return appendText(nil, v)
		}
	case Terms:
		members := make(map[string]any, len(v))
		for name, text := range v {
			members[name] = text
		}
		if b := appendObject(nil, members); len(b) > len("{}") {
			return b
		}
	}
	return nil
}

// appendText appends a text as RFC 8785 writes it: only what JSON must escape is escaped.
func appendText(b []byte, s string) []byte {
	short := map[rune]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	b = append(b, '"')
	for _, r := range s {
		if e, ok := short[r]; ok {
			b = append(b, '\\', e)
		} else if r < ' ' {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = append(b, string(r)...)
		}
	}
	return append(b, '"')
}
