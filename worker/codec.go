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
	metaPlace     = "kivuko-place"
	encodingValue = "binary/encrypted"
)

// Codec encrypts everything that flows write into Temporal's histories, because histories are kept for weeks and more people
// can read them than the database. It uses AES-256-GCM with a random nonce; the key's name and the place of the payload are
// authenticated. The place is the flow, and for an activity's payloads its type too: whoever may write to Temporal, but has
// no key, can't have a flow read what was written for another flow or another step. What an activity is given is encrypted with a
// key of its queue's domain: a worker that was taken over reads what it was given, and neither what customers asked for nor what
// other workers are given. What it writes is read only as an answer of its own queue.
type Codec struct {
	current string
	order   []string // the keys, the one that encrypts first
	aeads   map[string]cipher.AEAD
	place   string // of the payloads; "" for a codec that reads those of all places, as the codec server's does
	domain  string // of the place; "" with it
}

var (
	_ converter.PayloadCodec                         = (*Codec)(nil)
	_ converter.PayloadCodecWithSerializationContext = (*Codec)(nil)
)

// WithSerializationContext returns the codec for the payloads of one place.
func (c *Codec) WithSerializationContext(of converter.SerializationContext) converter.PayloadCodec {
	there := *c
	switch of := of.(type) {
	case converter.WorkflowSerializationContext:
		there.place, there.domain = of.WorkflowID, DomainFlows
	case converter.ActivitySerializationContext:
		there.place, there.domain = of.WorkflowID+" "+of.ActivityType, DomainOf(of.TaskQueue)
	}
	there.current = c.keyOf(there.domain)
	return &there
}

// bound is what a ciphertext is bound to: the name of its key and its place.
func bound(key, place string) []byte { return []byte(key + "\x00" + place) }

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
			Metadata: map[string][]byte{metaEncoding: []byte(encodingValue), metaKeyID: []byte(c.current), metaPlace: []byte(c.place)},
			Data:     c.aeads[c.current].Seal(nil, nil, plain, bound(c.current, c.place)), //nolint:gosec // nil asks for a random nonce, which is put before the ciphertext
		}
	}
	return out, nil
}

// encrypted reports whether a payload is encrypted.
func encrypted(p *commonpb.Payload) bool {
	return string(p.GetMetadata()[metaEncoding]) == encodingValue
}

// Decode decrypts payloads that Encode made for this place, and refuses those of another one. It returns payloads that are
// not encrypted unchanged: DataConverter decides about them, by what they are read into.
func (c *Codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if !encrypted(p) {
			out[i] = p
			continue
		}
		id := string(p.GetMetadata()[metaKeyID])
		aead := c.aeads[id]
		if aead == nil {
			return nil, fmt.Errorf("payload codec: the key %q is not configured", id)
		}
		if foreign(id, c.domain) {
			return nil, fmt.Errorf("payload codec: the key %q is of another domain than %s", id, c.domain)
		}
		place := string(p.GetMetadata()[metaPlace])
		if c.place != "" && place != c.place {
			return nil, errors.New("payload codec: a payload was written for another flow or step")
		}
		plain, err := aead.Open(nil, nil, p.GetData(), bound(id, place))
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
