package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"aidanwoods.dev/go-paseto"
	"github.com/google/uuid"
	"github.com/maypok86/otter/v2"
)

// Key is a secret with an id. The id is stored or sent beside what the secret protects, and reveals nothing about it.
type Key struct {
	ID     string
	Secret [32]byte
}

// String hides the secret.
func (k Key) String() string { return "key " + k.ID }

// GoString hides the secret from %#v too.
func (k Key) GoString() string { return k.String() }

// clockSkew is the tolerated difference between the clocks of two API processes.
const clockSkew = 5 * time.Second

// keyring creates and verifies tokens. Both kinds are PASETO v4.local, which only the service can read. The implicit
// assertion has the kind of the token, so that one kind is never accepted as the other.
type keyring struct {
	issuer string
	signer string
	keys   map[string]paseto.V4SymmetricKey
	proven *otter.Cache[string, provenToken]
}

func newKeyring(issuer string, keys []Key) (*keyring, error) {
	proven, err := otter.New(&otter.Options[string, provenToken]{MaximumSize: maxProvenTokens})
	if err != nil {
		return nil, err
	}
	r := &keyring{issuer: issuer, signer: keys[0].ID, keys: map[string]paseto.V4SymmetricKey{}, proven: proven}
	for _, k := range keys {
		key, err := paseto.V4SymmetricKeyFromBytes(k.Secret[:])
		if err != nil {
			return nil, fmt.Errorf("token key %q: %w", k.ID, err)
		}
		r.keys[k.ID] = key
	}
	return r, nil
}

const tokenAudience = "kivuko-api"

func (r *keyring) assertion(kind string) []byte {
	return []byte("kivuko|v1|" + kind + "|" + r.issuer + "|" + tokenAudience)
}

// provenToken is the content of a verified token. It does not change, so the token is verified only once. Whether its
// session is still live is checked each time.
type provenToken struct {
	claims  claims
	from    time.Time
	expires time.Time
}

// maxProvenTokens bounds the cache of verified tokens. Above it, the least used ones are evicted.
const maxProvenTokens = 10_000

func (r *keyring) known(text string, now time.Time) (claims, bool) {
	t, ok := r.proven.GetIfPresent(text)
	return t.claims, ok && now.Before(t.expires) && !t.from.After(now.Add(clockSkew))
}

// claims is the content of an access token.
type claims struct {
	UserID      uuid.UUID
	SessionID   uuid.UUID
	AuthVersion int64
}

// footer is the unencrypted part of a token.
type footer struct {
	KeyID string `json:"kid"`
}

func (r *keyring) token(kind string, now, expires time.Time, id string) (*paseto.Token, error) {
	foot, err := json.Marshal(footer{r.signer})
	if err != nil {
		return nil, err
	}
	t := paseto.NewToken()
	t.SetIssuer(r.issuer)
	t.SetAudience(tokenAudience)
	t.SetString("typ", kind)
	t.SetJti(id)
	t.SetIssuedAt(now)
	t.SetNotBefore(now)
	t.SetExpiration(expires)
	t.SetFooter(foot)
	return &t, nil
}

// access creates an access token.
func (r *keyring) access(c claims, now time.Time) (string, time.Time, error) {
	expires := now.Add(AccessTokenLife)
	t, err := r.token("access", now, expires, uuid.NewString())
	if err != nil {
		return "", time.Time{}, err
	}
	t.SetSubject(c.UserID.String())
	t.SetString("sid", c.SessionID.String())
	if err := t.Set("ver", c.AuthVersion); err != nil {
		return "", time.Time{}, err
	}
	return t.V4Encrypt(r.keys[r.signer], r.assertion("access")), expires, nil
}

var errToken = errors.New("not a token of ours")

// open verifies an access token and returns its claims.
func (r *keyring) open(text string, now time.Time) (claims, error) {
	if len(text) > maxBearerLength {
		return claims{}, errToken
	}
	if c, ok := r.known(text, now); ok {
		return c, nil
	}
	t, err := r.decrypt("access", text)
	if err != nil {
		return claims{}, err
	}
	proven, err := readClaims(t, now)
	if err != nil {
		return claims{}, err
	}
	if err := t.Get("ver", &proven.claims.AuthVersion); err != nil {
		return claims{}, errToken
	}
	r.proven.Set(text, proven)
	return proven.claims, nil
}

// decrypt opens a token of a kind. The footer is untrusted until then, so its length is checked before it is parsed, and
// it only selects the key.
func (r *keyring) decrypt(kind, text string) (*paseto.Token, error) {
	p := paseto.NewParserWithoutExpiryCheck()
	p.AddRule(paseto.IssuedBy(r.issuer), paseto.ForAudience(tokenAudience))
	raw, err := p.UnsafeParseFooter(paseto.V4Local, text)
	if err != nil || len(raw) > maxFooterLength {
		return nil, errToken
	}
	var foot footer
	if err := json.Unmarshal(raw, &foot); err != nil {
		return nil, errToken
	}
	key, known := r.keys[foot.KeyID]
	if !known {
		return nil, errToken
	}
	t, err := p.ParseV4Local(key, text, r.assertion(kind))
	if err != nil {
		return nil, errToken
	}
	return t, nil
}

// readClaims reads the user and the session of a token, and refuses one outside its time.
func readClaims(t *paseto.Token, now time.Time) (provenToken, error) {
	expires, err1 := t.GetExpiration()
	from, err2 := t.GetNotBefore()
	issued, err3 := t.GetIssuedAt()
	subject, err4 := t.GetSubject()
	session, err5 := t.GetString("sid")
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return provenToken{}, errToken
	}
	if issued.After(from) {
		from = issued
	}
	if !now.Before(expires) || from.After(now.Add(clockSkew)) {
		return provenToken{}, errToken
	}
	user, ok1 := parseID(subject)
	sid, ok2 := parseID(session)
	if !ok1 || !ok2 {
		return provenToken{}, errToken
	}
	return provenToken{claims{UserID: user, SessionID: sid}, from, expires}, nil
}

const refreshBytes = 32

// refresh creates a refresh token of a session: a PASETO with 256 random bits, the user and the session. The store has
// its SHA-256.
func (r *keyring) refresh(user, session uuid.UUID, now, expires time.Time) (string, [32]byte, error) {
	random := make([]byte, refreshBytes)
	if _, err := rand.Read(random); err != nil {
		return "", [32]byte{}, err
	}
	t, err := r.token("refresh", now, expires, base64.RawURLEncoding.EncodeToString(random))
	if err != nil {
		return "", [32]byte{}, err
	}
	t.SetSubject(user.String())
	t.SetString("sid", session.String())
	text := t.V4Encrypt(r.keys[r.signer], r.assertion("refresh"))
	return text, sha256.Sum256([]byte(text)), nil
}

// openRefresh verifies a refresh token and returns its user and session. So the store is asked only about tokens that
// this service made, and only for the session that each was made for: a row with the hash of a chosen text, written by
// somebody with access to the database, is no session.
func (r *keyring) openRefresh(text string, now time.Time) (claims, error) {
	t, err := r.decrypt("refresh", text)
	if err != nil {
		return claims{}, err
	}
	proven, err := readClaims(t, now)
	return proven.claims, err
}

// device creates the token by which a device is known at the next login. It opens nothing by itself.
func (r *keyring) device(user, device uuid.UUID, now time.Time) (string, error) {
	t, err := r.token("device", now, now.Add(DeviceTokenLife), uuid.NewString())
	if err != nil {
		return "", err
	}
	t.SetSubject(user.String())
	t.SetString("sid", device.String())
	return t.V4Encrypt(r.keys[r.signer], r.assertion("device")), nil
}

// openDevice verifies a device token and returns its user and, as SessionID, its device.
func (r *keyring) openDevice(text string, now time.Time) (claims, error) {
	t, err := r.decrypt("device", text)
	if err != nil {
		return claims{}, err
	}
	proven, err := readClaims(t, now)
	return proven.claims, err
}

// fileLink creates the token of a link to one file, in the name of a user and its session.
func (r *keyring) fileLink(c claims, file uuid.UUID, now, expires time.Time) (string, error) {
	t, err := r.token("file-link", now, expires, uuid.NewString())
	if err != nil {
		return "", err
	}
	t.SetSubject(c.UserID.String())
	t.SetString("sid", c.SessionID.String())
	t.SetString("file", file.String())
	if err := t.Set("ver", c.AuthVersion); err != nil {
		return "", err
	}
	return t.V4Encrypt(r.keys[r.signer], r.assertion("file-link")), nil
}

// openFileLink verifies the token of a link, and returns who made it and the file.
func (r *keyring) openFileLink(text string, now time.Time) (claims, uuid.UUID, error) {
	if len(text) > maxBearerLength {
		return claims{}, uuid.Nil, errToken
	}
	t, err := r.decrypt("file-link", text)
	if err != nil {
		return claims{}, uuid.Nil, err
	}
	proven, err := readClaims(t, now)
	if err != nil {
		return claims{}, uuid.Nil, err
	}
	name, err := t.GetString("file")
	file, ok := parseID(name)
	if err := errors.Join(err, t.Get("ver", &proven.claims.AuthVersion)); err != nil || !ok {
		return claims{}, uuid.Nil, errToken
	}
	return proven.claims, file, nil
}
