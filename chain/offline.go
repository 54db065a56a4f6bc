package chain

// Offline is a client of a network whose prepared transactions live long enough to be signed away from the
// service, on a machine without a network.
type Offline interface {
	Client
	// TakeSigned reads a signed transaction that somebody else made of a prepared one, and gives it in the
	// form in which it is stored and sent. It is refused unless it is that very transaction, still says what
	// its transfer says, and is signed by its sender alone.
	TakeSigned(u Unsigned, raw []byte) (Signed, error)
	// KnownID is the id that a prepared transaction will have whoever signs it; empty where the signature is
	// part of what the id is made of.
	KnownID(u Unsigned) string
}

// Presigned is the key of a signature that exists already: it signs what it signed, and what a driver does
// with it afterwards shows whether that was the payload.
func Presigned(publicKey, signature []byte) Key { return presigned{publicKey, signature} }

type presigned struct{ publicKey, signature []byte }

func (p presigned) PublicKey() []byte { return p.publicKey }

func (p presigned) Sign([]byte) ([]byte, error) { return p.signature, nil }
