package api

import (
	"net/http"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/google/uuid"

	"kivuko/exchange"
)

// proven refuses a caller who has not proven what an action needs. The session is read again first, because another process
// may have taken the proof.
func (s *server) proven(c *call, needs exchange.Needs) error {
	if needs.Met(c.who, s.now()) {
		return nil
	}
	state, err := s.Store.AuthState(c.ctx, c.who.UserID, c.who.SessionID)
	if err != nil {
		return err
	}
	c.who.Assurance, c.who.SteppedUpAt, c.who.SteppedUpBy = state.Assurance, state.SteppedUpAt, state.SteppedUpBy
	if needs.Met(c.who, s.now()) {
		s.sessions.forget(c.who.UserID)
		return nil
	}
	by := map[exchange.Assurance]string{exchange.AssurancePIN: "PIN or password", exchange.AssurancePassword: "password", exchange.AssurancePasskey: "passkey"}
	return exchange.Errorf(exchange.CodeStepUpRequired, "Prove yourself by your %s: POST /api/v1/auth/step-up, then repeat the request.", by[needs.Least])
}

// steppedUp refuses a caller who did not prove itself lately by the strongest that the account has. It stands before what
// gives the account away: another address to reset the password by, or the end of a passkey. A PIN is too weak.
func (s *server) steppedUp(c *call) error {
	all, err := s.Store.Passkeys(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	needs := exchange.Needs{Least: exchange.AssurancePassword, StepUp: true}
	if len(all) > 0 || c.who.Role.Staff() {
		needs.Least = exchange.AssurancePasskey
	}
	return s.proven(c, needs)
}

// wireStepUp is a session after its user proved itself again.
type wireStepUp struct {
	SessionID   uuid.UUID          `json:"session_id"`
	Assurance   exchange.Assurance `json:"assurance"`
	SteppedUpAt timestamp          `json:"stepped_up_at"`
	ValidUntil  timestamp          `json:"valid_until"`
}

// stepUpOptions returns what a passkey of the caller's is asked to sign.
func (s *server) stepUpOptions(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	h, err := s.holderOf(c, c.user)
	if err != nil {
		return err
	}
	if len(h.passkeys) == 0 {
		return exchange.Errorf(exchange.CodeStateConflict, "The account has no passkey. Add one: POST /api/v1/auth/passkeys/options.")
	}
	options, terms, err := s.passkeys.BeginLogin(h)
	if err != nil {
		return err
	}
	wire, err := s.challenge(c, exchange.ChallengeStepUp, c.who.UserID, c.who.SessionID, options.Response, terms)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, wire)
}

// stepUp takes a proof of the caller in its session: a PIN, a password, or a passkey's answer to a challenge.
func (s *server) stepUp(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	pin, password := f.secret("pin", false), f.secret("password", false)
	challenge, raw := f.id("challenge_id", f.has("credential")), f.credential("credential", f.has("challenge_id"))
	given := 0
	for _, name := range []string{"pin", "password", "credential"} {
		if f.has(name) {
			given++
		}
	}
	if given != 1 {
		*f.bad = append(*f.bad, exchange.FieldError{Pointer: "", Code: "required", Message: "must have exactly one of pin, password and credential"})
	}
	if err := f.done(); err != nil {
		return err
	}
	switch {
	case raw != nil:
		err = s.stepUpByPasskey(c, challenge, raw)
	case f.has("pin"):
		if err = s.confirmPIN(c, pin); err == nil {
			err = s.Store.StepUp(c.ctx, exchange.AssurancePIN, uuid.Nil, c.who)
		}
	default:
		if err = s.confirmPassword(c, "password", password); err == nil {
			err = s.Store.StepUp(c.ctx, exchange.AssurancePassword, uuid.Nil, c.who)
		}
	}
	s.sessions.forget(c.who.UserID)
	if err != nil {
		return err
	}
	state, err := s.Store.AuthState(c.ctx, c.who.UserID, c.who.SessionID)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, wireStepUp{c.who.SessionID, state.Assurance, stamp(state.SteppedUpAt), stamp(state.SteppedUpAt.Add(exchange.StepUpLife))})
}

// stepUpByPasskey verifies a passkey's answer. The library checks the challenge, the origin, the host, the signature, and
// that the authenticator verified its user; the store compares the counter.
func (s *server) stepUpByPasskey(c *call, challenge uuid.UUID, raw []byte) error {
	terms, err := s.answered(c, challenge, exchange.ChallengeStepUp, c.who.UserID, c.who.SessionID)
	if err != nil {
		return err
	}
	h, err := s.holderOf(c, c.user)
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(raw)
	if err != nil {
		return s.wrongPasskey(c, err)
	}
	used, err := s.passkeys.ValidateLogin(h, terms, parsed)
	if err != nil {
		return s.wrongPasskey(c, err)
	}
	for _, p := range h.passkeys {
		if string(p.CredentialID) == string(used.ID) {
			p.SignCount, p.Synced = int64(parsed.Response.AuthenticatorData.Counter), used.Flags.BackupState
			return s.Store.UsePasskey(c.ctx, p, c.who, s.letters(c.user, clonedNotice(s.now()), p.ID.String())...)
		}
	}
	return exchange.Errorf(exchange.CodeInternal, "a verified passkey is none of its user's")
}

func passkeyNotice(at time.Time) letter {
	return letter{"passkey.added", "New passkey", "A passkey was added to your Kivuko account at " + minute(at) + ". If that was not you, tell us at once.", noticeLife}
}

func passkeyGoneNotice(at time.Time) letter {
	return letter{"passkey.removed", "Passkey removed", "A passkey of your Kivuko account was removed at " + minute(at) + ". If that was not you, tell us at once.", noticeLife}
}

func clonedNotice(at time.Time) letter {
	return letter{"passkey.cloned", "Passkey copied", "At " + minute(at) + " a copy of your passkey was used. It was removed and all your sessions ended. Tell us at once.", noticeLife}
}
