package api

import (
	"github.com/google/uuid"

	"kivuko/exchange"
)

// wireOtherDeposit is crypto of another amount than a sale asks for, about which its seller may decide.
type wireOtherDeposit struct {
	CryptoAmount string `json:"crypto_amount"`
	TxHash       string `json:"tx_hash"`
	FiatAmount   string `json:"fiat_amount"`
	Digest       string `json:"digest"`
}

// otherDepositWire is nil while no other amount waits for the seller's word.
func otherDepositWire(o exchange.Order) *wireOtherDeposit {
	if !o.AsksTheSeller() {
		return nil
	}
	return &wireOtherDeposit{CryptoAmount: o.Other.Amount.String(), TxHash: o.Other.TxID, FiatAmount: o.OtherPrice().Fiat.String(), Digest: o.OtherDigest()}
}

// decideDeposit sends a sale's flow the seller's word about crypto of another amount, by an intent of a kind. The digest says
// what the seller saw: how much came, and how many shillings it brings. Whether that is still so is for the flow to say.
func (s *server) decideDeposit(kind exchange.IntentKind) func(*call) error {
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		digest := f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		o, err := s.visible(c)
		if err != nil {
			return err
		}
		if o.OffRamp() && !o.OwnedBy(c.who) {
			return exchange.Errorf(exchange.CodeForbidden, "Only the seller decides about crypto of another amount.")
		}
		if o.Other.ID == uuid.Nil {
			return exchange.Errorf(exchange.CodeStateConflict, "No crypto of another amount came for the order.")
		}
		send := s.Flows.AcceptOther
		if kind == exchange.IntendSaleReturn {
			send = s.Flows.ReturnOther
		}
		word := exchange.DepositWord{DepositID: o.Other.ID, Digest: digest}
		err = s.ask(c, kind, o.ID, word.Terms(), func(intent uuid.UUID) error { return send(c.ctx, o.ID, intent) })
		if err != nil {
			return s.ended(c, o, err)
		}
		return s.answerOrder(c, o.ID)
	}
}
