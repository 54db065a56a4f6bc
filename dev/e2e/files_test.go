package e2e

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"testing"

	"github.com/chromedp/chromedp"

	"kivuko/dev/demo"
	"kivuko/exchange"
)

// redSlip is a picture that can be told from everything around it.
func redSlip(t *testing.T) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 400, 600))
	for at := range m.Pix {
		if at%4 == 0 || at%4 == 3 { // red and opaque
			m.Pix[at] = 255
		}
	}
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// redShare is how much of a picture is red, in percent.
func redShare(raw []byte) (int, error) {
	m, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return 0, err
	}
	red, size := 0, m.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			if c, ok := color.RGBAModel.Convert(m.At(x, y)).(color.RGBA); ok && c.R > 200 && c.G < 60 && c.B < 60 {
				red++
			}
		}
	}
	return 100 * red / (size.X * size.Y), nil
}

// TestProofOpensInABrowser uploads a picture of a slip and opens the PDF that was made from it in Chromium, by a link and under the
// policy that lets a file do nothing: what an officer sees is the slip.
func TestProofOpensInABrowser(t *testing.T) {
	w := openBeside(t)
	b := openBrowser(t)
	vendor := w.as(t, demo.VendorEmail)
	var f struct {
		ID   string `json:"id"`
		Type string `json:"content_type"`
	}
	if err := vendor.Upload(t.Context(), "/api/v1/auth/files", string(exchange.FileOTCProof), "slip.png", redSlip(t), &f); err != nil {
		t.Fatal(err)
	}
	if f.Type != string(exchange.FilePDF) {
		t.Errorf("the slip is a %s", f.Type)
	}
	var link struct {
		URL string `json:"url"`
	}
	if err := vendor.Post(t.Context(), "/api/v1/auth/files/"+f.ID+"/link", "", nil, &link); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(w.testbed.API() + link.URL))
	err := await(t.Context(), timeout, func() error { // the viewer draws when it has loaded
		raw, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			return err
		}
		share, err := redShare(raw)
		if err == nil && share < 5 {
			err = fmt.Errorf("%d %% of the page are red", share)
		}
		return err
	})
	if err != nil {
		t.Fatalf("the browser does not show the slip: %v", err)
	}
	var view struct {
		Items []struct {
			Action string `json:"action"`
		} `json:"audit"`
	}
	if err := w.admin(t).Get(t.Context(), "/api/v1/auth/audit?object_type=file&action=file.viewed&object_id="+f.ID, &view); err != nil || len(view.Items) == 0 {
		t.Errorf("the audit log has %v, %v", view, err)
	}
}
