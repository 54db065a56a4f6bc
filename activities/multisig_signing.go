package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// OwnerSigner signs a payload with the key of one owner, and stores the signature before it returns it. keys.PaymentSigner implements it.
type OwnerSigner interface {
	SignPayload(ctx context.Context, payloadID uuid.UUID, owner string) (exchange.MultisigSignature, error)
}

// OwnerSigningStore is the database interface of signatures of owners.
type OwnerSigningStore interface {
	Payload(ctx context.Context, id uuid.UUID) (exchange.MultisigPayload, error)
	SigningHold(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error)
}

// MultisigSigning signs payloads with the keys of owners that our key store has. It is registered on signer queues only.
type MultisigSigning struct {
	Signer OwnerSigner
	Store  OwnerSigningStore
	// Recipients looks the recipient up in the deny list once more.
	Recipients *Recipients
}

// SignPayloadInput names a payload and the owner who confirmed it.
type SignPayloadInput struct {
	PayloadID uuid.UUID `json:"payload_id"`
	Owner     string    `json:"owner"`
}

// SignPayload signs a payload with the key of the officer who confirmed it. Called again it returns the same signature. Nothing is signed
// while payments are frozen, the deposit watch is behind, or money left the wallet unaccounted.
func (m *MultisigSigning) SignPayload(ctx context.Context, in SignPayloadInput) (OwnerSigned, error) {
	out, err := m.sign(ctx, in)
	return out, coldFailure(ctx, err)
}

func (m *MultisigSigning) sign(ctx context.Context, in SignPayloadInput) (OwnerSigned, error) {
	payload, err := m.Store.Payload(ctx, in.PayloadID)
	if err != nil {
		return OwnerSigned{}, err
	}
	hold, err := m.Store.SigningHold(ctx, payload.PaymentID)
	switch {
	case err != nil:
		return OwnerSigned{}, err
	case hold.Passes():
		return OwnerSigned{Waits: string(hold)}, nil
	case hold != exchange.HoldNone:
		return OwnerSigned{}, exchange.Errorf(exchange.CodeStateConflict, "Nothing may be signed for the payment (%s).", hold)
	}
	if err := m.allowed(ctx, payload.PaymentID); err != nil {
		return OwnerSigned{}, err
	}
	s, err := m.Signer.SignPayload(ctx, in.PayloadID, in.Owner)
	return OwnerSigned{PayloadID: s.PayloadID, Owner: s.Owner}, err
}

// ClearedRecipient is whether the recipient of a proposal is cleared: Obstacle is one of the codes with which payments are parked.
type ClearedRecipient struct {
	Obstacle string `json:"obstacle,omitempty"`
}

// ClearRecipient screens the recipient of a proposal's payment, before anything is prepared that owners could sign. One that is cleared is
// not screened again.
func (m *MultisigSigning) ClearRecipient(ctx context.Context, in SignInput) (ClearedRecipient, error) {
	if m.Recipients == nil {
		return ClearedRecipient{}, nil // the database refuses what is not cleared
	}
	obstacle, err := m.Recipients.obstacle(ctx, in.PaymentID)
	return ClearedRecipient{obstacle}, Failure(ctx, err)
}

// allowed refuses a payload whose recipient is on the deny list by now.
func (m *MultisigSigning) allowed(ctx context.Context, paymentID uuid.UUID) error {
	return (&Signing{Recipients: m.Recipients}).allowed(ctx, paymentID)
}
