package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/jpeg"
	"image/png"

	"kivuko/exchange"
)

// Limits of a picture, and how it is written.
const (
	maxDecoded  = 160 << 20 // bytes that a picture takes when it is decoded
	maxSide     = 20_000    // points
	paperWidth  = 595       // A4 in points of 1/72 inch
	paperHeight = 842
)

// qualities are those of the JPEG inside the PDF, best first: the first one whose PDF is no larger than a file may be is taken.
var qualities = []int{90, 75, 50, 25}

// convert makes a PDF with one page from a picture. It holds the picture's points anew, so nothing else that came with the picture
// (places, comments, another format's bytes) is in it.
func convert(t exchange.FileType, content []byte) (*bytes.Buffer, error) {
	if archived(content) || bytes.Contains(content[:min(len(content), tailLength)], []byte("%PDF-")) {
		return nil, polyglot()
	}
	config, decode, what := jpeg.DecodeConfig, jpeg.Decode, "a JPEG picture"
	if t == exchange.FilePNG {
		config, decode, what = png.DecodeConfig, png.Decode, "a PNG picture"
	}
	size, err := config(bytes.NewReader(content))
	if err != nil || size.Width < 1 || size.Height < 1 {
		return nil, damaged(what)
	}
	if size.Width > maxSide || size.Height > maxSide || size.Width*size.Height > maxDecoded/pointSize(size.ColorModel) {
		return nil, tooManyPoints()
	}
	in := bytes.NewReader(content)
	picture, err := decode(in)
	if err != nil {
		return nil, damaged(what)
	}
	if t == exchange.FilePNG && in.Len() > 0 {
		return nil, polyglot()
	}
	turn := 1
	if t == exchange.FileJPEG {
		turn = orientation(content)
	}
	_, gray := picture.(*image.Gray)
	picture = onPaper(picture)
	for _, quality := range qualities {
		points := &bytes.Buffer{}
		if err := jpeg.Encode(points, picture, &jpeg.Options{Quality: quality}); err != nil {
			return nil, err
		}
		if pdf := page(points.Bytes(), size.Width, size.Height, gray, turn); pdf.Len() <= exchange.MaxFileSize {
			return pdf, nil
		}
	}
	return nil, tooManyPoints()
}

func tooManyPoints() error {
	return refuse(exchange.FileRuleInflates, "has too many points; send a smaller picture")
}

// pointSize is how many bytes a point takes while a picture is decoded. A progressive JPEG keeps three coefficients of four bytes for
// every two points.
func pointSize(m color.Model) int {
	switch m {
	case color.NRGBA64Model, color.RGBA64Model:
		return 8 + 4
	case color.YCbCrModel, color.GrayModel, color.CMYKModel:
		return 6
	}
	return 4 + 4
}

// onPaper lays a picture that may be transparent on white. The encoder takes the others as they are.
func onPaper(picture image.Image) image.Image {
	switch picture.(type) {
	case *image.YCbCr, *image.Gray:
		return picture
	}
	paper := image.NewRGBA(picture.Bounds())
	draw.Draw(paper, paper.Bounds(), image.White, image.Point{}, draw.Src)
	draw.Draw(paper, paper.Bounds(), picture, picture.Bounds().Min, draw.Over)
	return paper
}

// placements are the matrices that draw a picture of the unit square upright, by its orientation (Exif 2.32, tag 274).
var placements = map[int][6]int{
	1: {1, 0, 0, 1, 0, 0}, 2: {-1, 0, 0, 1, 1, 0}, 3: {-1, 0, 0, -1, 1, 1}, 4: {1, 0, 0, -1, 0, 1},
	5: {0, -1, -1, 0, 1, 1}, 6: {0, -1, 1, 0, 0, 1}, 7: {0, 1, 1, 0, 0, 0}, 8: {0, 1, -1, 0, 1, 0},
}

// page writes a PDF with a JPEG picture on one page, no larger than A4 (ISO 32000-1, 7.5).
func page(jpg []byte, width, height int, gray bool, turn int) *bytes.Buffer {
	w, h := width, height
	if turn > 4 { // lies on its side
		w, h = height, width
	}
	across, down := paperWidth, paperHeight
	if w > h {
		across, down = down, across
	}
	if w*down > h*across {
		down = max(1, h*across/w)
	} else {
		across = max(1, w*down/h)
	}
	space := "DeviceRGB"
	if gray {
		space = "DeviceGray"
	}
	m := placements[turn]
	drawing := fmt.Sprintf("q %d 0 0 %d 0 0 cm %d %d %d %d %d %d cm /Picture Do Q\n", across, down, m[0], m[1], m[2], m[3], m[4], m[5])

	out := bytes.NewBufferString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	var starts []int
	object := func(format string, args ...any) {
		starts = append(starts, out.Len())
		fmt.Fprintf(out, "%d 0 obj\n"+format+"\nendobj\n", append([]any{len(starts)}, args...)...)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
	object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Resources << /XObject << /Picture 5 0 R >> >> /Contents 4 0 R >>", across, down)
	object("<< /Length %d >>\nstream\n%sendstream", len(drawing), drawing)
	object("<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /%s /BitsPerComponent 8 /Filter /DCTDecode /Length %d >>\nstream\n%s\nendstream",
		width, height, space, len(jpg), jpg)
	table := out.Len()
	fmt.Fprintf(out, "xref\n0 %d\n0000000000 65535 f \n", len(starts)+1)
	for _, at := range starts {
		fmt.Fprintf(out, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(out, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(starts)+1, table)
	return out
}

// orientation is how a JPEG picture lies, from 1 (upright) to 8, by the first directory of its Exif data.
func orientation(content []byte) int {
	for at := 2; at+4 <= len(content) && content[at] == 0xff; {
		marker, length := content[at+1], int(binary.BigEndian.Uint16(content[at+2:]))
		if marker == 0xda || length < 2 || at+2+length > len(content) { // the picture itself begins
			break
		}
		if segment := content[at+4 : at+2+length]; marker == 0xe1 && bytes.HasPrefix(segment, []byte("Exif\x00\x00")) {
			return orientationIn(segment[6:])
		}
		at += 2 + length
	}
	return 1
}

func orientationIn(tiff []byte) int {
	const header, entry, tag = 8, 12, 0x0112
	if len(tiff) < header {
		return 1
	}
	var order binary.ByteOrder = binary.BigEndian
	if bytes.HasPrefix(tiff, []byte("II")) {
		order = binary.LittleEndian
	}
	at := int(order.Uint32(tiff[4:]))
	if at < header || at > len(tiff)-2 {
		return 1
	}
	for n := int(order.Uint16(tiff[at:])); n > 0 && at+2+entry <= len(tiff); n, at = n-1, at+entry {
		if e := tiff[at+2:]; order.Uint16(e) == tag {
			if turn := int(order.Uint16(e[8:])); placements[turn] != [6]int{} {
				return turn
			}
			return 1
		}
	}
	return 1
}
