package api

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
)

// tagged answers with one object and the ETag of its version, for If-Match.
func (c *call) tagged(version int64, body any) error {
	c.fc.Set(fiber.HeaderETag, `"`+strconv.FormatInt(version, 10)+`"`)
	return c.json(http.StatusOK, body)
}

// ifMatch returns the version in If-Match, or zero when the request has none. An unknown tag matches no version.
func (c *call) ifMatch() (int64, error) {
	tag := strings.TrimSpace(c.fc.Get(fiber.HeaderIfMatch))
	if tag == "" || tag == "*" {
		return 0, nil
	}
	text, opened := strings.CutPrefix(tag, `"`)
	text, closed := strings.CutSuffix(text, `"`)
	version, err := strconv.ParseInt(text, 10, 64)
	if !opened || !closed || err != nil || version <= 0 {
		return 0, exchange.ChangedMeanwhile()
	}
	return version, nil
}
