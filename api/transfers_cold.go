package api

import (
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// handOutTransfer answers with the unsigned transaction of a cold wallet's transfer.
func (s *server) handOutTransfer(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	t, err := s.sent(c)
	if err != nil {
		return err
	}
	if err := onlyCold(t); err != nil {
		return err
	}
	err = s.ask(c, exchange.IntendColdPayload, t.ID, nil, func(intent uuid.UUID) error { return s.Flows.HandOutTransfer(c.ctx, t.ID, intent) })
	if err != nil {
		return s.endedTransfer(c, t.ID, err)
	}
	p, err := s.Store.ChainPaymentOf(c.ctx, exchange.ForTransfer, t.ID)
	if err != nil {
		return err
	}
	drafts, err := s.Store.ColdDrafts(c.ctx, p.ID)
	if err != nil {
		return err
	}
	if len(drafts) == 0 || drafts[0].Status != exchange.ColdOpen {
		return exchange.Errorf(exchange.CodeStateConflict, "The signed transaction was imported already; there is nothing to sign now.")
	}
	key, sealed, err := s.Store.ColdKey(c.ctx, p.WalletID)
	if err != nil {
		return err
	}
	w := coldWire(t, p, drafts[0])
	if sealed {
		w.SealedKey = &wireSealed{hex.EncodeToString(key.Ciphertext), key.MasterKey, hex.EncodeToString(key.PublicKey), key.Algorithm}
	}
	return c.json(http.StatusOK, w)
}

// importTransfer sends the signed bytes to the transfer's flow, which has them verified.
func (s *server) importTransfer(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	text := f.line("signed_transaction", true, 2*exchange.MaxColdBytes+2)
	raw, bad := hex.DecodeString(strings.TrimPrefix(text, "0x"))
	if text != "" && (bad != nil || len(raw) == 0) {
		f.fail("signed_transaction", "hex", "must be pairs of hexadecimal digits")
	}
	if err := f.done(); err != nil {
		return err
	}
	t, err := s.sent(c)
	if err != nil {
		return err
	}
	if err := onlyCold(t); err != nil {
		return err
	}
	terms := exchange.SignedOffline{Raw: raw}.Terms()
	err = s.ask(c, exchange.IntendColdImport, t.ID, terms, func(intent uuid.UUID) error { return s.Flows.ImportTransfer(c.ctx, t.ID, intent) })
	if err != nil {
		return s.endedTransfer(c, t.ID, err)
	}
	return s.answerTransfer(c, t.ID)
}

func onlyCold(t exchange.Transfer) error {
	if t.WalletType != exchange.Cold {
		return exchange.Errorf(exchange.CodeStateConflict, "The sending wallet is not a cold wallet; the service signs its transfers.")
	}
	return nil
}

// wireCold is the payload for the cold machine.
type wireCold struct {
	DraftID    uuid.UUID   `json:"draft_id"`
	TransferID uuid.UUID   `json:"transfer_id"`
	PaymentID  uuid.UUID   `json:"payment_id"`
	WalletID   uuid.UUID   `json:"wallet_id"`
	Network    string      `json:"network"`
	Asset      string      `json:"asset"`
	Amount     string      `json:"amount"`
	From       string      `json:"from_address"`
	To         string      `json:"to_address"`
	FeeAsset   string      `json:"fee_asset"`
	FeePayer   string      `json:"fee_payer"`
	FeeLimit   string      `json:"fee_limit"`
	Nonce      uint64      `json:"nonce"`
	BidTip     *string     `json:"bid_tip"`
	BidCap     *string     `json:"bid_cap"`
	RefBlock   string      `json:"ref_block"`
	NonceAcct  string      `json:"nonce_account"`
	NonceBlock uint64      `json:"nonce_block"`
	Body       string      `json:"body"`
	Payload    string      `json:"payload"`
	ExpiresAt  *timestamp  `json:"expires_at"`
	ClosesAt   timestamp   `json:"closes_at"`
	SealedKey  *wireSealed `json:"sealed_key"`
}

type wireSealed struct {
	Ciphertext string `json:"ciphertext"`
	MasterKey  string `json:"master_key"`
	PublicKey  string `json:"public_key"`
	Algorithm  string `json:"algorithm"`
}

func coldWire(t exchange.Transfer, p exchange.ChainPayment, d exchange.ColdDraft) wireCold {
	w := wireCold{
		DraftID: d.ID, TransferID: t.ID, PaymentID: p.ID, WalletID: p.WalletID, Network: string(p.Network), Asset: string(p.Amount.Asset()),
		Amount: p.Amount.String(), From: p.FromAddress, To: p.ToAddress, FeeAsset: string(d.FeeLimit.Asset()), FeeLimit: d.FeeLimit.String(),
		FeePayer: p.FeePayer, Nonce: d.Nonce, RefBlock: d.RefBlock, NonceAcct: d.NonceAccount, NonceBlock: d.NonceBlock, Body: hex.EncodeToString(d.Body), Payload: hex.EncodeToString(d.Payload),
		ExpiresAt: optTime(d.ExpiresAt), ClosesAt: stamp(d.ClosesAt),
	}
	if !d.Bid.IsZero() {
		tip, most := d.Bid.Tip.String(), d.Bid.Cap.String()
		w.BidTip, w.BidCap = &tip, &most
	}
	return w
}
