package api

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// wireOrder is an order with every field of the interface description, plus network, rate and status_detail.
type wireOrder struct {
	ID                uuid.UUID      `json:"id"`
	CustomerID        uuid.UUID      `json:"customer_id"`
	VendorID          uuid.UUID      `json:"vendor_id"`
	OfferID           *wireOfferID   `json:"offer_id,omitempty"`
	Asset             *string        `json:"asset"`
	Network           string         `json:"network"`
	CryptoAmount      string         `json:"crypto_amount"`
	USDTAmount        *string        `json:"usdt_amount"`
	FiatAmount        string         `json:"fiat_amount"`
	FiatCurrency      string         `json:"fiat_currency"`
	Rate              string         `json:"rate"`
	WalletAddress     string         `json:"wallet_address"`
	Status            string         `json:"status"`
	StatusDetail      string         `json:"status_detail"`
	PaymentMethod     string         `json:"payment_method"`
	PaymentTxnID      NullableString `json:"payment_txn_id"`
	BlockchainTxnHash NullableString `json:"blockchain_txn_hash"`
	ExpiresAt         timestamp      `json:"expires_at"`
	CompletedAt       NullableTime   `json:"completed_at"`
	CreatedAt         timestamp      `json:"created_at"`
	UpdatedAt         timestamp      `json:"updated_at"`
	Retry             string         `json:"retry,omitempty"`
	ApprovalDigest    string         `json:"approval_digest,omitempty"`
	DeletedAt         NullableTime   `json:"deleted_at"`
	MerchantRequestID NullableString `json:"merchant_request_id"`
	CheckoutRequestID NullableString `json:"checkout_request_id"`
	MomoReceiptNumber NullableString `json:"momo_receipt_number"`
	PaymentPhone      NullableString `json:"payment_phone_number"`
	OrderType         string         `json:"order_type"`
	OrderSubtype      string         `json:"order_subtype"`
	SenderName        NullableString `json:"sender_name"`
	SenderCountry     NullableString `json:"sender_country"`
	SenderPhone       NullableString `json:"sender_phone"`
	BankName          NullableString `json:"beneficiary_bank_name"`
	BankCode          NullableString `json:"beneficiary_bank_code"`
	BankBranch        NullableString `json:"beneficiary_bank_branch"`
	BankAddress       NullableString `json:"beneficiary_bank_address"`
	AccountName       NullableString `json:"beneficiary_account_name"`
	AccountNumber     NullableString `json:"beneficiary_account_number"`
	SwiftCode         NullableString `json:"beneficiary_swift_code"`
	EscrowAddress     NullableString `json:"escrow_wallet_address"`
	EscrowNetwork     NullableString `json:"escrow_network"`
	EscrowReference   NullableString `json:"escrow_reference"`
	DepositTxHash     NullableString `json:"deposit_tx_hash"`
	DepositConfirms   int            `json:"deposit_confirmations"`
	DepositDetectedAt NullableTime   `json:"deposit_detected_at"`
	RefundAddress     NullableString `json:"refund_address"`
	FXRateQuoteID     *uuid.UUID     `json:"fx_rate_quote_id"`
	FeeAmount         string         `json:"fee_amount"`
	FeeCurrency       string         `json:"fee_currency"`
	ProfileID         *uuid.UUID     `json:"pricing_profile_id"`
	FeeProfileID      *uuid.UUID     `json:"fee_profile_id"` // an alias
	NetworkFee        string         `json:"network_fee"`

	OtherDeposit *wireOtherDeposit `json:"other_deposit"`
}

// wireOfferID is the offer of an order. It is null for a remittance from a custodial wallet, which has no offer. Orders to
// the house's treasury don't have the field at all.
type wireOfferID uuid.UUID

// MarshalJSON writes the id, or null.
func (id wireOfferID) MarshalJSON() ([]byte, error) {
	if id == (wireOfferID{}) {
		return []byte("null"), nil
	}
	return json.Marshal(uuid.UUID(id))
}

func offerWireOf(o exchange.Order) *wireOfferID {
	if o.Subtype.Treasury() {
		return nil
	}
	id := wireOfferID(o.OfferID)
	return &id
}

// orderWire converts an order for a reader. The customer sees everything. Staff see everything but account numbers, which
// only officers who pay by bank see. The vendor sees masked numbers, no escrow address before the deposit, and no names, no refund address and no checkout id of
// the mobile money operator, because that id contains a phone number.
func orderWire(o exchange.Order, reader exchange.Principal) wireOrder {
	amount := o.Price.Crypto.String()
	w := wireOrder{
		ID: o.ID, CustomerID: o.CustomerID, VendorID: o.VendorID, OfferID: offerWireOf(o), Asset: optText(string(o.Asset)),
		Network: string(o.Network), CryptoAmount: amount, USDTAmount: &amount, FiatAmount: o.Price.Fiat.String(),
		FiatCurrency: string(o.Price.Fiat.Asset()), Rate: o.Rate.String(), WalletAddress: o.WalletAddress,
		Status: string(o.Status), StatusDetail: o.StatusDetail, PaymentMethod: o.PaymentMethod,
		PaymentTxnID: nullString(o.PaymentTxnID), BlockchainTxnHash: nullString(o.TxHash),
		ExpiresAt: stamp(o.ExpiresAt), CompletedAt: nullTime(o.CompletedAt), CreatedAt: stamp(o.CreatedAt),
		UpdatedAt: stamp(o.UpdatedAt), DeletedAt: nullTime(o.DeletedAt),
		MerchantRequestID: nullString(o.MerchantRequest), CheckoutRequestID: nullString(o.CheckoutRequest),
		MomoReceiptNumber: nullString(o.MomoReceipt), PaymentPhone: nullString(o.PaymentPhone.Digits()),
		OrderType: string(o.Type), OrderSubtype: string(o.Subtype),
		SenderName: nullString(o.SenderName), SenderCountry: nullString(o.SenderCountry), SenderPhone: nullString(o.SenderPhone),
		BankName: nullString(o.Beneficiary.BankName), BankCode: nullString(o.Beneficiary.BankCode),
		BankBranch: nullString(o.Beneficiary.BankBranch), BankAddress: nullString(o.Beneficiary.BankAddress),
		AccountName: nullString(o.Beneficiary.AccountName), AccountNumber: nullString(o.Beneficiary.AccountNumber),
		SwiftCode: nullString(o.Beneficiary.SwiftCode), EscrowAddress: nullString(o.EscrowAddress),
		EscrowNetwork: nullString(o.EscrowNetwork), EscrowReference: nullString(o.EscrowReference),
		DepositTxHash: nullString(o.DepositTxHash), DepositConfirms: o.DepositConfirms, DepositDetectedAt: nullTime(o.DepositAt),
		RefundAddress: nullString(o.RefundAddress), FXRateQuoteID: optID(o.QuoteID), FeeAmount: o.Price.Fee.String(), FeeCurrency: string(o.Price.Fee.Asset()),
		ProfileID: optID(o.ProfileID), FeeProfileID: optID(o.ProfileID), NetworkFee: o.NetworkFee.String(), OtherDeposit: otherDepositWire(o),
	}
	if reader.Role.Staff() && o.OffRamp() && o.FundWalletID != uuid.Nil {
		w.ApprovalDigest = o.FundingIntent()
	}
	own := o.OwnedBy(reader)
	if !own && exchange.ScopeOf(reader.Role, exchange.ActReadBank) == exchange.ScopeNone {
		w.AccountNumber = nullString(lastDigits(o.Beneficiary.AccountNumber))
	}
	if !own && reader.Role.Merchant() {
		w.PaymentPhone, w.CheckoutRequestID = nullString(o.PaymentPhone.String()), NullableString{}
		w.SenderPhone, w.SenderName = nullString(lastDigits(o.SenderPhone)), NullableString{}
		w.AccountName, w.BankAddress = NullableString{}, NullableString{}
		w.RefundAddress, w.FXRateQuoteID = NullableString{}, nil
		if o.OffRamp() && o.Status == exchange.OrderPending { // before the deposit only the seller pays there
			w.WalletAddress, w.EscrowAddress, w.OtherDeposit = "", NullableString{}, nil
		}
	}
	return w
}

// lastDigits masks a number except for its last digits.
func lastDigits(number string) string {
	const shown = 4
	if len(number) <= shown {
		return strings.Repeat("*", len(number))
	}
	return strings.Repeat("*", len(number)-shown) + number[len(number)-shown:]
}
