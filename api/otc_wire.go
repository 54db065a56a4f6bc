package api

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// wirePayTo is where the money of a deposit by bank goes.
type wirePayTo struct {
	BankName      string  `json:"bank_name"`
	BankCode      *string `json:"bank_code"`
	Branch        *string `json:"branch"`
	SwiftCode     *string `json:"swift_code"`
	AccountName   string  `json:"account_name"`
	AccountNumber string  `json:"account_number"`
	Reference     string  `json:"payment_reference"`
}

// wireOTC is an OTC deposit with every field of the interface description, and more. What only staff see is null for others.
type wireOTC struct {
	ID                uuid.UUID  `json:"id"`
	MerchantID        uuid.UUID  `json:"merchant_id"`
	Method            *string    `json:"method"`
	FiatAmount        *string    `json:"fiat_amount"`
	FiatCurrency      string     `json:"fiat_currency"`
	Status            string     `json:"status"`
	StatusDetail      string     `json:"status_detail"`
	PaymentReference  string     `json:"payment_reference"`
	ProofURL          *string    `json:"proof_url"`
	TransferDate      *timestamp `json:"transfer_date"`
	MerchantRequestID *string    `json:"merchant_request_id"`
	CheckoutRequestID *string    `json:"checkout_request_id"`
	MomoReceipt       *string    `json:"momo_receipt_number"`
	MomoPhone         *string    `json:"momo_phone_number"`
	SenderName        *string    `json:"sender_account_name"`
	SenderLast4       *string    `json:"sender_account_number_last4"`
	SenderBank        *string    `json:"sender_bank_name"`
	SenderBranch      *string    `json:"sender_bank_branch"`
	ReceiptNumber     *string    `json:"receipt_number"`
	ReceiptUploadedAt *timestamp `json:"receipt_uploaded_at"`
	ProofName         *string    `json:"proof_file_name"`
	ProofType         *string    `json:"proof_mime_type"`
	ProofSize         *int64     `json:"proof_size_bytes"`
	ProofSHA256       *string    `json:"proof_file_sha256"`
	RequestedAsset    *string    `json:"requested_asset"`
	RequestedNetwork  *string    `json:"requested_network"`
	RequestedCrypto   *string    `json:"requested_crypto_amount"`
	PricingProfileID  *uuid.UUID `json:"pricing_profile_id"`
	FeeProfileID      *uuid.UUID `json:"fee_profile_id"` // an alias
	FXRateQuoteID     *uuid.UUID `json:"fx_rate_quote_id"`
	ConfirmedAt       *timestamp `json:"confirmed_at"`
	ConfirmedBy       *uuid.UUID `json:"confirmed_by"`
	RejectedAt        *timestamp `json:"rejected_at"`
	RejectedBy        *uuid.UUID `json:"rejected_by"`
	RejectionReason   *string    `json:"rejection_reason"`
	InternalNote      *string    `json:"internal_note"`
	CreditedAt        *timestamp `json:"credited_at"`
	CreditedBy        *uuid.UUID `json:"credited_by"`
	USDTAmount        *string    `json:"usdt_amount"`
	ToWalletID        *uuid.UUID `json:"to_wallet_id"`
	TransferID        *uuid.UUID `json:"transfer_id"`
	CreditedToAddress *string    `json:"credited_to_address"`
	CreatedAt         timestamp  `json:"created_at"`
	UpdatedAt         timestamp  `json:"updated_at"`
	CreatedBy         uuid.UUID  `json:"created_by"`
	AssignedTo        *uuid.UUID `json:"assigned_to"`
	ClaimedBy         *uuid.UUID `json:"claimed_by"`
	ClaimExpiresAt    *timestamp `json:"claim_expires_at"`
	ExpiresAt         *timestamp `json:"expires_at"`
	QuoteExpiresAt    *timestamp `json:"quote_expires_at"`
	Received          *string    `json:"received_amount"`
	ValueDate         *string    `json:"value_date"`
	BankAccountID     *uuid.UUID `json:"bank_account_id"`
	LineID            *uuid.UUID `json:"statement_line_id"`
	BankReference     *string    `json:"bank_reference"`
	InfoRequest       *string    `json:"info_request"`
	InfoReply         *string    `json:"info_reply"`
	Flags             *[]string  `json:"flags"`
	AgreedBy          *uuid.UUID `json:"agreed_by"`
	AuditedBy         *uuid.UUID `json:"audited_by"`
	AuditedAt         *timestamp `json:"audited_at"`
	HeldFrom          *string    `json:"held_from"`
	Reason            *string    `json:"reason"`
	FeeAmount         string     `json:"fee_amount"`
	Rate              *string    `json:"rate"`
	Version           int64      `json:"version"`
	PayTo             *wirePayTo `json:"pay_to"`
}

// otcFields are a deposit without where it is paid to, for lists.
func (c *call) otcFields(d exchange.OTCDeposit) wireOTC {
	w := wireOTC{
		ID: d.ID, MerchantID: d.MerchantID, Method: optText(string(d.Method)), FiatAmount: optAmount(d.Fiat), FiatCurrency: string(money.KES), Status: string(d.Status),
		StatusDetail: d.Detail, PaymentReference: d.Reference, TransferDate: optTime(d.TransferDate), MerchantRequestID: optText(d.MerchantRequestID),
		CheckoutRequestID: optText(d.CheckoutRequestID), MomoReceipt: optText(d.MomoReceipt), MomoPhone: optText(d.Phone.Digits()), SenderName: optText(d.SenderName),
		SenderLast4: optText(d.SenderLast4), SenderBank: optText(d.SenderBank), SenderBranch: optText(d.SenderBranch), ReceiptNumber: optText(d.ReceiptNumber),
		ReceiptUploadedAt: optTime(d.ProofAt), ProofName: optText(d.ProofName), ProofType: optText(string(d.ProofType)), ProofSHA256: optText(d.ProofSHA256),
		RequestedAsset: optText(string(d.Asset)), RequestedNetwork: optText(string(d.Network)), RequestedCrypto: optAmount(d.RequestedCrypto),
		PricingProfileID: optID(d.ProfileID), FeeProfileID: optID(d.ProfileID), FXRateQuoteID: optID(d.QuoteID), ConfirmedAt: optTime(d.ConfirmedAt), RejectedAt: optTime(d.RejectedAt),
		CreditedAt: optTime(d.CreditedAt), USDTAmount: optAmount(d.Crypto), ToWalletID: optID(d.ToWalletID), TransferID: optID(d.TransferID),
		CreditedToAddress: optText(d.ToAddress), CreatedAt: stamp(d.CreatedAt), UpdatedAt: stamp(d.UpdatedAt), CreatedBy: d.CreatedBy, ExpiresAt: optTime(d.ExpiresAt),
		QuoteExpiresAt: optTime(d.QuoteEndsAt), Received: optAmount(d.Received), BankAccountID: optID(d.BankID), LineID: optID(d.LineID), InfoRequest: optText(d.InfoRequest),
		InfoReply: optText(d.InfoReply), AuditedAt: optTime(d.AuditedAt), HeldFrom: optText(string(d.HeldFrom)), Reason: optText(d.Reason), FeeAmount: d.Fee.String(), Version: d.Version,
	}
	if d.ProofID != uuid.Nil {
		url := "/otc-deposits-proof/" + d.ID.String() + "/" + d.ProofID.String() + ".pdf"
		w.ProofURL, w.ProofSize = &url, &d.ProofSize
	}
	if d.Status == exchange.OTCRejected {
		w.RejectionReason = w.Reason
	}
	if !d.ValueDate.IsZero() {
		w.ValueDate = optText(d.ValueDate.Format(time.DateOnly))
	}
	if !d.Rate.IsZero() {
		w.Rate = optText(d.Rate.String())
	}
	if c.who.Role.Staff() {
		w.forStaff(d)
	}
	return w
}

// forStaff adds who works on a deposit, and what merchants don't see of it.
func (w *wireOTC) forStaff(d exchange.OTCDeposit) {
	flags := names(d.Flags)
	w.InternalNote, w.Flags, w.BankReference = optText(d.InternalNote), &flags, optText(d.BankRef)
	w.AssignedTo, w.ClaimedBy, w.ClaimExpiresAt = optID(d.AssignedTo), optID(d.ClaimedBy), optTime(d.ClaimEndsAt)
	w.ConfirmedBy, w.AgreedBy, w.CreditedBy = optID(d.ConfirmedBy), optID(d.AgreedBy), optID(d.CreditedBy)
	w.AuditedBy, w.RejectedBy = optID(d.AuditedBy), optID(d.RejectedBy)
}

// otcWire is a deposit, with the account that its money goes to while it is awaited.
func (s *server) otcWire(c *call, d exchange.OTCDeposit) (wireOTC, error) {
	w := c.otcFields(d)
	if d.BankID == uuid.Nil || d.HasMoney() || !d.Status.TakesMoney() {
		return w, nil
	}
	b, err := s.Store.BankAccount(c.ctx, d.BankID)
	if err != nil {
		return w, err
	}
	w.PayTo = &wirePayTo{
		BankName: b.BankName, BankCode: optText(b.BankCode), Branch: optText(b.Branch), SwiftCode: optText(b.SwiftCode), AccountName: b.AccountName,
		AccountNumber: b.AccountNumber, Reference: d.Reference,
	}
	return w, nil
}

// wireQueuedOTC is a deposit of the queue, with how long it waits.
type wireQueuedOTC struct {
	wireOTC
	AgeSeconds int64 `json:"age_seconds"`
}

// queuedOTC counts the age from the money, or from the submission while none is known.
func (c *call) queuedOTC(d exchange.OTCDeposit, now time.Time) wireQueuedOTC {
	since := d.ReceivedAt
	if since.IsZero() {
		since = d.SubmittedAt
	}
	return wireQueuedOTC{c.otcFields(d), max(int64(now.Sub(since)/time.Second), 0)}
}
