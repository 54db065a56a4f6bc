package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxBody bounds a request to the gateway.
const maxBody = 64 << 10

// form is the body of a request. The gateway accepts numbers for strings and strings for numbers.
type form map[string]string

// parseForm reads an object of plain values.
func parseForm(body []byte) (form, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, err
	}
	f := make(form, len(raw))
	for name, value := range raw {
		var s string
		if json.Unmarshal(value, &s) != nil {
			if s = string(value); s == "null" || s[0] == '{' || s[0] == '[' {
				s = ""
			}
		}
		f[name] = s
	}
	return f, nil
}

// amount is the field Amount, a whole number of shillings above zero.
func (f form) amount() (int64, bool) {
	n, err := strconv.ParseInt(f["Amount"], 10, 64)
	return n, err == nil && n > 0
}

// handler answers an accepted request of one operation.
type handler func(w http.ResponseWriter, f form)

func (s *Server) routeGateway(mux *http.ServeMux) {
	mux.HandleFunc("/oauth/v1/generate", s.handleToken)
	for path, route := range map[string]struct {
		op     string
		handle handler
	}{
		"/mpesa/stkpush/v1/processrequest":  {OpPrompt, s.handlePrompt},
		"/mpesa/stkpushquery/v1/query":      {OpQuery, s.handleQuery},
		"/mpesa/b2c/v3/paymentrequest":      {OpPayout, s.handlePayout},
		"/mpesa/b2b/v1/paymentrequest":      {OpFloat, s.handleFloat},
		"/mpesa/transactionstatus/v1/query": {OpStatus, s.handleStatus},
		"/mpesa/accountbalance/v1/query":    {OpBalance, s.handleBalance},
		"/mpesa/reversal/v1/request":        {OpReversal, s.handleReversal},
		"/mpesa/c2b/v1/registerurl":         {OpRegister, s.handleRegister},
		"/mpesa/c2b/v2/registerurl":         {OpRegister, s.handleRegister},
		"/mpesa/c2b/v1/simulate":            {OpC2B, s.handleSimulate},
		"/mpesa/c2b/v2/simulate":            {OpC2B, s.handleSimulate},
		"/pulltransactions/v1/register":     {OpPull, s.handlePullRegister},
		"/pulltransactions/v1/query":        {OpPull, s.handlePull},
	} {
		mux.HandleFunc(path, s.gateway(route.op, route.handle))
	}
	mux.HandleFunc("/mpesa/b2c/hakikisha/v1/hakikisha", s.gateway(OpPayee, nil))
	mux.HandleFunc("/mpesa/", notFound)
	mux.HandleFunc("/pulltransactions/", notFound)
	mux.HandleFunc("/oauth/", notFound)
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	refuse(w, gatewayFault{status: http.StatusNotFound, code: "404.001.01", message: "Resource not found"})
}

// gateway checks method, token and body like the operator's gateway. The handlers of prompts, payouts and payers' payments
// select their behaviour by number; for other operations it is selected here.
func (s *Server) gateway(op string, handle handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost && (op != OpPull || r.Method != http.MethodGet) {
			refuse(w, gatewayFault{status: http.StatusMethodNotAllowed, code: "405.001", message: "Method Not Allowed"})
			return
		}
		if !s.checkToken(w, r) {
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			refuse(w, gatewayFault{status: http.StatusBadRequest, code: "400.002.05", message: "Invalid Request Payload"})
			return
		}
		f, err := parseForm(body)
		if err != nil {
			refuse(w, gatewayFault{status: http.StatusBadRequest, code: "400.002.05", message: "Invalid Request Payload"})
			return
		}
		switch op {
		case OpPrompt, OpPayout, OpC2B, OpQuery, OpStatus, OpFloat:
		default:
			if b := s.pick(op, "", 0); b.refuse != nil {
				refuse(w, *b.refuse)
				return
			}
		}
		if op == OpPayee { // the only body that is not flat
			s.handlePayee(w, f, body)
			return
		}
		handle(w, f)
	}
}

// checkToken refuses every token but the last one issued.
func (s *Server) checkToken(w http.ResponseWriter, r *http.Request) bool {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	good := bearer && s.token != "" && equal(token, s.token) && s.cfg.Clock().Before(s.tokenUntil)
	s.mu.Unlock()
	switch {
	case !bearer:
		refuse(w, gatewayFault{status: http.StatusNotFound, code: "404.001.04", message: "Invalid Authentication Header"})
	case !good:
		refuse(w, gatewayFault{status: http.StatusUnauthorized, code: "401.002.01", message: "Error Occurred - Invalid Access Token - " + token})
	}
	return good
}

// handleToken issues an access token, which invalidates the previous one.
func (s *Server) handleToken(w http.ResponseWriter, r *http.Request) {
	b := s.pick(OpToken, "", 0)
	key, secret, basic := r.BasicAuth()
	switch {
	case b.refuse != nil:
		refuse(w, *b.refuse)
		return
	case r.Method != http.MethodGet:
		refuse(w, gatewayFault{status: http.StatusMethodNotAllowed, code: "405.001", message: "Method Not Allowed"})
		return
	case !basic:
		refuse(w, gatewayFault{status: http.StatusBadRequest, code: "400.008.01", message: "Invalid Authentication passed"})
		return
	case r.URL.Query().Get("grant_type") != "client_credentials":
		refuse(w, gatewayFault{status: http.StatusBadRequest, code: "400.008.02", message: "Invalid grant type passed"})
		return
	case !equal(key, s.cfg.ConsumerKey) || !equal(secret, s.cfg.ConsumerSecret):
		w.WriteHeader(http.StatusBadRequest) // without a body, as the operator does
		return
	}
	s.mu.Lock()
	s.token, s.tokenUntil = randomFrom(alphanumeric, 28), s.cfg.Clock().Add(tokenLife)
	answer := map[string]any{"access_token": s.token, "expires_in": int(tokenLife.Seconds())}
	s.mu.Unlock()
	if s.cfg.StringExpiry || b.stringExpiry {
		answer["expires_in"] = strconv.Itoa(int(tokenLife.Seconds()))
	}
	reply(w, http.StatusOK, answer)
}

// RevokeToken invalidates the current access token, as another holder of the credentials does by requesting one.
func (s *Server) RevokeToken() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
}

// refuse answers with a fault instead of handling the request.
func refuse(w http.ResponseWriter, f gatewayFault) {
	switch {
	case f.drop:
		panic(http.ErrAbortHandler) // breaks the connection without a response
	case f.flood:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.status)
		for range 80 {
			if _, err := io.WriteString(w, strings.Repeat(" ", 64<<10)); err != nil {
				return
			}
		}
	case f.html:
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center></body></html>")
	case f.code == "":
		w.WriteHeader(f.status)
	default:
		reply(w, f.status, map[string]string{
			"requestId": randomFrom("0123456789", 5) + "-" + randomFrom("0123456789", 8) + "-1", "errorCode": f.code, "errorMessage": f.message,
		})
	}
}

func invalidField(w http.ResponseWriter, field string) {
	refuse(w, gatewayFault{status: http.StatusBadRequest, code: "400.002.02", message: "Bad Request - Invalid " + field})
}

// acknowledge answers an accepted request, or hides that it was accepted.
func acknowledge(w http.ResponseWriter, mode ackMode, op string, ack any) {
	switch mode {
	case ackNormal:
		reply(w, http.StatusOK, ack)
	case ackError:
		f := gatewayFault{status: http.StatusInternalServerError, code: "500.003.1001", message: "Internal Server Error"}
		if op == OpPayout {
			f.code, f.message = "500.002.1001", "System internal error."
		}
		refuse(w, f)
	case ackEmpty:
		refuse(w, gatewayFault{status: http.StatusInternalServerError, code: "500.001.1001"})
	case ackHTML:
		refuse(w, gatewayFault{status: http.StatusBadGateway, html: true})
	case ackDrop:
		refuse(w, gatewayFault{drop: true})
	}
}

func reply(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		panic(fmt.Sprintf("sandbox: %v", err)) // only our own values can cause this
	}
	w.Header().Set("Content-Type", "application/json;charset=UTF-8")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// validPhone checks the form that the operator requires.
func validPhone(s string) bool {
	if len(s) != 12 || (!strings.HasPrefix(s, "2547") && !strings.HasPrefix(s, "2541")) {
		return false
	}
	_, err := strconv.ParseInt(s, 10, 64)
	return err == nil
}

// validAddress applies the operator's rules for callback addresses (portal), except that loopback addresses may
// be plain http.
func (s *Server) validAddress(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Host != strings.ToLower(u.Host) {
		return false
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !s.mayCall(u.Hostname())) {
		return false
	}
	lower := strings.ToLower(address)
	for _, word := range []string{"mpesa", "m-pesa", "safaricom", "exe", "exec", "cmd", "sql", "query"} {
		if strings.Contains(lower, word) {
			return false
		}
	}
	return true
}

// passwordFits checks base64(shortcode + passkey + timestamp).
func (s *Server) passwordFits(f form) bool {
	plain, err := base64.StdEncoding.DecodeString(f["Password"])
	return err == nil && equal(string(plain), f["BusinessShortCode"]+s.cfg.Passkey+f["Timestamp"])
}

// initiatorFits checks the API user and its password.
func (s *Server) initiatorFits(name, credential string) bool {
	return equal(name, s.cfg.InitiatorName) &&
		s.credentials.knows(credential, s.cfg.InitiatorPassword, s.cfg.SecurityCredential)
}
