package worker

import (
	"net/http"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// maxCodecBody bounds one request of the Web UI: a page of a history.
const maxCodecBody = 16 << 20

// CodecHandler serves the encode and decode endpoints with which the Web UI shows and sends payloads. It encrypts nothing: what
// somebody types into the Web UI must not look like what a process of ours wrote. Origin is that of the Web UI, the only one
// from which a browser may call them. Requests that authorize refuses get 401.
func CodecHandler(codec *Codec, origin string, authorize func(*http.Request) error) http.Handler {
	inner := converter.NewPayloadCodecHTTPHandler(reading{codec})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Namespace")
		h.Set("Access-Control-Allow-Methods", "POST, OPTIONS")
		h.Set("Access-Control-Allow-Credentials", "true")
		h.Set("Vary", "Origin")
		h.Set("Cache-Control", "no-store")
		if r.Method == http.MethodOptions {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		// A browser names the origin of the calling page; pages of other origins must not read histories.
		if from := r.Header.Get("Origin"); from != "" && from != origin {
			http.Error(w, "this origin may not read payloads", http.StatusForbidden)
			return
		}
		if err := authorize(r); err != nil {
			http.Error(w, "not authorized to read payloads", http.StatusUnauthorized)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxCodecBody)
		inner.ServeHTTP(w, r)
	})
}

// reading is a codec that only decrypts.
type reading struct{ *Codec }

// Encode returns the payloads as they are.
func (reading) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return payloads, nil
}
