package main

import (
	"fmt"
	"strings"

	"kivuko/exchange"
	"kivuko/notify"
	"kivuko/notify/africastalking"
	"kivuko/notify/smtp"
)

// NotifyConfig is who carries messages to people: codes, links and notices.
type NotifyConfig struct {
	// The mail server: `smtps://user:password@host:465`, or `smtp://user:password@host:587`, which has to offer STARTTLS. A server
	// on this machine may be `smtp+plain://host:port`.
	SMTP string `env:"SMTP_URL" for:"api" production:"required" secret:"true"`
	// The sender of e-mails, such as `Kivuko <security@kivuko.example>`.
	From string `env:"MAIL_FROM" envDefault:"Kivuko <security@kivuko.example>" for:"api"`
	// The address of Africa's Talking; its live service unless set.
	SMSURL string `env:"SMS_URL" envDefault:"https://api.africastalking.com" for:"api" production:"https"`
	// The user name of the account at Africa's Talking.
	SMSUsername string `env:"SMS_USERNAME" for:"api" production:"required"`
	// The API key of that account.
	SMSKey string `env:"SMS_KEY" for:"api" production:"required" secret:"true"`
	// The registered name that SMS come from. If empty, the account's own.
	SMSSender string `env:"SMS_SENDER" for:"api"`
}

// check reports carriers that can't be used. In production codes and links leave over TLS.
func (c NotifyConfig) check(n *need, mode Mode) {
	_, err := c.senders()
	n.rule(err == nil, fmt.Sprint(err))
	n.rule(mode != Production || !strings.HasPrefix(c.SMTP, "smtp+plain:"), "KIVUKO_NOTIFY_SMTP_URL must be smtps:// or smtp:// in production")
}

// senders returns the carriers that are configured.
func (c NotifyConfig) senders() (map[exchange.MessageChannel]notify.Sender, error) {
	all := map[exchange.MessageChannel]notify.Sender{}
	if c.SMTP != "" {
		s, err := smtp.New(smtp.Config{URL: c.SMTP, From: c.From})
		if err != nil {
			return nil, fmt.Errorf("KIVUKO_NOTIFY_SMTP_URL: %w", err)
		}
		all[exchange.ByEmail] = s
	}
	if c.SMSKey != "" {
		all[exchange.BySMS] = africastalking.New(africastalking.Config{BaseURL: c.SMSURL, Username: c.SMSUsername, APIKey: c.SMSKey, Sender: c.SMSSender})
	}
	return all, nil
}
