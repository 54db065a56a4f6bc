package devnode

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// maxControlBytes bounds a request to the fault switches.
const maxControlBytes = 1 << 16

// Node is a node as its fault switches know it. S is the state that it reports.
type Node[S any] interface {
	Summary() S
	Pause()
	Resume()
	ResetFaults()
	Reorganise(depth int, drop bool) error
}

// Switches serves what every node's fault switches have:
//
//	GET  /state      the summary
//	POST /interval   {"milliseconds": n}
//	POST /pause, /resume
//	POST /reset      all faults off
//	POST /reorganise {"blocks": n, "drop": bool}
//
// A change answers with the state that it led to, and a refused request with status 400 and {"error": "..."}.
func Switches[S any](n Node[S], setInterval func(time.Duration) error) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /state", func(w http.ResponseWriter, _ *http.Request) { WriteJSON(w, http.StatusOK, n.Summary()) })
	mux.HandleFunc("POST /interval", Handle(func(r struct{ Milliseconds int64 }) (any, error) {
		return Done(n, setInterval(time.Duration(r.Milliseconds)*time.Millisecond))
	}))
	mux.HandleFunc("POST /pause", Handle(func(struct{}) (any, error) { n.Pause(); return Done(n, nil) }))
	mux.HandleFunc("POST /resume", Handle(func(struct{}) (any, error) { n.Resume(); return Done(n, nil) }))
	mux.HandleFunc("POST /reset", Handle(func(struct{}) (any, error) { n.ResetFaults(); return Done(n, nil) }))
	mux.HandleFunc("POST /reorganise", Handle(func(r struct {
		Blocks int
		Drop   bool
	},
	) (any, error) {
		return Done(n, n.Reorganise(r.Blocks, r.Drop))
	}))
	return mux
}

// Done answers a change with the state it led to.
func Done[S any](n Node[S], err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return n.Summary(), nil
}

// Handle decodes a request strictly, calls f and encodes the answer. An error of f is the request's.
func Handle[T any](f func(T) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request T
		decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxControlBytes))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&request)
		if errors.Is(err, io.EOF) { // an empty body is an empty request
			err = nil
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, fmt.Errorf("parse the request: %w", err))
			return
		}
		out, err := f(request)
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		WriteJSON(w, http.StatusOK, out)
	}
}

// ListFor answers a GET with what belongs to the parameter "address". An error of list is the node's.
func ListFor[A, T any](parse func(string) (A, error), list func(A) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := parse(r.URL.Query().Get("address"))
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		out, err := list(a)
		if err != nil {
			refuse(w, http.StatusInternalServerError, err)
			return
		}
		WriteJSON(w, http.StatusOK, out)
	}
}

func refuse(w http.ResponseWriter, status int, err error) {
	WriteJSON(w, status, map[string]string{"error": err.Error()})
}

// WriteJSON answers with a JSON document.
func WriteJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away
}
