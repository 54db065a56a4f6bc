// Package smtp sends messages as e-mails through a mail server.
package smtp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/wneessen/go-mail"

	"kivuko/notify"
)

// sendTimeout bounds one e-mail, from the connection to the server's acceptance.
const sendTimeout = 20 * time.Second

// Config names the mail server.
type Config struct {
	// URL is smtps://user:password@host:465 with TLS from the start, smtp://user:password@host:587 with STARTTLS, which is
	// then required, or, for a server on this machine, smtp+plain://host:port.
	URL string
	// From is the sender, as "Kivuko <security@example.com>".
	From string
}

// Sender sends e-mails. Each has a connection of its own: there are few.
type Sender struct {
	client *mail.Client
	from   string
}

// New reads the configuration. It does not connect.
func New(c Config) (*Sender, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" || u.Port() == "" {
		return nil, errors.New("the address of the mail server must be smtps://, smtp:// or smtp+plain:// with host and port")
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return nil, fmt.Errorf("the port of the mail server: %w", err)
	}
	options := []mail.Option{mail.WithPort(port), mail.WithTimeout(sendTimeout)}
	switch u.Scheme {
	case "smtps":
		options = append(options, mail.WithSSL())
	case "smtp":
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory))
	case "smtp+plain":
		options = append(options, mail.WithTLSPolicy(mail.NoTLS))
	default:
		return nil, fmt.Errorf("the address of the mail server begins with %q instead of smtps, smtp or smtp+plain", u.Scheme)
	}
	if u.User != nil {
		password, _ := u.User.Password()
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(u.User.Username()), mail.WithPassword(password))
	}
	client, err := mail.NewClient(u.Hostname(), options...)
	if err != nil {
		return nil, fmt.Errorf("mail server: %w", err)
	}
	if err := mail.NewMsg().From(c.From); err != nil {
		return nil, fmt.Errorf("the sender of e-mails is no address: %w", err)
	}
	return &Sender{client, c.From}, nil
}

// Send gives a message to the mail server.
func (s *Sender) Send(ctx context.Context, m notify.Message) error {
	e := mail.NewMsg()
	if err := errors.Join(e.From(s.from), e.To(m.To)); err != nil {
		return fmt.Errorf("%w: no address of an e-mail", notify.ErrRefused)
	}
	e.Subject(m.Subject)
	e.SetMessageIDWithValue(m.ID.String() + "@kivuko")
	e.SetDate()
	e.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no out-of-office answers
	e.SetBodyString(mail.TypeTextPlain, m.Text)
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := s.client.DialAndSendWithContext(ctx, e)
	if err == nil {
		return nil
	}
	// The server's words may repeat the address, so only its code is kept.
	if sent, ok := errors.AsType[*mail.SendError](err); ok {
		if !sent.IsTemp() && sent.ErrorCode() >= 500 {
			return fmt.Errorf("%w: the mail server answered %d", notify.ErrRefused, sent.ErrorCode())
		}
		return fmt.Errorf("the mail server answered %d", sent.ErrorCode())
	}
	return errors.New("the mail server can't be reached, or refuses our credentials")
}
