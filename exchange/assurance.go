package exchange

// Assurance is how a caller proved who it is. A session begins with the assurance of its login and rises with a
// stronger proof.
type Assurance string

// The assurances. The empty one is a caller without a login and the service itself.
const (
	AssuranceMachine  Assurance = "machine"  // a key that a program holds
	AssurancePIN      Assurance = "pin"      // four to six digits
	AssurancePassword Assurance = "password" // a password
	AssurancePasskey  Assurance = "passkey"  // a passkey whose authenticator verified its user
)
