package exchange

import (
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// Terms is what an intent asks for, as texts by name. A text that is empty is not there.
type Terms map[string]string

// term is a named value that is written as a text and read from it. One list of terms serves both directions, so that
// nothing can be written that is not read.
type term struct {
	name  string
	write func() string
	read  func(string) error
}

// termsOf writes terms.
func termsOf(list []term) Terms {
	t := Terms{}
	for _, f := range list {
		if text := f.write(); text != "" {
			t[f.name] = text
		}
	}
	return t
}

// termReader reads terms and keeps the first error.
type termReader struct {
	of  Terms
	err error
}

// read reads all terms of a list, and refuses terms that the list does not have.
func (r *termReader) read(list ...term) {
	known := 0
	for _, f := range list {
		text, ok := r.of[f.name]
		if !ok || text == "" {
			continue
		}
		known++
		if err := f.read(text); err != nil && r.err == nil {
			r.err = fmt.Errorf("the term %s: %w", f.name, err)
		}
	}
	for _, text := range r.of {
		if text != "" {
			known--
		}
	}
	if known != 0 && r.err == nil {
		r.err = fmt.Errorf("unknown terms")
	}
}

func textTerm[T ~string](name string, v *T) term {
	return term{name, func() string { return string(*v) }, func(s string) error { *v = T(s); return nil }}
}

func idTerm(name string, v *uuid.UUID) term {
	return term{name, func() string { return textOf(*v) }, func(s string) (err error) { *v, err = uuid.Parse(s); return err }}
}

func textOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}

// momentForm is RFC 3339 in UTC with milliseconds, the precision of stored times.
const momentForm = "2006-01-02T15:04:05.000Z"

func momentText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(momentForm)
}

func momentTerm(name string, v *time.Time) term {
	return term{name, func() string { return momentText(*v) }, func(s string) (err error) { *v, err = time.Parse(momentForm, s); return err }}
}

// amountTerm writes an amount with its asset: "10.000000 USDT".
func amountTerm(name string, v *money.Amount) term {
	return term{name, func() string { return amountText(*v) }, func(s string) (err error) { *v, err = amountOf(s); return err }}
}

// limitTerm writes an amount that need not be there, which is another thing than zero.
func limitTerm(name string, v **money.Amount) term {
	return term{name, func() string {
		if *v == nil {
			return ""
		}
		return amountText(**v)
	}, func(s string) error {
		a, err := amountOf(s)
		*v = &a
		return err
	}}
}

func amountText(a money.Amount) string {
	if a.Asset() == "" {
		return ""
	}
	return a.String() + " " + string(a.Asset())
}

func amountOf(s string) (money.Amount, error) {
	number, asset, _ := strings.Cut(s, " ")
	if !money.Asset(asset).Valid() {
		return money.Amount{}, fmt.Errorf("unknown asset")
	}
	return money.Parse(money.Asset(asset), number)
}

func decimalTerm(name string, v *decimal.Decimal) term {
	return term{name, func() string {
		if v.IsZero() {
			return ""
		}
		return v.String()
	}, func(s string) (err error) { *v, err = decimal.NewFromString(s); return err }}
}

func flagTerm(name string, v *bool) term {
	return term{name, func() string {
		if *v {
			return "true"
		}
		return ""
	}, func(s string) error {
		if s != "true" {
			return fmt.Errorf("must be true or absent")
		}
		*v = true
		return nil
	}}
}

// bytesTerm writes bytes in hexadecimal digits.
func bytesTerm(name string, v *[]byte) term {
	return term{name, func() string { return hex.EncodeToString(*v) }, func(s string) (err error) { *v, err = hex.DecodeString(s); return err }}
}

// readTerms fills a request from an intent.
func readTerms(i Intent, list []term) error {
	r := termReader{of: i.Terms}
	r.read(list...)
	if r.err != nil {
		return Wrap(CodeInternal, r.err, "the terms of an intent can't be read")
	}
	return nil
}

// Terms are what the request asks for. Its id is the object of the intent, and who asks is its principal.
func (r TransferRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *TransferRequest) terms() []term {
	return []term{
		idTerm("wallet_id", &r.WalletID), textTerm("network", &r.Network), amountTerm("amount", &r.Amount), textTerm("note", &r.Note),
		limitTerm("max_fee", &r.MaxFee), idTerm("quote_id", &r.QuoteID), idTerm("recipient_user_id", &r.Recipient.UserID), textTerm("recipient_email", &r.Recipient.Email),
		textTerm("recipient_phone", &r.Recipient.Phone), idTerm("recipient_wallet_id", &r.Recipient.WalletID),
		textTerm("recipient_address", &r.Recipient.Address),
	}
}

// TransferRequestOf is the request that an intent states.
func TransferRequestOf(i Intent) (TransferRequest, error) {
	r := TransferRequest{ID: i.ObjectID, RequestedBy: i.By.UserID}
	err := readTerms(i, r.terms())
	return r, err
}

// Terms are what the request asks for. Its id is the object of the intent.
func (r OrderRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *OrderRequest) terms() []term {
	return []term{
		idTerm("customer_id", &r.CustomerID), idTerm("opener_id", &r.OpenerID), textTerm("type", &r.Type), textTerm("subtype", &r.Subtype),
		idTerm("offer_id", &r.OfferID), idTerm("quote_id", &r.QuoteID), amountTerm("crypto", &r.Crypto), amountTerm("fiat", &r.Fiat),
		decimalTerm("expected_rate", &r.ExpectedRate), textTerm("network", &r.Network), textTerm("wallet_address", &r.WalletAddress),
		textTerm("refund_address", &r.RefundAddress), idTerm("fund_wallet_id", &r.FundWalletID), textTerm("phone", &r.Phone),
		textTerm("payout_method", &r.PayoutMethod), momentTerm("expires_at", &r.ExpiresAt),
		textTerm("seen_network", &r.Seen.Network), textTerm("seen_asset", &r.Seen.Asset), idTerm("seen_merchant_id", &r.Seen.MerchantID),
		textTerm("sender_name", &r.Sender.Name), textTerm("sender_country", &r.Sender.Country), textTerm("sender_phone", &r.Sender.Phone),
		textTerm("beneficiary_account_name", &r.Beneficiary.AccountName), textTerm("beneficiary_account_number", &r.Beneficiary.AccountNumber),
		textTerm("beneficiary_bank_name", &r.Beneficiary.BankName), textTerm("beneficiary_bank_code", &r.Beneficiary.BankCode),
		textTerm("beneficiary_bank_branch", &r.Beneficiary.BankBranch), textTerm("beneficiary_bank_address", &r.Beneficiary.BankAddress),
		textTerm("beneficiary_swift_code", &r.Beneficiary.SwiftCode),
	}
}

// OrderRequestOf is the request that an intent states.
func OrderRequestOf(i Intent) (OrderRequest, error) {
	r := OrderRequest{ID: i.ObjectID}
	if err := readTerms(i, r.terms()); err != nil {
		return r, err
	}
	asker := r.CustomerID
	if r.OpenerID != uuid.Nil {
		asker = r.OpenerID
	}
	if asker != i.By.UserID {
		return r, Errorf(CodeInternal, "intent %s opens an order for another caller", i.ID)
	}
	return r, nil
}

// Terms are what the request asks for. Its id is the object of the intent, and its creator the principal.
func (r WalletRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *WalletRequest) terms() []term {
	return []term{
		textTerm("owner_type", &r.OwnerType), idTerm("owner_id", &r.OwnerID), idTerm("vendor_id", &r.VendorID), textTerm("purpose", &r.Purpose),
		textTerm("network", &r.Network), textTerm("asset", &r.Asset), textTerm("type", &r.Type), textTerm("label", &r.Label), flagTerm("default", &r.Default),
	}
}

// WalletRequestOf is the request that an intent states.
func WalletRequestOf(i Intent) (WalletRequest, error) {
	r := WalletRequest{ID: i.ObjectID, CreatedBy: i.By.UserID}
	err := readTerms(i, r.terms())
	return r, err
}

// SignedOffline is the signed transaction of a cold wallet, in its network's encoding.
type SignedOffline struct{ Raw []byte }

// Terms are the transaction.
func (c SignedOffline) Terms() Terms { return termsOf(c.terms()) }

func (c *SignedOffline) terms() []term { return []term{bytesTerm("transaction", &c.Raw)} }

// SignedOfflineOf is the transaction that an intent states.
func SignedOfflineOf(i Intent) (SignedOffline, error) {
	var c SignedOffline
	err := readTerms(i, c.terms())
	return c, err
}
