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
	URL   string `env:"URL"` // "" or "none": the deny list is all there is
	Token string `env:"TOKEN"`
}

// check has production say that it does without a service. A process that merely lacks the address, while the others
// have it, would pay people whom the service refuses.
func (s ScreeningConfig) check(n *need, mode Mode) {
	if mode != Production || s.URL == noScreening {
		return
	}
	if s.URL == "" {
		n.rule(false, "KIVUKO_SCREENING_URL must be set in production for each process that screens (queues flows and signer-*): the service's address, or "+
			noScreening+" where the deny list shall be all that is asked")
		return
	}
	n.rule(strings.HasPrefix(s.URL, "https://"), "KIVUKO_SCREENING_URL must be https in production")
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
