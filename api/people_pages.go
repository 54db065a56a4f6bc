package api

import (
	"embed"
	"net/http"

	"github.com/gofiber/fiber/v2"
)

// The page of one's own account: invitations, passwords, passkeys and sessions. It has no script but its own.
//
//go:embed people
var peopleFiles embed.FS

// peoplePolicy lets the page load only its own files and call only this service. Nothing else may frame it.
const peoplePolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'"

// peopleTypes are the files of the page, with their media types.
var peopleTypes = map[string]string{"page.css": "text/css; charset=utf-8", "page.js": "text/javascript; charset=utf-8"}

// peoplePages are the paths at which the page is served; the last part says what it is for.
var peoplePages = map[string]bool{"account": true, "invitation": true, "reset": true}

func (s *server) peoplePage(c *call) error {
	name := c.fc.Params("page")
	media, file := "text/html; charset=utf-8", "page.html"
	if t := peopleTypes[name]; t != "" {
		media, file = t, name
	} else if !peoplePages[name] {
		return notFound()
	}
	raw, err := peopleFiles.ReadFile("people/" + file)
	if err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderContentSecurityPolicy, peoplePolicy)
	c.fc.Set("Permissions-Policy", "publickey-credentials-create=(self), publickey-credentials-get=(self)")
	c.fc.Set(fiber.HeaderContentType, media)
	return c.fc.Status(http.StatusOK).Send(raw)
}
