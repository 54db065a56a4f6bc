package worker

import (
	"net/http"

	"go.temporal.io/sdk/converter"
)

// maxCodecBody bounds what the Web UI may send at once: a page of a history.
const maxCodecBody = 16 << 20

// CodecHandler serves the encode and decode endpoints through which the Web UI shows and sends
// payloads. Origin is the Web UI's own, the only one that a browser may call it from. Authorize
// decides about each request; what it refuses gets 401.
func CodecHandler(codec *Codec, origin string, authorize func(*http.Request) error) http.Handler {
	inner := converter.NewPayloadCodecHTTPHandler(codec)
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
		// A browser names the page that asks; a page of a stranger must not read histories.
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
