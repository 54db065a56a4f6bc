package client

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/descope/virtualwebauthn"
)

// passkey is an authenticator in software. Its key follows from the account, so that each run of a local stack has the one
// that an earlier run enrolled. It is one that a service keeps: it has no counter.
type passkey struct {
	party virtualwebauthn.RelyingParty
	auth  virtualwebauthn.Authenticator
	cred  virtualwebauthn.Credential
}

// newPasskey makes the passkey of an account at the service of an address. On the local stack, passkeys belong to localhost.
func newPasskey(base, email string) (*passkey, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	seed := sha256.Sum256([]byte("kivuko development passkey " + email))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	// The library leaves out leading zeros of a key's point, which no real authenticator does. Then the next key is taken.
	for err == nil && min(key.X.BitLen(), key.Y.BitLen()) <= elliptic.P256().Params().BitSize-8 {
		seed = sha256.Sum256(seed[:])
		key, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	}
	if err != nil {
		return nil, fmt.Errorf("the passkey of %s: %w", email, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	p := &passkey{
		party: virtualwebauthn.RelyingParty{Name: "Kivuko", ID: "localhost", Origin: u.Scheme + "://localhost:" + u.Port()},
		auth:  virtualwebauthn.NewAuthenticatorWithOptions(virtualwebauthn.AuthenticatorOptions{BackupEligible: true, BackupState: true}),
		cred:  virtualwebauthn.NewCredentialWithImportedKey(virtualwebauthn.KeyTypeEC2, der),
	}
	id := sha256.Sum256(seed[:])
	p.cred.ID, p.auth.Aaguid = id[:], [16]byte{}
	return p, nil
}

// challenge is what the service asks an authenticator for.
type challenge struct {
	ID      string          `json:"challenge_id"`
	Options json.RawMessage `json:"options"`
}

// enrol answers a challenge with a new key.
func (p *passkey) enrol(c challenge) (json.RawMessage, error) {
	options, err := virtualwebauthn.ParseAttestationOptions(string(c.Options))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(virtualwebauthn.CreateAttestationResponse(p.party, p.auth, p.cred, *options)), nil
}

// prove answers a challenge with a signature.
func (p *passkey) prove(c challenge) (json.RawMessage, error) {
	options, err := virtualwebauthn.ParseAssertionOptions(string(c.Options))
	if err != nil {
		return nil, err
	}
	return json.RawMessage(virtualwebauthn.CreateAssertionResponse(p.party, p.auth, p.cred, *options)), nil
}

// proveSince proves the caller again, unless another call of the same login did after a moment.
func (c *Client) proveSince(ctx context.Context, moment time.Time) error {
	c.proof.mu.Lock()
	defer c.proof.mu.Unlock()
	if c.proof.at.After(moment) {
		return nil
	}
	err := c.prove(ctx)
	if err == nil {
		c.proof.at = time.Now()
	}
	return err
}

// prove proves the caller again: by its password, and staff by a passkey, which it adds if the account has none.
func (c *Client) prove(ctx context.Context) error {
	const auth = "/api/v1/auth/"
	if !c.staff {
		return c.Do(ctx, "POST", auth+"step-up", "", map[string]any{"password": c.password}, nil)
	}
	p, err := newPasskey(c.base, c.email)
	if err != nil {
		return err
	}
	var asked challenge
	err = c.Do(ctx, "POST", auth+"step-up/options", "", nil, &asked)
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Code == "state_conflict" {
		if err = c.addPasskey(ctx, p); err == nil {
			err = c.Do(ctx, "POST", auth+"step-up/options", "", nil, &asked)
		}
	}
	if err != nil {
		return err
	}
	credential, err := p.prove(asked)
	if err != nil {
		return err
	}
	return c.Do(ctx, "POST", auth+"step-up", "", map[string]any{"challenge_id": asked.ID, "credential": credential}, nil)
}

func (c *Client) addPasskey(ctx context.Context, p *passkey) error {
	var asked challenge
	if err := c.Do(ctx, "POST", "/api/v1/auth/passkeys/options", "", nil, &asked); err != nil {
		return err
	}
	credential, err := p.enrol(asked)
	if err != nil {
		return err
	}
	in := map[string]any{"challenge_id": asked.ID, "name": "software", "credential": credential}
	return c.Do(ctx, "POST", "/api/v1/auth/passkeys", "", in, nil)
}

// Accept accepts an invitation with a password, and for staff with a passkey.
func (c *Client) Accept(ctx context.Context, token, password string) error {
	var opened struct {
		challenge
		Email           string `json:"email"`
		PasskeyRequired bool   `json:"passkey_required"`
	}
	if err := c.Do(ctx, "POST", "/api/v1/users/invitations/open", "", map[string]any{"token": token}, &opened); err != nil {
		return err
	}
	in := map[string]any{"token": token, "password": password}
	if opened.PasskeyRequired {
		p, err := newPasskey(c.base, opened.Email)
		if err != nil {
			return err
		}
		if in["credential"], err = p.enrol(opened.challenge); err != nil {
			return err
		}
		in["challenge_id"], in["passkey_name"] = opened.ID, "software"
	}
	return c.Do(ctx, "POST", "/api/v1/users/invitations/accept", "", in, nil)
}
