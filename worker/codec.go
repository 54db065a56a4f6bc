package worker

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// KeySize is the length of a payload key: AES-256.
const KeySize = 32

// Key encrypts payloads under a name that travels with them.
type Key struct {
	ID     string
	Secret []byte
}

// Metadata of encrypted payloads.
const (
	metaEncoding  = "encoding"
	metaKeyID     = "kivuko-key-id"
	encodingValue = "binary/encrypted"
)

// Codec encrypts everything that flows write into Temporal's histories, because histories are kept for weeks and more people
// can read them than the database. It uses AES-256-GCM with a random nonce; the key's name is authenticated.
type Codec struct {
	current string
	order   []string // the keys, the one that encrypts first
	aeads   map[string]cipher.AEAD
}

var _ converter.PayloadCodec = (*Codec)(nil)

// NewCodec returns a codec that encrypts with the first key and decrypts with all of them. To rotate, add the new key at the
// end everywhere, then move it to the front. Remove the old key after the retention of the namespace has passed.
func NewCodec(keys []Key) (*Codec, error) {
	if len(keys) == 0 {
		return nil, errors.New("payload codec: at least one key is required")
	}
	c := &Codec{current: keys[0].ID, aeads: map[string]cipher.AEAD{}}
	for _, k := range keys {
		if k.ID == "" || len(k.Secret) != KeySize {
			return nil, fmt.Errorf("payload codec: key %q must have a name and %d bytes", k.ID, KeySize)
		}
		if c.aeads[k.ID] != nil {
			return nil, fmt.Errorf("payload codec: the key id %q is used twice", k.ID)
		}
		block, err := aes.NewCipher(k.Secret)
		if err != nil {
			return nil, fmt.Errorf("payload codec: key %q: %w", k.ID, err)
		}
		if c.aeads[k.ID], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, fmt.Errorf("payload codec: key %q: %w", k.ID, err)
		}
		c.order = append(c.order, k.ID)
	}
	return c, nil
}

// Encode encrypts payloads, metadata included.
func (c *Codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("payload codec: %w", err)
		}
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{metaEncoding: []byte(encodingValue), metaKeyID: []byte(c.current)},
			Data:     c.aeads[c.current].Seal(nil, nil, plain, []byte(c.current)), //nolint:gosec // nil asks for a random nonce, which is put before the ciphertext
		}
	}
	return out, nil
}

// Decode decrypts payloads that Encode made and returns others unchanged, because the Web UI may send plain payloads.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if string(p.GetMetadata()[metaEncoding]) != encodingValue {
			out[i] = p
			continue
		}
		id := string(p.GetMetadata()[metaKeyID])
		aead := c.aeads[id]
		if aead == nil {
			return nil, fmt.Errorf("payload codec: the key %q is not configured", id)
		}
		plain, err := aead.Open(nil, nil, p.GetData(), []byte(id))
		if err != nil {
			return nil, errors.New("payload codec: a payload can't be decrypted")
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, fmt.Errorf("payload codec: %w", err)
		}
	}
	return out, nil
}
