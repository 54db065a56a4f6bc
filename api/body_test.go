package api

import (
	"testing"

	"github.com/valyala/fasthttp"
)

// Only what takes a file waits for it: another form has the time of other bodies.
func TestOnlyFilesHaveTimeToArrive(t *testing.T) {
	e := start(t)
	patience := e.server.patience(e.server.routes())
	for path, want := range map[string]bool{filesPath: true, filesPath + "?a=b": true, "/api/v1/auth/login": false, "/?" + filesPath: false} {
		var h fasthttp.RequestHeader
		h.SetRequestURI(path)
		h.SetContentType("multipart/form-data; boundary=x")
		if got := patience(&h).ReadTimeout > 0; got != want {
			t.Errorf("a form to %s has more time: %t", path, got)
		}
		h.SetContentType("application/json")
		if patience(&h).ReadTimeout > 0 {
			t.Errorf("JSON to %s has more time", path)
		}
	}
}
