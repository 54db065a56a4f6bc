package main

import (
	"fmt"
	"strings"

	"kivuko/activities"
)

// noScreening says that a deployment does without a screening service.
const noScreening = "none"

// ScreeningConfig names a screening service beside the deny list. The protocol is that of activities.HTTPScreener.
type ScreeningConfig struct {
	// The screening service, with the same address for each of its readers; https in production. `none` says that the deny list is
	// all that is asked.
	URL string `env:"URL" for:"flows signer" production:"required"`
	// Sent to the service as a bearer token.
	Token string `env:"TOKEN" for:"flows signer" secret:"true"`
}

// check wants https in production. That the address is set, or says none, is demanded by its tag: a process that merely
// lacks the address, while the others have it, would pay people whom the service refuses.
func (s ScreeningConfig) check(n *need, mode Mode) {
	n.rule(mode != Production || s.URL == "" || s.URL == noScreening || strings.HasPrefix(s.URL, "https://"),
		"KIVUKO_SCREENING_URL must be https in production, or none")
}

// screener is the screening service, nil where the deny list is all there is.
func (c Config) screener() (activities.Screener, error) {
	if c.Screening.URL == "" || c.Screening.URL == noScreening {
		return nil, nil //nolint:nilnil // no service is a choice, and the activities know it
	}
	screener, err := activities.NewHTTPScreener(c.Screening.URL, c.Screening.Token)
	if err != nil {
		return nil, fmt.Errorf("KIVUKO_SCREENING_URL: %w", err)
	}
	return screener, nil
}
