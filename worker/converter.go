package worker

import (
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"kivuko/workflows"
)

// DataConverter returns the standard converter with encryption. It reads no payload that is not encrypted, except into an
// OperatorSignal: an operator types that into the Web UI, which has no key, and it carries an id or a token alone. Whoever
// may write to Temporal but has no key can therefore start and answer nothing.
func DataConverter(codec *Codec) converter.DataConverter {
	plain := converter.GetDefaultDataConverter()
	return sealed{DataConverter: converter.NewCodecDataConverter(plain, codec), plain: plain}
}

// sealed writes through its encrypting converter, and decides what it reads.
type sealed struct {
	converter.DataConverter
	plain converter.DataConverter
}

var _ converter.DataConverterWithSerializationContext = sealed{}

var errClear = errors.New("a payload is not encrypted; only the signals that operators send from the Web UI may be clear")

// FromPayload reads one payload.
func (s sealed) FromPayload(p *commonpb.Payload, into any) error {
	if p == nil || encrypted(p) {
		return s.DataConverter.FromPayload(p, into)
	}
	if _, typed := into.(*workflows.OperatorSignal); !typed {
		return errClear
	}
	return s.plain.FromPayload(p, into)
}

// FromPayloads reads as many payloads as there are values to read them into.
func (s sealed) FromPayloads(all *commonpb.Payloads, into ...any) error {
	for i, p := range all.GetPayloads() {
		if i >= len(into) {
			break
		}
		if err := s.FromPayload(p, into[i]); err != nil {
			return fmt.Errorf("payload %d: %w", i, err)
		}
	}
	return nil
}

// WithSerializationContext returns the converter for the payloads of one place; see Codec.
func (s sealed) WithSerializationContext(of converter.SerializationContext) converter.DataConverter {
	return sealed{DataConverter: converter.WithDataConverterSerializationContext(s.DataConverter, of), plain: s.plain}
}
