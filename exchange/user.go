package exchange

import (
	"net/mail"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
	"golang.org/x/text/secure/precis"
)

// Role is a user's role; the policy lists its permissions.
type Role string

// The roles. A RoleUser is a customer whose identity is not verified yet: same permissions, lower limits.
const (
	RoleCustomer   Role = "customer"
	RoleUser       Role = "user"
	RoleVendor     Role = "vendor"    // master merchant
	RoleSubvendor  Role = "subvendor" // acts for its vendor
	RoleAdmin      Role = "admin"
	RoleOTCOfficer Role = "otc_officer"
	RoleTreasury   Role = "treasury"
)

// Roles lists the roles in a fixed order.
func Roles() []Role {
	return []Role{RoleCustomer, RoleUser, RoleVendor, RoleSubvendor, RoleAdmin, RoleOTCOfficer, RoleTreasury}
}

// Valid reports whether r is a known role.
func (r Role) Valid() bool { return slices.Contains(Roles(), r) }

// Staff reports whether r works for Kivuko.
func (r Role) Staff() bool { return r == RoleAdmin || r == RoleOTCOfficer || r == RoleTreasury }

// Merchant reports whether r acts for a vendor.
func (r Role) Merchant() bool { return r == RoleVendor || r == RoleSubvendor }

// Limits of user fields.
const (
	MaxNameLength     = 80
	MaxEmailLength    = 254
	MinPasswordLength = 8
	MaxPasswordLength = 128
	MinPINLength      = 4
	MaxPINLength      = 6
)

// User is an account holder. Secrets live in Credentials and never travel with it.
type User struct {
	ID          uuid.UUID
	Email       string
	PhoneNumber Phone
	FirstName   string
	LastName    string
	Role        Role
	VendorID    uuid.UUID // the master merchant that a subvendor acts for; zero for all other roles
	IsActive    bool
	VerifiedAt  time.Time
	// EmailProvenAt and PhoneProvenAt are when the user proved by a code to receive what is sent there; zero before that.
	EmailProvenAt time.Time
	PhoneProvenAt time.Time
	CreatedAt     time.Time
	UpdatedAt     time.Time
	Version       int64
}

// Credentials are a user's secrets, as PHC strings of argon2id.
type Credentials struct {
	UserID       uuid.UUID
	PasswordHash string
	PINHash      string // empty when none is set
	// AuthVersion grows to invalidate every token of the user (deactivation, revoke-all). An access token carries the
	// version at its creation.
	AuthVersion int64
}

// Principal is an authenticated caller.
type Principal struct {
	UserID    uuid.UUID
	Role      Role
	VendorID  uuid.UUID // the merchant that the caller acts for: its own id for a vendor
	SessionID uuid.UUID
	IP        string
	RequestID string
	// Assurance is that of the session, and SteppedUpAt and SteppedUpBy when and by what the caller last proved itself in it:
	// by its login or again since then. All are zero without a session.
	Assurance   Assurance
	SteppedUpAt time.Time
	SteppedUpBy Assurance
}

// Origin is the key of counters and devices by address: the IPv4 address, or the site of an IPv6 address, because a client
// can choose any address in it.
func (p Principal) Origin() string {
	a, err := netip.ParseAddr(p.IP)
	if err != nil || !a.Is6() {
		return p.IP
	}
	site, err := a.Prefix(sitePrefix)
	if err != nil {
		return p.IP
	}
	return site.String()
}

// sitePrefix is the IPv6 prefix of one site.
const sitePrefix = 64

// System is the principal of work that the service does by itself.
func System(name string) Principal { return Principal{RequestID: name} }

// ActorName names a principal in audit rows.
func (p Principal) ActorName() string {
	if p.UserID == uuid.Nil {
		return "system:" + p.RequestID
	}
	return "user:" + p.UserID.String()
}

// ParseEmail checks an address and returns the form in which it is unique: that of PRECIS (RFC 8265), in lower case, with
// full-width letters as ASCII and without invisible characters. An address that mixes scripts is refused because it can look
// like another one, and so is one whose letters all look like letters of ASCII. A host must be ASCII: use its xn-- form.
func ParseEmail(s string) (string, error) {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" {
		return "", errEmail
	}
	s, err = precis.UsernameCaseMapped.String(s)
	if err != nil {
		return "", Errorf(CodeInvalid, "must not have invisible characters, or text that runs in two directions")
	}
	name, host, _ := strings.Cut(s, "@")
	switch {
	case len(s) > MaxEmailLength || !strings.Contains(host, ".") || strings.Contains(host, "@"):
		return "", errEmail
	case strings.ContainsFunc(host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "", Errorf(CodeInvalid, "must have a host in ASCII; write names of other scripts in their xn-- form")
	case scripts(name) > 1:
		return "", Errorf(CodeInvalid, "must not mix letters of several scripts")
	case passesForASCII(name):
		return "", Errorf(CodeInvalid, "must not have letters that only look like a to z")
	}
	return s, nil
}

var errEmail = Errorf(CodeInvalid, "must be an e-mail address such as amina@example.com")

// scripts counts the scripts that the letters of a text belong to.
func scripts(text string) int {
	found := map[string]bool{}
	for _, r := range text {
		if !unicode.IsLetter(r) {
			continue
		}
		for name, table := range unicode.Scripts {
			if name != "Common" && name != "Inherited" && unicode.Is(table, r) {
				found[name] = true
			}
		}
	}
	return len(found)
}

// likeASCII are small letters of other alphabets, and a few of Latin, that look like a letter of ASCII (Unicode Technical
// Standard 39, confusables.txt).
const likeASCII = "\u0430\u0441\u0501\u0435\u04bd\u0433\u04bb\u0456\u0458\u04cf\u043e\u0440\u051b\u0455\u0443\u04af\u0475\u0461\u051d\u0445" + // Cyrillic
	"\u03b1\u03b3\u03b9\u03bd\u03bf\u03c1\u03c3\u03c5\u03f2\u03f3" + // Greek
	"\u0563\u0566\u0570\u0575\u0578\u057d\u0581\u0585" + // Armenian
	"\u0131\u0251\u0261\u0269" // Latin

// passesForASCII reports whether a text with other letters can be taken for one with letters of ASCII alone.
func passesForASCII(text string) bool {
	like := func(r rune) bool { return strings.ContainsRune(likeASCII, r) }
	other := func(r rune) bool { return unicode.IsLetter(r) && r > unicode.MaxASCII && !like(r) }
	return strings.ContainsFunc(text, like) && !strings.ContainsFunc(text, other)
}

// ParseName checks a first or last name and returns it as it is stored: without invisible characters (RFC 8266) or
// surrounding spaces. It must have a letter, and at most MaxNameLength characters.
func ParseName(s string) (string, error) {
	t, err := precis.Nickname.String(s)
	if err != nil || !strings.ContainsFunc(t, unicode.IsLetter) {
		return "", Errorf(CodeInvalid, "must have a letter, and no invisible characters")
	}
	if utf8.RuneCountInString(t) > MaxNameLength { // normalising may turn one character into several
		return "", Errorf(CodeInvalid, "must have at most %d characters", MaxNameLength)
	}
	return t, nil
}

// CheckPIN refuses PINs that are not 4 to 6 digits, and the most common ones: one repeated digit, a straight run up or down,
// a repeated pair, and recent years.
func CheckPIN(pin string) error {
	if len(pin) < MinPINLength || len(pin) > MaxPINLength {
		return Errorf(CodeInvalid, "must have 4 to 6 digits")
	}
	for _, c := range []byte(pin) {
		if c < '0' || c > '9' {
			return Errorf(CodeInvalid, "must have 4 to 6 digits")
		}
	}
	if weakPIN(pin) {
		return Errorf(CodeInvalid, "is too easy to guess: repeated digits, sequences, repeated pairs and years are refused")
	}
	return nil
}

func weakPIN(pin string) bool {
	same, up, down, pairs := true, true, true, len(pin)%2 == 0
	for i := 1; i < len(pin); i++ {
		step := int(pin[i]) - int(pin[i-1])
		same = same && step == 0
		up = up && (step == 1 || step == -9)
		down = down && (step == -1 || step == 9)
		pairs = pairs && (i < 2 || pin[i] == pin[i-2])
	}
	year := len(pin) == 4 && (strings.HasPrefix(pin, "19") || strings.HasPrefix(pin, "20"))
	return same || up || down || pairs || year
}
