package inspect

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"kivuko/exchange"
)

// flag is a picture whose left half is red and whose right half is blue.
func flag(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			c := color.NRGBA{R: 255, A: 255}
			if x >= width/2 {
				c = color.NRGBA{B: 255, A: 255}
			}
			m.SetNRGBA(x, y, c)
		}
	}
	return m
}

func asPNG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func asJPEG(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, m, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// turned adds Exif data with an orientation to a JPEG picture.
func turned(jpg []byte, order binary.AppendByteOrder, mark string, orientation uint16) []byte {
	tiff := order.AppendUint32(order.AppendUint16([]byte(mark), 42), 8)
	tiff = order.AppendUint16(tiff, 1)
	tiff = order.AppendUint16(order.AppendUint16(tiff, 0x0112), 3)
	tiff = order.AppendUint32(tiff, 1)
	tiff = order.AppendUint32(order.AppendUint16(order.AppendUint16(tiff, orientation), 0), 0)
	segment := append([]byte("Exif\x00\x00"), tiff...)
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(segment)+2))
	return append(append(head, segment...), jpg[2:]...)
}

func TestPicturesBecomePDFs(t *testing.T) {
	clear := image.NewNRGBA(image.Rect(0, 0, 30, 20))
	deep := image.NewNRGBA64(image.Rect(0, 0, 30, 20))
	for name, c := range map[string]struct {
		kind    exchange.FileType
		content []byte
	}{
		"a PNG":              {exchange.FilePNG, asPNG(t, flag(40, 20))},
		"a transparent PNG":  {exchange.FilePNG, asPNG(t, clear)},
		"a deep PNG":         {exchange.FilePNG, asPNG(t, deep)},
		"a gray PNG":         {exchange.FilePNG, asPNG(t, image.NewGray(image.Rect(0, 0, 3, 2000)))},
		"a JPEG":             {exchange.FileJPEG, asJPEG(t, flag(40, 20))},
		"a gray JPEG":        {exchange.FileJPEG, asJPEG(t, image.NewGray(image.Rect(0, 0, 30, 20)))},
		"a JPEG on its side": {exchange.FileJPEG, turned(asJPEG(t, flag(40, 20)), binary.LittleEndian, "II", 6)},
	} {
		t.Run(name, func(t *testing.T) {
			v, made := verdictOf(t, c.kind, c.content)
			if v.Code != "" || v.Pages != 1 {
				t.Fatalf("verdict %+v", v)
			}
			if again, _ := verdictOf(t, exchange.FilePDF, made); again.Code != "" || again.Pages != 1 {
				t.Errorf("the PDF is refused itself: %+v", again)
			}
		})
	}
}

// A picture with much in it makes a PDF that is no larger than a file may be.
func TestMadePDFsAreNoLargerThanFiles(t *testing.T) {
	noise := image.NewGray(image.Rect(0, 0, 4000, 4000))
	seed := uint32(1)
	for at := range noise.Pix {
		seed = seed*1664525 + 1013904223
		noise.Pix[at] = uint8(seed >> 24)
	}
	content := &bytes.Buffer{}
	if err := jpeg.Encode(content, noise, &jpeg.Options{Quality: 40}); err != nil || content.Len() > exchange.MaxFileSize {
		t.Fatalf("%d bytes are too many to come so far, %v", content.Len(), err)
	}
	v, made := verdictOf(t, exchange.FileJPEG, content.Bytes())
	if v.Code != "" || len(made) > exchange.MaxFileSize {
		t.Errorf("verdict %+v, made %d bytes of %d", v, len(made), content.Len())
	}
}

func TestHarmfulPicturesAreRefused(t *testing.T) {
	wide := asPNG(t, flag(4, 4))
	binary.BigEndian.PutUint32(wide[16:], 60_000) // the check sum is wrong now too
	for name, c := range map[string]struct {
		kind    exchange.FileType
		content []byte
		code    string
	}{
		"a picture that is a PDF":     {exchange.FileJPEG, append([]byte("\xff\xd8\xff\xfe\x00\x0a%PDF-1.7"), asJPEG(t, flag(4, 4))[2:]...), exchange.FileRulePolyglot},
		"a picture that is a ZIP":     {exchange.FileJPEG, append(asJPEG(t, flag(4, 4)), emptyArchive...), exchange.FileRulePolyglot},
		"a PNG that goes on":          {exchange.FilePNG, append(asPNG(t, flag(4, 4)), "<script>"...), exchange.FileRulePolyglot},
		"a JPEG of a billion points":  {exchange.FileJPEG, sized(asJPEG(t, flag(16, 16)), 65_000, 65_000), exchange.FileRuleInflates},
		"a JPEG that is wide and low": {exchange.FileJPEG, sized(asJPEG(t, flag(16, 16)), 65_000, 1), exchange.FileRuleInflates},
		"a wrong check sum":           {exchange.FilePNG, wide, exchange.FileRuleDamaged},
		"half a PNG":                  {exchange.FilePNG, asPNG(t, flag(400, 400))[:300], exchange.FileRuleDamaged},
		"half a JPEG":                 {exchange.FileJPEG, asJPEG(t, flag(400, 400))[:600], exchange.FileRuleDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			v, made := verdictOf(t, c.kind, c.content)
			if v.Code != c.code || v.Message == "" || len(made) > 0 {
				t.Errorf("verdict %+v with %d bytes, want %s", v, len(made), c.code)
			}
		})
	}
}

// sized changes the size that a JPEG says it has.
func sized(jpg []byte, width, height uint16) []byte {
	at := bytes.Index(jpg, []byte{0xff, 0xc0})
	out := bytes.Clone(jpg)
	binary.BigEndian.PutUint16(out[at+5:], height)
	binary.BigEndian.PutUint16(out[at+7:], width)
	return out
}

func TestOrientationIsRead(t *testing.T) {
	plain := asJPEG(t, flag(16, 16))
	if got := orientation(plain); got != 1 {
		t.Errorf("a picture without Exif data lies as %d", got)
	}
	for n := uint16(1); n <= 8; n++ {
		for mark, order := range map[string]binary.AppendByteOrder{"II": binary.LittleEndian, "MM": binary.BigEndian} {
			if got := orientation(turned(plain, order, mark, n)); got != int(n) {
				t.Errorf("%s: %d is read as %d", mark, n, got)
			}
		}
	}
	for _, broken := range [][]byte{turned(plain, binary.BigEndian, "MM", 77), turned(plain, binary.BigEndian, "MM", 6)[:20], {0xff, 0xd8, 0xff, 0xe1, 0, 0}} {
		if got := orientation(broken); got != 1 {
			t.Errorf("broken Exif data is read as %d", got)
		}
	}
}

func TestStatementsAreToldByTheirContent(t *testing.T) {
	const head = `<?xml version="1.0" encoding="UTF-8"?>`
	const statement = head + `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt/></Document>`
	for name, c := range map[string]struct {
		kind    exchange.FileType
		content string
		code    string
	}{
		"a statement":           {exchange.FileXML, statement, ""},
		"another message":       {exchange.FileXML, head + `<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.03"/>`, exchange.FileRuleType},
		"a page of the web":     {exchange.FileXML, `<html xmlns="http://www.w3.org/1999/xhtml"></html>`, exchange.FileRuleType},
		"a document type":       {exchange.FileXML, `<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>` + statement, exchange.FileRuleMarkup},
		"another character set": {exchange.FileXML, `<?xml version="1.0" encoding="ISO-8859-1"?><Document/>`, exchange.FileRuleDamaged},
		"no element":            {exchange.FileXML, head, exchange.FileRuleDamaged},
		"text with a zero":      {exchange.FileXML, statement[:len(statement)-1] + "\x00>", exchange.FileRuleDamaged},
		"a table":               {exchange.FileCSV, "date,amount\n2026-01-31,10.50\n", ""},
		"a table with a zero":   {exchange.FileCSV, "date,amount\n2026-01-31,\x0010.50\n", exchange.FileRuleDamaged},
		"a table in Latin-1":    {exchange.FileCSV, "name\nJos\xe9\n", exchange.FileRuleDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			if v, _ := verdictOf(t, c.kind, []byte(c.content)); v.Code != c.code {
				t.Errorf("verdict %+v, want %q", v, c.code)
			}
		})
	}
}
