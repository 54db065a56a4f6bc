package api

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/ccojocar/zxcvbn-go"
	"github.com/google/uuid"
	"golang.org/x/crypto/argon2"
	"golang.org/x/sync/semaphore"

	"kivuko/exchange"
)

// The cost of argon2id: the minimum of OWASP's password storage cheat sheet, 19 MiB and two passes, about 30 ms
// of one core.
const (
	argonMemoryKiB = 19 << 10
	argonTime      = 2
	argonThreads   = 1
	argonSalt      = 16
	argonKey       = 32
	// Bounds on the parameters of a stored hash, so that a damaged row can't use up the memory of the process.
	argonMaxMemoryKiB = 256 << 10
	argonMaxTime      = 16
	argonMaxThreads   = 8
)

func defaultHashers() int { return 2 * runtime.GOMAXPROCS(0) }

// hasher hashes passwords and PINs. It bounds the number of concurrent hashes, so that many logins can't starve the
// rest of the service.
type hasher struct {
	peppers []Key // the first hashes, all of them verify
	slots   *semaphore.Weighted
	queue   int64
	waiting atomic.Int64
	dummy   string
}

func newHasher(peppers []Key, o Argon2) (*hasher, error) {
	h := &hasher{peppers: peppers, slots: semaphore.NewWeighted(int64(o.Parallel)), queue: int64(o.Parallel + o.Queue)}
	dummy, err := hashSecret(peppers[0], passwordOf(uuid.Nil, "nobody"))
	h.dummy = dummy
	return h, err
}

// turn waits for a slot. It fails when the queue is full.
func (h *hasher) turn(ctx context.Context) (func(), error) {
	if h.waiting.Add(1) > h.queue {
		h.waiting.Add(-1)
		return nil, exchange.Errorf(exchange.CodeUnavailable, "There are too many logins at the moment. Try again in a few seconds.")
	}
	if err := h.slots.Acquire(ctx, 1); err != nil {
		h.waiting.Add(-1)
		return nil, exchange.Wrap(exchange.CodeUnavailable, err, "There are too many logins at the moment. Try again in a few seconds.")
	}
	return func() {
		h.slots.Release(1)
		h.waiting.Add(-1)
	}, nil
}

func (h *hasher) hash(ctx context.Context, s secret) (string, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return hashSecret(h.peppers[0], s)
}

// verify reports whether the secret matches the hash, and whether the hash should be replaced because it has another
// cost or another pepper than new hashes. For an empty hash it does the same work with a dummy hash, so that an unknown
// account takes as long as a wrong password.
func (h *hasher) verify(ctx context.Context, phc string, s secret) (ok, stale bool, err error) {
	done, err := h.turn(ctx)
	if err != nil {
		return false, false, err
	}
	defer done()
	if phc == "" {
		_, _, err := h.compare(h.dummy, s)
		return false, false, err
	}
	return h.compare(phc, s)
}

// compare checks a secret against a stored hash. A hash under a pepper that was removed matches nothing.
func (h *hasher) compare(phc string, s secret) (ok, stale bool, err error) {
	stored, err := parseHash(phc)
	if err != nil {
		return false, false, err
	}
	i := slices.IndexFunc(h.peppers, func(k Key) bool { return k.ID == stored.pepper })
	if i < 0 {
		_, _, err := h.compare(h.dummy, s)
		return false, false, err
	}
	got := stored.key(s.under(h.peppers[i]), stored.salt)
	return subtle.ConstantTimeCompare(got, stored.hash) == 1, i > 0 || stored.cost != defaultCost, nil
}

// mac is a keyed hash for values outside the accounts: who reads the database can neither compute nor guess it.
func (h *hasher) mac(parts ...string) []byte {
	return h.peppers[0].mac(parts...)
}

// fingerprint is the keyed hash of a body in the idempotency table. It is keyed because bodies of registrations
// contain passwords, which could be guessed from a plain hash. A request that is repeated after the pepper was
// rotated counts as another request.
func (h *hasher) fingerprint(path string, body []byte) [32]byte {
	return [32]byte(h.mac("kivuko body v1", path, string(body)))
}

// mac is HMAC-SHA-256 over texts, each with its length, so that their boundaries are unambiguous.
func (k Key) mac(parts ...string) []byte {
	mac := hmac.New(sha256.New, k.Secret[:])
	for _, p := range parts {
		fmt.Fprintf(mac, "%d\n%s\n", len(p), p)
	}
	return mac.Sum(nil)
}

// secret is a password or a PIN of a user.
type secret struct {
	kind string
	user uuid.UUID
	text string
}

func passwordOf(user uuid.UUID, text string) secret { return secret{"kivuko password v1", user, text} }

func pinOf(user uuid.UUID, text string) secret { return secret{"kivuko pin v1", user, text} }

// under is the input of the secret's hash. With the pepper, which is not in the database, a copy of the database is not
// enough to guess it: there are at most a million PINs. With the user's id, the hash of one account is of no use in the
// row of another.
func (s secret) under(pepper Key) []byte { return pepper.mac(s.kind, s.user.String(), s.text) }

// cost is what one hash takes.
type cost struct {
	memory, passes uint32
	threads        uint8
}

var defaultCost = cost{argonMemoryKiB, argonTime, argonThreads}

func (c cost) key(input, salt []byte) []byte {
	return argon2.IDKey(input, salt, c.passes, c.memory, c.threads, argonKey)
}

// hashSecret returns the PHC string of a secret. Its keyid is the id of the pepper (the PHC format's argon2 profile).
func hashSecret(pepper Key, s secret) (string, error) { return hashAt(defaultCost, pepper, s) }

func hashAt(c cost, pepper Key, s secret) (string, error) {
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d,keyid=%s$%s$%s", argon2.Version, c.memory, c.passes, c.threads,
		b64.EncodeToString([]byte(pepper.ID)), b64.EncodeToString(salt), b64.EncodeToString(c.key(s.under(pepper), salt))), nil
}

// storedHash is a parsed PHC string.
type storedHash struct {
	cost
	pepper     string
	salt, hash []byte
}

var errHash = errors.New("the stored credential is not an argon2id hash with a pepper")

func parseHash(phc string) (storedHash, error) {
	var s storedHash
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return s, errHash
	}
	parameters, keyID, _ := strings.Cut(parts[3], ",keyid=")
	if _, err := fmt.Sscanf(parameters, "m=%d,t=%d,p=%d", &s.memory, &s.passes, &s.threads); err != nil {
		return s, errHash
	}
	if s.memory == 0 || s.memory > argonMaxMemoryKiB || s.passes == 0 || s.passes > argonMaxTime || s.threads == 0 || s.threads > argonMaxThreads {
		return s, errHash
	}
	pepper, err1 := base64.RawStdEncoding.DecodeString(keyID)
	salt, err2 := base64.RawStdEncoding.DecodeString(parts[4])
	hash, err3 := base64.RawStdEncoding.DecodeString(parts[5])
	if err := errors.Join(err1, err2, err3); err != nil || len(pepper) == 0 || len(hash) != argonKey {
		return s, errHash
	}
	s.pepper, s.salt, s.hash = string(pepper), salt, hash
	return s, nil
}

// Passwords are checked by how hard they are to guess, not by the characters that they have.
const (
	// minPasswordScore is the lowest of zxcvbn's scores, 0 to 4, that resists an attacker with the stored hash.
	minPasswordScore = 3
	// scoredLength bounds the work of the estimate, which grows with the square of the length. Only the beginning of a
	// longer password is scored.
	scoredLength = 64
)

// checkPassword returns what is wrong with a new password, or "" when it is accepted. Texts about its user (names, the
// e-mail address) count as easy to guess.
func checkPassword(text string, about ...string) (code, message string) {
	all := []rune(text)
	if n := len(all); n < exchange.MinPasswordLength || n > exchange.MaxPasswordLength {
		return "length", fmt.Sprintf("must have %d to %d characters", exchange.MinPasswordLength, exchange.MaxPasswordLength)
	}
	guessed := []string{"kivuko"}
	for _, text := range about {
		guessed = append(guessed, strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune("@. ", r) })...)
		guessed = append(guessed, strings.ToLower(text))
	}
	scored := string(all[:min(len(all), scoredLength)])
	if zxcvbn.PasswordStrength(scored, guessed).Score < minPasswordScore {
		return "too_common", "is too easy to guess: use several unrelated words, and nothing about yourself"
	}
	return "", ""
}
