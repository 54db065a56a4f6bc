package chain

// Offline is a client of a network whose prepared transactions live long enough to be signed on a machine without a network.
type Offline interface {
	Client
	// TakeSigned reads a prepared transaction that was signed elsewhere, and returns it in the form in which it is stored
	// and sent. It must be exactly the prepared transaction, match its transfer, and be signed only by its sender.
	TakeSigned(u Unsigned, raw []byte) (Signed, error)
	// KnownID is the id that a prepared transaction will have; empty when the id depends on the signature.
	KnownID(u Unsigned) string
}

// Presigned is the key of an existing signature: it returns that signature for any payload. The driver's checks after
// signing show whether it fits the payload.
func Presigned(publicKey, signature []byte) Key { return presigned{publicKey, signature} }

type presigned struct{ publicKey, signature []byte }

func (p presigned) PublicKey() []byte { return p.publicKey }

func (p presigned) Sign([]byte) ([]byte, error) { return p.signature, nil }
