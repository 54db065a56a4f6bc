package files

import (
	"crypto/rand"
	"crypto/sha256"
	"hash"
	"io"
	"os"

	"github.com/google/uuid"
	"github.com/tink-crypto/tink-go/v2/streamingaead/subtle"
	"github.com/tink-crypto/tink-go/v2/tink"

	"kivuko/exchange"
)

// A file is encrypted in segments by Tink's streaming AEAD (AES-256-GCM-HKDF), so that it is read while it is verified: a changed, cut
// off or reordered object fails at the segment where it is. The id of the file is bound into it.
const (
	keySize     = 32
	segmentSize = 64 << 10
)

func streaming(key []byte) (tink.StreamingAEAD, error) {
	return subtle.NewAESGCMHKDF(key, "SHA256", keySize, segmentSize, 0)
}

func binding(id uuid.UUID) []byte { return []byte("kivuko file v1 " + id.String()) }

// opened decrypts an object.
func opened(object io.Reader, key []byte, id uuid.UUID) (io.Reader, error) {
	cipher, err := streaming(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewDecryptingReader(object, binding(id))
}

// draft is a file in progress: encrypted on the local disk, under no name. It ends with the process.
type draft struct {
	ref  exchange.FileRef
	key  []byte
	disk *os.File
	in   io.WriteCloser
	hash hash.Hash
	size int64
}

// newDraft begins a file. Its name on the disk is taken away at once.
func newDraft(dir string, purpose exchange.FilePurpose) (*draft, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	d := &draft{ref: exchange.FileRef{ID: id, Purpose: purpose}, key: make([]byte, keySize), hash: sha256.New()}
	if _, err := rand.Read(d.key); err != nil {
		return nil, err
	}
	if d.disk, err = os.CreateTemp(dir, "upload-*"); err != nil {
		return nil, err
	}
	err = os.Remove(d.disk.Name())
	if err == nil {
		var cipher tink.StreamingAEAD
		if cipher, err = streaming(d.key); err == nil {
			d.in, err = cipher.NewEncryptingWriter(d.disk, binding(id))
		}
	}
	if err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// Write adds to the file.
func (d *draft) Write(p []byte) (int, error) {
	d.hash.Write(p)
	d.size += int64(len(p))
	return d.in.Write(p)
}

// content reads the file from its beginning, after its end was written.
func (d *draft) content() (io.Reader, error) {
	if _, err := d.disk.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return opened(d.disk, d.key, d.ref.ID)
}

// close forgets the file.
func (d *draft) close() {
	clear(d.key)
	_ = d.disk.Close() // it has no name any more
}
