package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// callbackTimeout bounds one delivery.
const callbackTimeout = 10 * time.Second

// callbackClient posts to loopback addresses and to the configured hosts, whatever their names resolve to. It follows no
// redirects and never retries.
func (s *Server) callbackClient(from net.IP) *http.Client {
	dialer := &net.Dialer{Timeout: callbackTimeout}
	if from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	guarded := *dialer
	guarded.Control = func(_, address string, _ syscall.RawConn) error {
		host, _, err := net.SplitHostPort(address)
		if err != nil || !net.ParseIP(host).IsLoopback() {
			return fmt.Errorf("callbacks go to loopback addresses only")
		}
		return nil
	}
	transport := &http.Transport{
		DisableKeepAlives: true, // every callback has its own connection, as from the operator
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, _ := net.SplitHostPort(address)
			if slices.Contains(s.cfg.CallbackHosts, host) {
				return dialer.DialContext(ctx, network, address)
			}
			return guarded.DialContext(ctx, network, address)
		},
	}
	return &http.Client{
		Timeout: callbackTimeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// mayCall reports whether callbacks in plain http may go to a host.
func (s *Server) mayCall(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback()) || slices.Contains(s.cfg.CallbackHosts, host)
}

// delivered reports whether a delivery was started, even before a restart.
func (s *Server) delivered(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, done := s.ledger.delivered[id]
	return done
}

// deliver posts a callback at most once: it is written down before it is sent, so that a crash loses it instead of repeating
// it. The operator does not repeat callbacks either.
func (s *Server) deliver(id, address string, b Behaviour, payload any) {
	if s.ctx.Err() != nil || s.delivered(id) {
		return
	}
	if !s.write(record{Delivery: &Delivery{ID: id, URL: address, At: s.cfg.Clock().UTC()}}) {
		return
	}
	client := s.callbacks[0]
	if b.offRange {
		client = s.callbacks[1]
	}
	status, _, err := s.post(client, address, payload)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := &s.ledger.deliveries[s.ledger.delivered[id]]
	if d.Status = status; err != nil {
		d.Error = err.Error()
	}
}

// post sends one JSON body in the way of the operator.
func (s *Server) post(client *http.Client, address string, payload any) (int, []byte, error) {
	if address == "" {
		return 0, nil, fmt.Errorf("no address")
	}
	body, err := json.Marshal(payload)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json;charset=UTF-8")
	req.Header.Set("Businessshortcode", s.cfg.Shortcode)
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, answer, err
}

// confirm reports a payment to our number, if an address for it is registered.
func (s *Server) confirm(receipt string, b Behaviour) {
	s.mu.Lock()
	registered := s.ledger.registered
	e := s.ledger.effects[s.ledger.byReceipt[receipt]]
	balance := s.ledger.working
	s.mu.Unlock()
	address := ""
	if registered != nil {
		address = registered.ConfirmationURL
	}
	s.deliver(receipt+"/confirmation", address, b, s.notice(e, balance, b))
}

// notice is the body of confirmations and validations, in the portal's shape.
func (s *Server) notice(e Effect, balance int64, b Behaviour) any {
	form := b.msisdn
	if form == "" {
		form = s.cfg.MSISDN
	}
	return map[string]string{
		"TransactionType": "Pay Bill", "TransID": e.Receipt, "TransTime": e.Time.In(eat).Format(layoutStamp),
		"TransAmount": fmt.Sprintf("%d.00", e.Amount), "BusinessShortCode": s.cfg.Shortcode, "BillRefNumber": e.Reference,
		"InvoiceNumber": "", "OrgAccountBalance": fmt.Sprintf("%d.00", balance), "ThirdPartyTransID": "",
		"MSISDN": disguise(form, e.Phone), "FirstName": strings.ToUpper("payer"), "MiddleName": "", "LastName": "",
	}
}
