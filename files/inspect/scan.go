package inspect

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"regexp"
	"slices"

	"kivuko/exchange"
)

// activeNames are the names that a PDF must not have anywhere, whether its tables lead there or not. They are long enough not to
// occur by chance in the bytes of pictures.
var activeNames = map[string]refusal{
	"JavaScript": scripted, "Launch": launches, "GoToR": launches, "GoToE": carries, "EmbeddedFile": carries, "EmbeddedFiles": carries, "FileAttachment": carries,
	"AdditionalStreams": carries, "SubmitForm": submits, "ImportData": submits, "RichMedia": plays, "RichMediaExecute": plays, "Rendition": plays, "GoTo3DView": plays,
	"Encrypt": {exchange.FileRuleEncrypted, "is encrypted or protected by a password"},
}

// longestName is how far a name is read; with all of its characters written as #xx it has three times the length.
const longestName = 3 * len("AdditionalStreams")

// scan looks for active names in all bytes of a PDF and in all that its streams expand to, and bounds the latter. It returns where the
// streams are that it expanded, and whether each holds objects.
func scan(content []byte) (map[int64]bool, error) {
	if err := findNames(content, true); err != nil {
		return nil, err
	}
	counted, unpacked := map[int64]bool{}, &names{left: maxInflated}
	var unpacker io.ReadCloser
	for at := 0; ; {
		next := bytes.Index(content[at:], keyword)
		if next < 0 {
			return counted, nil
		}
		before := content[at : at+next]
		whole, err := checkObjectStream(before)
		if err != nil {
			return nil, err
		}
		at += next + len(keyword)
		body, found := afterKeyword(content[at:])
		if !found && bytes.HasSuffix(bytes.TrimRight(before, white), []byte(">>")) {
			return nil, damaged("a PDF") // readers differ in where its bytes begin
		}
		err = errNotDeflated
		if len(body) >= 2 && deflated(body) {
			unpacker, err = unpack(unpacker, body)
		}
		if err == nil {
			counted[int64(len(content)-len(body))] = whole
			_, err = io.Copy(unpacked, unpacker)
			err = errors.Join(err, unpacked.end())
		}
		if r, refused := errors.AsType[refusal](err); refused {
			return nil, r
		}
		// Another stream that breaks off counts as far as it goes: readers show that part too.
		if err != nil && whole {
			return nil, damaged("a PDF")
		}
	}
}

var errNotDeflated = errors.New("not a zlib stream")

// white are the characters between words (ISO 32000-1, 7.2.2).
const white = " \t\r\n\f\x00"

// keyword comes before the bytes of each stream, and is the end of what comes after them.
var keyword = []byte("stream")

// afterKeyword is what comes after the end of the keyword's line, before which some readers overlook white space, and whether there is
// such an end.
func afterKeyword(rest []byte) ([]byte, bool) {
	line := bytes.TrimLeft(rest, " \t")
	if body := bytes.TrimPrefix(bytes.TrimPrefix(line, []byte("\r")), []byte("\n")); len(body) < len(line) {
		return body, true
	}
	return rest, false
}

// A stream of objects may be deflated, and nothing else: then scan has looked into it, whether a table leads there or not.
var (
	objectStream = regexp.MustCompile(`obj\s*<<([^()<>%#]*>)>\s*$`)
	objectKeys   = []string{"Type", "ObjStm", "N", "First", "Length", "Extends", "Filter", "FlateDecode", "Fl"}
)

// checkObjectStream refuses a stream of objects with another filter or with parameters, by what is before its bytes, and reports
// whether it is one that is deflated.
func checkObjectStream(before []byte) (bool, error) {
	if !hasName(before, "ObjStm") {
		return false, nil
	}
	dict := objectStream.FindSubmatch(before)
	if dict == nil {
		return false, damaged("a PDF")
	}
	filtered, deflates := 0, 0
	for name := range namesIn(dict[1]) {
		switch name {
		case "Filter":
			filtered++
		case "FlateDecode", "Fl":
			deflates++
		}
		if !slices.Contains(objectKeys, name) {
			return false, damaged("a PDF")
		}
	}
	if filtered != deflates || filtered > 1 {
		return false, damaged("a PDF")
	}
	return filtered > 0, nil
}

// deflated reports whether bytes begin like a zlib stream (RFC 1950).
func deflated(b []byte) bool {
	return b[0]&0x0f == 8 && binary.BigEndian.Uint16(b)%31 == 0
}

// unpack reads a zlib stream, by the reader of the one before, because a new one takes 40 KB.
func unpack(used io.ReadCloser, body []byte) (io.ReadCloser, error) {
	if again, ok := used.(zlib.Resetter); ok {
		return used, again.Reset(bytes.NewReader(body), nil)
	}
	return zlib.NewReader(bytes.NewReader(body))
}

// names looks for active names in what is written to it, and refuses more than a number of bytes.
type names struct {
	left int64
	tail []byte // the end of the last piece, where a name may be cut off
}

func (n *names) Write(p []byte) (int, error) {
	if n.left -= int64(len(p)); n.left < 0 {
		return 0, inflates()
	}
	piece := append(n.tail, p...)
	if err := findNames(piece, false); err != nil {
		return 0, err
	}
	n.tail = append(n.tail[:0], piece[max(0, len(piece)-longestName-2):]...)
	return len(p), nil
}

// end looks at the name at the end of a stream.
func (n *names) end() error {
	_, err := n.Write([]byte{'\n'})
	n.tail = n.tail[:0]
	return err
}

// findNames refuses bytes with an active name. Encryption is named in the file itself, never in a stream.
func findNames(b []byte, file bool) error {
	for name := range namesIn(b) {
		if r, active := activeNames[name]; active && (file || r.code != exchange.FileRuleEncrypted) {
			return r
		}
	}
	return nil
}

// namesIn goes through the names that are no longer than those that are looked for.
func namesIn(b []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			next := bytes.IndexByte(b, '/')
			if next < 0 {
				return
			}
			b = b[next+1:]
			if name, whole := readName(b); whole && !yield(name) {
				return
			}
		}
	}
}

func hasName(b []byte, name string) bool {
	for found := range namesIn(b) {
		if found == name {
			return true
		}
	}
	return false
}

// readName reads the name at the beginning of bytes, with its #xx decoded, and reports whether it found its end (ISO 32000-1, 7.3.5).
func readName(b []byte) (string, bool) {
	var name []byte
	for i := 0; i < len(b) && i <= longestName; i++ {
		c := b[i]
		switch {
		case bytes.IndexByte([]byte("()<>[]{}/% \t\r\n\f\x00"), c) >= 0:
			return string(name), true
		case c == '#' && i+2 < len(b) && hexDigit(b[i+1]) >= 0 && hexDigit(b[i+2]) >= 0:
			c = byte(hexDigit(b[i+1])<<4 | hexDigit(b[i+2])) //nolint:gosec // two digits
			i += 2
		}
		name = append(name, c)
	}
	return "", false
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// others are formats that programs find at a place of their own, whatever a file begins with.
var others = []struct {
	mark string
	at   int // -1: anywhere
}{{"Rar!\x1a\x07", -1}, {"7z\xbc\xaf\x27\x1c", -1}, {"MSCF\x00\x00\x00\x00", -1}, {"ustar", 257}, {"CD001", 32769}}

// endOfArchive is where programs look for the record that ends a ZIP archive (APPNOTE.TXT, 4.3.16): none goes further from the end.
const endOfArchive = 68 << 10

// archived reports whether a file is an archive too: a ZIP is read from its end, others as told above. Programs repair each in its own
// way what the record says, so its mark is enough; by chance it is in one of 60,000 files.
func archived(content []byte) bool {
	for _, o := range others {
		if o.at < 0 && bytes.Contains(content, []byte(o.mark)) || o.at >= 0 && len(content) > o.at && bytes.HasPrefix(content[o.at:], []byte(o.mark)) {
			return true
		}
	}
	return bytes.Contains(content[max(0, len(content)-endOfArchive):], []byte("PK\x05\x06"))
}
