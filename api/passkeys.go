package api

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/google/uuid"

	"kivuko/exchange"
)

// newRelyingParty is this service as authenticators know it: the host of the public address. Passkeys work on its own pages
// and on those of our other origins that are of this host.
func newRelyingParty(c Config) (*webauthn.WebAuthn, error) {
	public, err := url.Parse(c.PublicURL)
	if err != nil || public.Hostname() == "" {
		return nil, fmt.Errorf("public address: %q has no host", c.PublicURL)
	}
	origins := []string{public.Scheme + "://" + public.Host}
	for _, o := range append([]string{c.WebUI}, c.Origins...) {
		if TakesPasskeys(o, c.PublicURL) && !slices.Contains(origins, o) {
			origins = append(origins, o)
		}
	}
	return webauthn.New(&webauthn.Config{
		RPID: public.Hostname(), RPDisplayName: "Kivuko", RPOrigins: origins,
		AuthenticatorSelection: protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementPreferred, UserVerification: protocol.VerificationRequired,
		},
		AttestationPreference: protocol.PreferNoAttestation,
	})
}

// TakesPasskeys reports whether passkeys of this service work on an origin's pages: its host is that of the public address, or
// below it. Browsers allow no others.
func TakesPasskeys(origin, publicURL string) bool {
	o, originErr := url.Parse(origin)
	public, publicErr := url.Parse(publicURL)
	if originErr != nil || publicErr != nil || public.Hostname() == "" {
		return false
	}
	return o.Hostname() == public.Hostname() || strings.HasSuffix(o.Hostname(), "."+public.Hostname())
}

// holder is a user as the library knows one.
type holder struct {
	user     exchange.User
	passkeys []exchange.Passkey
}

func (h holder) WebAuthnID() []byte          { return h.user.ID[:] }
func (h holder) WebAuthnName() string        { return h.user.Email }
func (h holder) WebAuthnDisplayName() string { return h.user.FirstName + " " + h.user.LastName }

func (h holder) WebAuthnCredentials() []webauthn.Credential {
	return each(h.passkeys, func(p exchange.Passkey) webauthn.Credential {
		return webauthn.Credential{
			ID: p.CredentialID, PublicKey: p.PublicKey,
			Transport: each(p.Transports, func(t string) protocol.AuthenticatorTransport { return protocol.AuthenticatorTransport(t) }),
			Flags:     webauthn.CredentialFlags{UserPresent: true, UserVerified: true, BackupEligible: p.Syncable, BackupState: p.Synced},
			Authenticator: webauthn.Authenticator{
				AAGUID: p.AAGUID, SignCount: uint32(p.SignCount), //nolint:gosec // it came as one
			},
		}
	})
}

func (s *server) holderOf(c *call, u exchange.User) (holder, error) {
	all, err := s.Store.Passkeys(c.ctx, u.ID)
	return holder{u, all}, err
}

// wireChallenge is what an authenticator is asked to sign. Options are for navigator.credentials, as
// PublicKeyCredential.parse…OptionsFromJSON read them.
type wireChallenge struct {
	ID        uuid.UUID `json:"challenge_id"`
	ExpiresAt timestamp `json:"expires_at"`
	Options   any       `json:"options"`
}

// challenge stores a challenge and answers with it.
func (s *server) challenge(c *call, purpose exchange.ChallengePurpose, user, session uuid.UUID, options any, terms *webauthn.SessionData) (wireChallenge, error) {
	raw, err := json.Marshal(terms)
	if err != nil {
		return wireChallenge{}, err
	}
	ch := exchange.Challenge{ID: newID(), Purpose: purpose, UserID: user, SessionID: session, Terms: raw}
	err = s.Store.AddChallenge(c.ctx, ch)
	return wireChallenge{ch.ID, stamp(s.now().Add(exchange.ChallengeLife)), options}, err
}

// answered uses up a challenge, whatever the answer is worth.
func (s *server) answered(c *call, id uuid.UUID, purpose exchange.ChallengePurpose, user, session uuid.UUID) (webauthn.SessionData, error) {
	var terms webauthn.SessionData
	ch, err := s.Store.TakeChallenge(c.ctx, id, purpose, user, session)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return terms, exchange.Invalid(exchange.FieldError{Pointer: "/challenge_id", Code: "not_found", Message: "is no open challenge of this session; ask for another one"})
	}
	if err != nil {
		return terms, err
	}
	return terms, json.Unmarshal(ch.Terms, &terms)
}

// credential reads the answer of an authenticator as JSON, which the library parses.
func (f *form) credential(name string, required bool) []byte {
	v, ok := f.take(name, required)
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		f.fail(name, "type", "must be an object")
		return nil
	}
	raw, err := json.Marshal(values)
	if err != nil {
		f.fail(name, "type", "must be an object")
	}
	return raw
}

// wrongPasskey is the refusal of an authenticator's answer. What exactly is wrong is for the log.
func (s *server) wrongPasskey(c *call, err error) error {
	s.log.Info("an authenticator's answer was refused", "request_id", c.who.RequestID, "error", err)
	return exchange.Invalid(exchange.FieldError{Pointer: "/credential", Code: "wrong", Message: "is not the answer of a passkey of this account to this challenge"})
}

// beginEnrolment returns what an authenticator is asked to make a key pair for.
func (s *server) beginEnrolment(h holder) (*protocol.CredentialCreation, *webauthn.SessionData, error) {
	known := webauthn.Credentials(h.WebAuthnCredentials()).CredentialDescriptors()
	return s.passkeys.BeginRegistration(h, webauthn.WithExclusions(known))
}

// finishEnrolment verifies an authenticator's new key.
func (s *server) finishEnrolment(c *call, h holder, terms webauthn.SessionData, raw []byte, name string) (exchange.Passkey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(raw)
	if err != nil {
		return exchange.Passkey{}, s.wrongPasskey(c, err)
	}
	made, err := s.passkeys.CreateCredential(h, terms, parsed)
	if err != nil {
		return exchange.Passkey{}, s.wrongPasskey(c, err)
	}
	aaguid := made.Authenticator.AAGUID
	if len(aaguid) == 0 {
		aaguid = make([]byte, 16)
	}
	return exchange.Passkey{
		ID: newID(), UserID: h.user.ID, CredentialID: made.ID, PublicKey: made.PublicKey, AAGUID: aaguid, Transports: names(made.Transport),
		Syncable: made.Flags.BackupEligible, Synced: made.Flags.BackupState, Name: name, SignCount: int64(made.Authenticator.SignCount),
	}, nil
}

// passkeyOptions begins the enrolment of a passkey. It takes a proof of what the account has already: a passkey, or the
// password when there is none.
func (s *server) passkeyOptions(c *call) error {
	if err := c.noBody(); err != nil {
		return err
	}
	h, err := s.holderOf(c, c.user)
	if err != nil {
		return err
	}
	if err := s.mayEnrol(c, h); err != nil {
		return err
	}
	options, terms, err := s.beginEnrolment(h)
	if err != nil {
		return err
	}
	wire, err := s.challenge(c, exchange.ChallengeEnrol, c.who.UserID, c.who.SessionID, options.Response, terms)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, wire)
}

// mayEnrol refuses a passkey to who did not prove itself lately by the strongest that the account has. A PIN is too weak, and
// so is the password of staff who lost their passkeys.
func (s *server) mayEnrol(c *call, h holder) error {
	least := exchange.AssurancePassword
	if len(h.passkeys) > 0 {
		least = exchange.AssurancePasskey
	}
	if !(exchange.Needs{Least: least, StepUp: true}).Met(c.who, s.now()) {
		return exchange.Errorf(exchange.CodeStepUpRequired, "Prove yourself by your %s first: POST /api/v1/auth/step-up.", least)
	}
	return s.Store.MayAddPasskey(c.ctx, c.who)
}

// wirePasskey is a passkey as its user sees it.
type wirePasskey struct {
	ID        uuid.UUID  `json:"id"`
	Name      string     `json:"name"`
	AAGUID    string     `json:"aaguid"`
	Syncable  bool       `json:"syncable"`
	CreatedAt timestamp  `json:"created_at"`
	UsedAt    *timestamp `json:"used_at"`
}

func passkeyWire(p exchange.Passkey) wirePasskey {
	return wirePasskey{p.ID, p.Name, hex.EncodeToString(p.AAGUID), p.Syncable, stamp(p.CreatedAt), optTime(p.UsedAt)}
}

// addPasskey ends the enrolment of a passkey.
func (s *server) addPasskey(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	id, name, raw := f.id("challenge_id", true), f.line("name", true, exchange.MaxPasskeyName), f.credential("credential", true)
	if err := f.done(); err != nil {
		return err
	}
	h, err := s.holderOf(c, c.user)
	if err != nil {
		return err
	}
	if err := s.mayEnrol(c, h); err != nil {
		return err
	}
	terms, err := s.answered(c, id, exchange.ChallengeEnrol, c.who.UserID, c.who.SessionID)
	if err != nil {
		return err
	}
	made, err := s.finishEnrolment(c, h, terms, raw, name)
	if err != nil {
		return err
	}
	if err := s.Store.AddPasskey(c.ctx, made, c.who, s.letters(c.user, passkeyNotice(s.now()), made.ID.String())...); err != nil {
		return err
	}
	made.CreatedAt = s.now()
	return c.json(http.StatusCreated, passkeyWire(made))
}

func (s *server) listPasskeys(c *call) error {
	all, err := s.Store.Passkeys(c.ctx, c.who.UserID)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"passkeys": each(all, passkeyWire)})
}

func (s *server) deletePasskey(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if err := s.steppedUp(c); err != nil {
		return err
	}
	if err := s.Store.RemovePasskey(c.ctx, id, c.who, s.letters(c.user, passkeyGoneNotice(s.now()), id.String())...); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}
