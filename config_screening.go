package main

import (
	"fmt"
	"strings"

	"kivuko/activities"
	"kivuko/service"
)

// noScreening is the value for a deployment without a screening service.
const noScreening = "none"

// ScreeningConfig names a screening service in addition to the deny list. The protocol is that of service.Screening.
type ScreeningConfig struct {
	// The address of the screening service, the same for all processes; https in production. With `none`, only the deny list is
	// checked.
	URL string `env:"URL" for:"flows signer" production:"required"`
	// Sent to the service as a bearer token.
	Token string `env:"TOKEN" for:"flows signer" secret:"true"`
}

// check requires https in production. The tag requires an address or none: if one process had no address by mistake, it
// would pay parties whom the service refuses.
func (s ScreeningConfig) check(n *need, mode Mode) {
	n.rule(mode != Production || s.URL == "" || s.URL == noScreening || strings.HasPrefix(s.URL, "https://"),
		"KIVUKO_SCREENING_URL must be https in production, or none")
}

// screener returns the screening service, or nil when only the deny list is used.
func (c Config) screener() (activities.Screener, error) {
	if c.Screening.URL == "" || c.Screening.URL == noScreening {
		return nil, nil //nolint:nilnil // the activities accept nil
	}
	screener, err := service.NewScreening(c.Screening.URL, c.Screening.Token)
	if err != nil {
		return nil, fmt.Errorf("KIVUKO_SCREENING_URL: %w", err)
	}
	return screener, nil
}
