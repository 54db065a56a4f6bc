package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
)

// malformed are requests that a proxy and the server behind it may read differently: the proxy may see one request, the
// server two. Each is refused and ends its connection. Bytes after it on the connection must not be answered, so each is
// followed by second.
var malformed = []struct{ name, request string }{
	{"a line feed inside a chunk extension", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2;a\nb\r\n{}\r\n0\r\n\r\n"},
	{"two equal Content-Length", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}"},
	{"two different Content-Length", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 0\r\n\r\n{}"},
	{"Content-Length as a list", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2, 2\r\n\r\n{}"},
	{"two Host", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
	{"two equal Host", "GET /healthz HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"},
	{"no Host", "GET /healthz HTTP/1.1\r\nAccept: */*\r\n\r\n"},
	{"NUL in a header value", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Note: a\x00b\r\n\r\n"},
	{"a space before the colon of Content-Length", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length : 2\r\n\r\n{}"},
	{"bare line feeds", "GET /healthz HTTP/1.1\nHost: a\n\n"},
	{"a bare line feed behind one header", "GET /healthz HTTP/1.1\r\nHost: a\nAccept: */*\r\n\r\n"},
	{"Transfer-Encoding beside Content-Length", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
	{"two Transfer-Encoding", "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
	{"a request line without version", "GET /healthz\r\nHost: a\r\n\r\n"},
	{"a folded header", "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Note: a\r\n b\r\n\r\n"},
	{"HTTP/1.0 with Transfer-Encoding", "POST /api/v1/auth/login HTTP/1.0\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
}

const second = "GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

func TestMalformedRequestsAreRefused(t *testing.T) {
	e := start(t)
	for _, m := range malformed {
		t.Run(m.name, func(t *testing.T) {
			answers := e.raw(t, m.request+second)
			if len(answers) != 1 {
				t.Fatalf("%d answers, want one: %v", len(answers), answers)
			}
			got := answers[0]
			if got.status != http.StatusBadRequest || got.problem().Code != exchange.CodeMalformed || !got.closes {
				t.Errorf("status %d, closes %t: %s", got.status, got.closes, got.body)
			}
			if got.header.Get("X-Request-Id") == "" || got.header.Get("Content-Type") != problemType {
				t.Errorf("headers %v", got.header)
			}
		})
	}
}

// TestWellFormedRequestsAreServed sends the same kinds of bodies in a well-formed way.
func TestWellFormedRequestsAreServed(t *testing.T) {
	e := start(t)
	for name, request := range map[string]string{
		"a length":    "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
		"chunks":      "POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"pipelined":   "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
		"without one": "DELETE /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			answers := e.raw(t, request+second)
			if len(answers) != 2 || answers[1].status != http.StatusOK || answers[0].status == http.StatusBadRequest {
				t.Errorf("answers %v", answers)
			}
		})
	}
}

func TestUnknownMethodsGetAProblem(t *testing.T) {
	e := start(t)
	for _, method := range []string{"BREW", "PROPFIND", "get", "TRACE", "CONNECT"} {
		answers := e.raw(t, method+" /healthz HTTP/1.1\r\nHost: a\r\n\r\n"+second)
		got := answers[0]
		if got.status != http.StatusMethodNotAllowed || got.problem().Code != exchange.CodeMethodNotAllowed || got.header.Get("Content-Type") != problemType {
			t.Errorf("%s: status %d: %v %s", method, got.status, got.header, got.body)
		}
		if got.header.Get("X-Request-Id") == "" || got.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: headers %v", method, got.header)
		}
	}
}

// rawReply is a response read from a raw connection.
type rawReply struct {
	reply
	closes bool
}

func (r rawReply) String() string { return fmt.Sprintf("%d %.120s", r.status, r.body) }

// raw writes bytes to a new connection and returns all responses until the server closes it.
func (e *env) raw(t *testing.T, text string) []rawReply {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", strings.TrimPrefix(e.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(hanging)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	var answers []rawReply
	for reader := bufio.NewReader(conn); ; {
		answer, err := http.ReadResponse(reader, nil)
		if err != nil {
			if len(answers) == 0 {
				t.Fatalf("no answer: %v", err)
			}
			return answers
		}
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		answers = append(answers, rawReply{reply{t: t, status: answer.StatusCode, header: answer.Header, body: body}, answer.Close})
	}
}
