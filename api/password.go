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
	pepper  []byte
	slots   *semaphore.Weighted
	queue   int64
	waiting atomic.Int64
	dummy   string
}

func newHasher(pepper []byte, o Argon2) (*hasher, error) {
	h := &hasher{pepper: pepper, slots: semaphore.NewWeighted(int64(o.Parallel)), queue: int64(o.Parallel + o.Queue)}
	dummy, err := hashSecret([]byte("nobody"))
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

func (h *hasher) hash(ctx context.Context, secret []byte) (string, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return "", err
	}
	defer done()
	return hashSecret(secret)
}

// verify reports whether the secret matches the hash. For an empty hash it does the same work with a dummy
// hash, so that an unknown account takes as long as a wrong password.
func (h *hasher) verify(ctx context.Context, phc string, secret []byte) (bool, error) {
	done, err := h.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	if phc == "" {
		_, err := verifySecret(h.dummy, secret)
		return false, err
	}
	return verifySecret(phc, secret)
}

// pin returns the input of a PIN's hash. There are at most a million PINs, so a hash of the PIN alone could be broken
// in hours. The pepper prevents that, because it is not in the database. With the user id, the hash of one user is
// of no use for another.
func (h *hasher) pin(user uuid.UUID, pin string) []byte { return pepperPIN(h.pepper, user, pin) }

func pepperPIN(pepper []byte, user uuid.UUID, pin string) []byte {
	mac := hmac.New(sha256.New, pepper)
	fmt.Fprintf(mac, "kivuko pin v1\n%s\n%s", user, pin)
	return mac.Sum(nil)
}

// fingerprint is the keyed hash of a body in the idempotency table. It is keyed because bodies of registrations
// contain passwords, which could be guessed from a plain hash.
func (h *hasher) fingerprint(path string, body []byte) [32]byte {
	mac := hmac.New(sha256.New, h.pepper)
	fmt.Fprintf(mac, "kivuko body v1\n%d\n%s\n", len(path), path)
	mac.Write(body)
	return [32]byte(mac.Sum(nil))
}

// HashPassword returns the PHC string of a password.
func HashPassword(password string) (string, error) { return hashSecret([]byte(password)) }

func hashSecret(secret []byte) (string, error) {
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	key := argon2.IDKey(secret, salt, argonTime, argonMemoryKiB, argonThreads, argonKey)
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemoryKiB, argonTime, argonThreads,
		b64.EncodeToString(salt), b64.EncodeToString(key)), nil
}

var errHash = errors.New("the stored credential is not an argon2id hash")

func verifySecret(phc string, secret []byte) (bool, error) {
	parts := strings.Split(phc, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return false, errHash
	}
	var memory, passes uint32
	var threads uint8
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &memory, &passes, &threads); err != nil {
		return false, errHash
	}
	if memory == 0 || memory > argonMaxMemoryKiB || passes == 0 || passes > argonMaxTime || threads == 0 || threads > argonMaxThreads {
		return false, errHash
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(want) != argonKey {
		return false, errHash
	}
	got := argon2.IDKey(secret, salt, passes, memory, threads, argonKey)
	return subtle.ConstantTimeCompare(got, want) == 1, nil
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
func checkPassword(password string, about ...string) (code, message string) {
	all := []rune(password)
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
