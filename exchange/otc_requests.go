package exchange

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// OTCRequest is a merchant's request for a deposit, or all that a draft has.
type OTCRequest struct {
	ID            uuid.UUID
	Method        OTCMethod
	Fiat          money.Amount
	Asset         money.Asset
	Network       Network
	QuoteID       uuid.UUID // of a deposit that is submitted with one that the merchant has
	BankID        uuid.UUID // the account of the house; zero: any active one
	Phone         string    // digits of the number that is prompted; empty: the merchant's own
	TransferDate  time.Time
	SenderName    string
	SenderLast4   string
	SenderBank    string
	SenderBranch  string
	ReceiptNumber string
	Version       string // of an edit: the one that it changes, in decimal digits
}

// Terms are what the request asks for. Its id is the object of the intent, and its creator the principal.
func (r OTCRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *OTCRequest) terms() []term {
	return []term{
		textTerm("method", &r.Method), amountTerm("fiat", &r.Fiat), textTerm("asset", &r.Asset), textTerm("network", &r.Network), idTerm("quote_id", &r.QuoteID),
		idTerm("bank_account_id", &r.BankID), textTerm("phone", &r.Phone), momentTerm("transfer_date", &r.TransferDate), textTerm("sender_account_name", &r.SenderName),
		textTerm("sender_account_last4", &r.SenderLast4), textTerm("sender_bank_name", &r.SenderBank), textTerm("sender_bank_branch", &r.SenderBranch),
		textTerm("receipt_number", &r.ReceiptNumber), textTerm("version", &r.Version),
	}
}

// Request is what a draft says, as the request that would change it.
func (d OTCDeposit) Request() OTCRequest {
	return OTCRequest{
		ID: d.ID, Method: d.Method, Fiat: d.Fiat, Asset: d.Asset, Network: d.Network, BankID: d.BankID, Phone: d.Phone.Digits(), TransferDate: d.TransferDate,
		SenderName: d.SenderName, SenderLast4: d.SenderLast4, SenderBank: d.SenderBank, SenderBranch: d.SenderBranch, ReceiptNumber: d.ReceiptNumber,
		Version: strconv.FormatInt(d.Version, 10),
	}
}

// Edited is what a draft says after a change. What only its old method or asset has goes with it, unless the change says otherwise.
func (d OTCDeposit) Edited(change func(*OTCRequest)) OTCRequest {
	was := d.Request()
	r := was
	change(&r)
	if r.Method != was.Method && r.Phone == was.Phone {
		r.Phone = ""
	}
	if r.Method != was.Method && r.BankID == was.BankID {
		r.BankID = uuid.Nil
	}
	if r.Asset != was.Asset && r.Asset == money.KES && r.Network == was.Network {
		r.Network = ""
	}
	return r
}

// OTCRequestOf is the request that an intent states.
func OTCRequestOf(i Intent) (OTCRequest, error) {
	r := OTCRequest{ID: i.ObjectID}
	err := readTerms(i, r.terms())
	return r, err
}

// Limits of the texts of a deposit.
const (
	MaxOTCReceipt = 60 // characters
	otcLast4      = 4
)

// Check checks a request on its own. A draft may lack what a submitted deposit needs. CodeInvalid lists every field at fault.
func (r OTCRequest) Check(draft bool) error {
	c := checker{}
	c.rule(slices.Contains(OTCMethods(), r.Method) || draft && r.Method == "", "/method", "enum", "must be bank, momo or c2b")
	if !draft || r.Fiat.Asset() != "" {
		c.rule(r.Fiat.Asset() == money.KES && r.Fiat.Positive(), "/fiat_amount", "out_of_range", "must be above zero, in KES")
		whole := r.Asset.Stablecoin() || r.Method == OTCByMomo || r.Method == OTCByC2B
		c.rule(r.Fiat.Asset() != money.KES || !whole || r.Fiat.Equal(r.Fiat.FloorWhole()), "/fiat_amount", "precision", "must be whole shillings for mobile money and for crypto")
	}
	c.rule(r.Asset == money.KES || r.Asset.Stablecoin() || draft && r.Asset == "", "/requested_asset", "enum", "must be KES, USDT or USDC")
	c.rule(r.Network == "" || r.Network.Valid(), "/requested_network", "enum", "must be ethereum, tron or solana")
	c.rule(!r.Asset.Stablecoin() || r.Network != "" || draft, "/requested_network", "required", "is required for crypto")
	c.rule(r.Asset != money.KES || r.Network == "", "/requested_network", "forbidden", "must be left out: shillings are on no network")
	c.rule(r.Asset != money.KES || r.QuoteID == uuid.Nil, "/fx_rate_quote_id", "forbidden", "must be left out: shillings need no quote")
	c.rule(r.Phone == "" || r.Method == OTCByMomo || r.Method == "", "/momo_phone_number", "forbidden", "must be left out: no phone is prompted")
	c.rule(r.BankID == uuid.Nil || r.Method == OTCByBank || r.Method == "", "/bank_account_id", "forbidden", "must be left out: the money does not come by bank")
	c.text(r.SenderName, "/sender_account_name", MaxBeneficiaryText)
	c.text(r.SenderBank, "/sender_bank_name", MaxBeneficiaryText)
	c.text(r.SenderBranch, "/sender_bank_branch", MaxBeneficiaryText)
	c.text(r.ReceiptNumber, "/receipt_number", MaxOTCReceipt)
	c.rule(r.SenderLast4 == "" || len(r.SenderLast4) == otcLast4 && strings.Trim(r.SenderLast4, "0123456789") == "", "/sender_account_number_last4", "format", "must be four digits")
	return Invalid(c.bad...)
}

// text checks the length of a text.
func (c *checker) text(s, pointer string, most int) {
	c.rule(utf8.RuneCountInString(s) <= most, pointer, "too_long", fmt.Sprintf("must have at most %d characters", most))
}

// OTCStep is what a verb on a deposit needs, beside the deposit and the caller.
type OTCStep struct {
	OfficerID      uuid.UUID // assign: who reviews it; zero takes the name away
	Text           string    // a question, an answer or a reason
	Note           string    // for staff only
	QuoteID        uuid.UUID // quote: one that the merchant has
	TakeKES        bool      // quote: shillings in place of crypto
	FileID         uuid.UUID // proof and provide-info
	ReceiptNumber  string    // proof
	TransferDate   time.Time
	Received       money.Amount // confirm
	ValueDate      time.Time
	LineID         uuid.UUID
	BankID         uuid.UUID
	Reference      string // the bank's, typed twice where there is no line
	ReferenceAgain string
	TransferIntent uuid.UUID // settle: by which the same officer asks for the transfer of the crypto
	PaymentID      uuid.UUID // match: the payment to our number
}

// Terms are what the verb needs.
func (r OTCStep) Terms() Terms { return termsOf(r.terms()) }

func (r *OTCStep) terms() []term {
	return []term{
		idTerm("officer_id", &r.OfficerID), textTerm("text", &r.Text), textTerm("note", &r.Note), idTerm("quote_id", &r.QuoteID), flagTerm("take_kes", &r.TakeKES),
		idTerm("file_id", &r.FileID), textTerm("receipt_number", &r.ReceiptNumber), momentTerm("transfer_date", &r.TransferDate),
		amountTerm("received", &r.Received), momentTerm("value_date", &r.ValueDate), idTerm("line_id", &r.LineID), idTerm("bank_account_id", &r.BankID),
		textTerm("reference", &r.Reference), textTerm("reference_again", &r.ReferenceAgain), idTerm("transfer_intent_id", &r.TransferIntent),
		idTerm("payment_id", &r.PaymentID),
	}
}

// OTCStepOf is the verb that an intent states.
func OTCStepOf(i Intent) (OTCStep, error) {
	var r OTCStep
	err := readTerms(i, r.terms())
	return r, err
}

// Check checks a verb on its own. CodeInvalid lists every field at fault.
func (r OTCStep) Check(verb IntentKind) error {
	c := checker{}
	c.text(r.Text, otcTextPointers[verb], MaxOTCText)
	c.text(r.Note, "/internal_note", MaxOTCText)
	c.text(r.ReceiptNumber, "/receipt_number", MaxOTCReceipt)
	if p := otcTextPointers[verb]; p != "" && verb != IntendOTCAnswer {
		c.rule(strings.TrimSpace(r.Text) != "", p, "required", "is required")
	}
	c.rule(verb != IntendOTCAnswer || strings.TrimSpace(r.Text) != "" || r.FileID != uuid.Nil, "/info_reply", "required", "or a file is required")
	c.rule(verb != IntendOTCProof || r.FileID != uuid.Nil, "/file", "required", "is required")
	c.rule(verb != IntendOTCMatch || r.PaymentID != uuid.Nil, "/payment_id", "required", "is required")
	c.rule(verb != IntendOTCQuote || !r.TakeKES || r.QuoteID == uuid.Nil, "/fx_rate_quote_id", "forbidden", "must be left out: shillings need no quote")
	if verb == IntendOTCConfirm {
		c.confirmation(r)
	}
	return Invalid(c.bad...)
}

// otcTextPointers are the fields that verbs take their text from.
var otcTextPointers = map[IntentKind]string{
	IntendOTCAsk: "/info_request", IntendOTCAnswer: "/info_reply", IntendOTCHold: "/reason", IntendOTCReject: "/rejection_reason", IntendOTCCancel: "/reason",
}

func (c *checker) confirmation(r OTCStep) {
	c.rule(r.Received.Asset() == money.KES && r.Received.Positive(), "/received_amount", "out_of_range", "must be above zero, in KES")
	c.rule(!r.ValueDate.IsZero(), "/value_date", "required", "is required")
	if r.LineID != uuid.Nil {
		c.rule(r.Reference == "" && r.ReferenceAgain == "", "/bank_reference", "forbidden", "must be left out: the statement line has it")
		return
	}
	typed := BankReference(r.Reference)
	c.rule(len(typed) <= MaxStatementReference, "/bank_reference", "too_long", "must have at most 64 letters and digits")
	c.rule(typed == BankReference(r.ReferenceAgain), "/bank_reference_again", "mismatch", "must be the same reference, typed again")
}
