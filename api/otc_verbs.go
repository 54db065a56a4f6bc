package api

import (
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What the bodies of the verbs on OTC deposits say.

func noFields(*form) exchange.OTCStep { return exchange.OTCStep{} }

// noteField reads what an officer writes down for staff.
func noteField(f *form) exchange.OTCStep {
	return exchange.OTCStep{Note: f.text("internal_note", false, exchange.MaxOTCText)}
}

func reasonFields(f *form) exchange.OTCStep {
	return exchange.OTCStep{Text: f.text("reason", true, exchange.MaxOTCText)}
}

func quoteFields(f *form) exchange.OTCStep {
	step := exchange.OTCStep{QuoteID: f.id("fx_rate_quote_id", false)}
	if take := f.boolean("take_kes", false); take != nil {
		step.TakeKES = *take
	}
	return step
}

func answerFields(f *form) exchange.OTCStep {
	return exchange.OTCStep{Text: f.text("info_reply", false, exchange.MaxOTCText), FileID: f.id("file_id", false)}
}

func assignFields(f *form) exchange.OTCStep {
	step := noteField(f)
	step.OfficerID = f.id("officer_id", false)
	return step
}

func questionFields(f *form) exchange.OTCStep {
	step := noteField(f)
	step.Text = f.text("info_request", true, exchange.MaxOTCText)
	return step
}

func rejectFields(f *form) exchange.OTCStep {
	step := noteField(f)
	step.Text = f.text("rejection_reason", true, exchange.MaxOTCText)
	return step
}

func confirmFields(f *form) exchange.OTCStep {
	step := noteField(f)
	step.Received, step.ValueDate = f.amount("received_amount", money.KES, true), f.date("value_date")
	step.LineID, step.BankID = f.id("statement_line_id", false), f.id("bank_account_id", false)
	step.Reference, step.ReferenceAgain = f.line("bank_reference", false, maxTypedReference), f.line("bank_reference_again", false, maxTypedReference)
	return step
}

// maxTypedReference bounds a reference of a bank with the signs between its digits.
const maxTypedReference = 2 * exchange.MaxStatementReference

// proveOTC takes a proof of payment: the file, and what the merchant says of it.
func (s *server) proveOTC(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	d, err := s.Store.OTCDeposit(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	if err := d.Admit(exchange.IntendOTCProof, c.who); err != nil {
		return err // before the file is taken
	}
	var step exchange.OTCStep
	file, err := s.receive(c, func(*form) (exchange.FilePurpose, error) { return exchange.FileOTCProof, nil }, func(f *form) {
		step.ReceiptNumber, step.TransferDate = f.line("receipt_number", false, exchange.MaxOTCReceipt), f.time("transfer_date", false)
	})
	if err != nil {
		return err
	}
	step.FileID = file.ID
	if err := s.sendOTC(c, exchange.IntendOTCProof, id, step.Terms()); err != nil {
		return err
	}
	return s.answerOTC(c, id)
}

// otcProof answers with a proof of a deposit that the caller may see.
func (s *server) otcProof(c *call) error {
	id, err := c.pathID("deposit_id")
	if err != nil {
		return err
	}
	file, err := c.pathID("file")
	if err != nil {
		return err
	}
	if err := s.Store.OTCProof(c.ctx, c.view(), id, file); err != nil {
		return hideAbsence(err)
	}
	return s.sendFile(c, c.view(), file, "token")
}
