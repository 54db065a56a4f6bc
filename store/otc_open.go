package store

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const freeOTCReference = `
SELECT c FROM unnest($1::text[]) WITH ORDINALITY AS draws (c, n) WHERE NOT EXISTS (SELECT FROM otc_deposits WHERE payment_reference = c) ORDER BY n LIMIT 1`

// The open deposits of a merchant are counted one after the other: its row is locked.
const countOpenOTC = `SELECT count(*) FROM otc_deposits WHERE merchant_id = $1 AND status NOT IN ('audited', 'credited', 'rejected', 'cancelled', 'expired')`

// OpenOTC carries out an intent to draft a deposit, or to open one at once, which also prices and submits it. A repeated call returns
// the existing deposit. CodeInvalid names the wrong field, CodeLimitReached when the merchant has too many open ones. The errors of
// useIntent come before all others.
func (s *Store) OpenOTC(ctx context.Context, a exchange.Asked) (exchange.OTCDeposit, error) {
	r, err := readAsked(ctx, s, a, exchange.OTCRequestOf, exchange.IntendOTCDraft, exchange.IntendOTCOpen)
	if err != nil {
		return exchange.OTCDeposit{}, err
	}
	return change(ctx, s, "OTC deposit", r.ID, func(ctx context.Context, t unitTx) (exchange.OTCDeposit, exchange.Posting, error) {
		var none exchange.Posting
		asked, used, err := t.useIntent(ctx, a, exchange.IntendOTCDraft, exchange.IntendOTCOpen)
		if err != nil {
			return exchange.OTCDeposit{}, none, err
		}
		if used {
			old, err := readOne[exchange.OTCDeposit](ctx, t, "OTC deposit", readOTC, asked.ObjectID)
			return old, none, err
		}
		d, err := t.openOTC(ctx, asked, r)
		return d, none, err
	})
}

func (t unitTx) openOTC(ctx context.Context, asked exchange.Intent, r exchange.OTCRequest) (exchange.OTCDeposit, error) {
	w := &otcWork{unitTx: t, by: asked.By, intent: asked, now: t.s.now()}
	if !asked.By.Role.Merchant() {
		return w.d, exchange.Errorf(exchange.CodeForbidden, "Only a merchant can open an OTC deposit.")
	}
	if err := r.Check(asked.Kind == exchange.IntendOTCDraft); err != nil {
		return w.d, err
	}
	if err := w.stillMay(ctx, asked.By); err != nil {
		return w.d, err
	}
	var merchant exchange.User
	if err := t.Get(ctx, &merchant, lockCustomer, asked.By.VendorID); err != nil {
		return w.d, translate(err, "merchant")
	}
	if err := t.below(ctx, exchange.MaxOpenDeposits, countOpenOTC, merchant.ID, "open deposits of one merchant"); err != nil {
		return w.d, err
	}
	w.d = exchange.OTCDeposit{
		ID: r.ID, MerchantID: merchant.ID, CreatedBy: asked.By.UserID, Status: exchange.OTCDraft, Detail: exchange.WaitSubmit, IntentID: asked.ID, CreatedAt: w.now,
		UpdatedAt: w.now, Version: 1, Fee: money.Zero(money.KES), Flags: []exchange.OTCFlag{},
	}
	if err := t.Get(ctx, &w.d.Reference, freeOTCReference, pq.Array(exchange.OTCReferences(r.ID))); err != nil {
		return w.d, err
	}
	if err := w.fill(ctx, r); err != nil {
		return w.d, err
	}
	args := append(otcValues(w.d), w.d.ID, w.d.MerchantID, w.d.CreatedBy, w.d.Reference, w.d.IntentID, w.d.CreatedAt)
	if err := t.One(ctx, insertOTC, args...); err != nil {
		return w.d, err
	}
	var err error
	if w.d, err = readOne[exchange.OTCDeposit](ctx, t, "OTC deposit", readOTC, w.d.ID); err != nil {
		return w.d, err
	}
	w.before = w.d
	err = t.record(ctx, w.event("otc_deposit.draft"))
	if err != nil || asked.Kind == exchange.IntendOTCDraft {
		return w.d, err
	}
	if w.d.Sells() {
		w.step.QuoteID = r.QuoteID
		if err := quoteOTC(ctx, w); err != nil {
			return w.d, err
		}
	}
	err = submitOTC(ctx, w)
	return w.d, err
}

// fill takes what the merchant wrote.
func (w *otcWork) fill(ctx context.Context, r exchange.OTCRequest) error {
	d := &w.d
	d.Method, d.Fiat, d.Asset, d.Network, d.BankID = r.Method, r.Fiat, r.Asset, r.Network, r.BankID
	d.TransferDate, d.SenderName, d.SenderLast4, d.SenderBank, d.SenderBranch = r.TransferDate, strings.TrimSpace(r.SenderName), r.SenderLast4, strings.TrimSpace(r.SenderBank), strings.TrimSpace(r.SenderBranch)
	d.ReceiptNumber = strings.TrimSpace(r.ReceiptNumber)
	d.ExpiresAt = w.now.Add(exchange.OTCDraftLife)
	d.Phone, d.ToWalletID, d.ToAddress = "", uuid.Nil, ""
	if r.Method == exchange.OTCByMomo {
		if err := w.fillPhone(ctx, r.Phone); err != nil {
			return err
		}
	}
	if d.BankID != uuid.Nil {
		if err := w.payable(ctx); err != nil {
			return err
		}
	}
	if d.Network == "" {
		return nil
	}
	return resolveOTCWallet(ctx, w, d)
}

// fillPhone takes the number that is prompted: the merchant's own where it names none.
func (w *otcWork) fillPhone(ctx context.Context, digits string) error {
	if digits == "" {
		var u exchange.User
		if err := w.Get(ctx, &u, readUser, w.d.MerchantID); err != nil {
			return translate(err, "merchant")
		}
		w.d.Phone = u.PhoneNumber
		return require(w.d.Phone != "", "/momo_phone_number", "required", "is required: the merchant's account has no number")
	}
	p, err := exchange.ParsePhone(digits)
	if err != nil {
		return exchange.Invalid(exchange.FieldError{Pointer: "/momo_phone_number", Code: "format", Message: "must be a mobile number of Kenya"})
	}
	w.d.Phone = p
	return nil
}

// payable checks the account of the house that the merchant pays to.
func (w *otcWork) payable(ctx context.Context) error {
	b, known, err := readFound[exchange.HouseBankAccount](ctx, w, readBankAccount, w.d.BankID)
	if err != nil {
		return err
	}
	return require(known && b.IsActive && b.Currency == money.KES, "/bank_account_id", "not_found", "must be an active bank account of the house")
}

// editOTC replaces what a draft has. Its price, if it had one, is gone.
func editOTC(ctx context.Context, w *otcWork) error {
	r, err := exchange.OTCRequestOf(w.intent)
	if err != nil {
		return err
	}
	if r.Version != "" {
		version, err := strconv.ParseInt(r.Version, 10, 64)
		if err != nil {
			return exchange.Wrap(exchange.CodeInternal, err, "the version of an edit can't be read")
		}
		if err := expect([]int64{version}, w.before.Version); err != nil {
			return err
		}
	}
	if err := r.Check(true); err != nil {
		return err
	}
	if err := w.fill(ctx, r); err != nil {
		return err
	}
	w.clearPrice()
	return w.move(ctx, exchange.OTCDraft, exchange.WaitSubmit)
}

const anyActiveBank = `SELECT id FROM bank_accounts WHERE is_active AND currency = 'KES' ORDER BY created_at, id LIMIT 1`

// submitOTC makes a deposit binding: its money may come. Shillings are priced now; crypto was, by a quote that still holds.
func submitOTC(ctx context.Context, w *otcWork) error {
	d := &w.d
	r := exchange.OTCRequest{
		ID: d.ID, Method: d.Method, Fiat: d.Fiat, Asset: d.Asset, Network: d.Network, BankID: d.BankID, SenderName: d.SenderName, SenderLast4: d.SenderLast4,
		SenderBank: d.SenderBank, SenderBranch: d.SenderBranch, ReceiptNumber: d.ReceiptNumber,
	}
	if err := r.Check(false); err != nil {
		return err
	}
	if d.Sells() {
		if err := w.submittable(ctx); err != nil {
			return err
		}
		if err := w.consumeQuote(ctx); err != nil {
			return err
		}
	} else if err := w.price(ctx, d.Fiat); err != nil {
		return err
	}
	life := exchange.OTCMoneyLife
	detail := w.waitsFor()
	switch d.Method {
	case exchange.OTCByBank:
		if d.BankID == uuid.Nil {
			id, found, err := readFound[uuid.UUID](ctx, w, anyActiveBank)
			if err != nil {
				return err
			}
			if !found {
				return exchange.Errorf(exchange.CodeStateConflict, "The house has no active bank account now.")
			}
			d.BankID = id
		}
		if err := w.payable(ctx); err != nil {
			return err
		}
	case exchange.OTCByMomo:
		terms, err := w.termsAt(ctx, w.now)
		if err == nil {
			err = terms.AllowPrompt(d.Fiat, "/fiat_amount")
		}
		if err != nil {
			return err
		}
		life, detail = exchange.OTCPromptLife, exchange.WaitPrompt
	case exchange.OTCByC2B:
		detail = exchange.WaitMoney
	}
	d.SubmittedAt, d.ExpiresAt = w.now, w.now.Add(life)
	// What is paid on the last day of a quote may be on the bank's statement days later.
	if last := d.QuoteEndsAt.Add(life); d.Method != exchange.OTCByMomo && d.ExpiresAt.Before(last) {
		d.ExpiresAt = last
	}
	if err := w.flagPapers(ctx); err != nil {
		return err
	}
	return w.move(ctx, exchange.OTCPending, detail)
}

// submittable checks that crypto can be delivered and its quote holds.
func (w *otcWork) submittable(ctx context.Context) error {
	if w.d.Status != exchange.OTCQuoted {
		return exchange.Errorf(exchange.CodeStateConflict, "A deposit for crypto needs a quote before it is submitted.")
	}
	if !w.now.Before(w.d.QuoteEndsAt) {
		return exchange.Errorf(exchange.CodeExpired, "The quote of the deposit has ended. Ask for another one.")
	}
	if w.d.ToWalletID == uuid.Nil {
		if err := resolveOTCWallet(ctx, w, &w.d); err != nil {
			return err
		}
	}
	return require(w.d.ToWalletID != uuid.Nil, "/requested_network", "no_wallet", "must be a network on which you or one of your subvendors have a default wallet")
}
