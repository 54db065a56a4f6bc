package api

import (
	"strconv"
	"strings"

	"kivuko/exchange"
)

// byteRange is a part of a content.
type byteRange struct{ from, length int64 }

// rangeOf is the part that a request asks for (RFC 9110, 14.2): all of it without a range, with several, with one that can't be read,
// or when the caller's copy, which If-Range names, is another one. CodeRange when no byte is in the range.
func rangeOf(asked, ifRange, tag string, size int64) (byteRange, error) {
	all := byteRange{0, size}
	spec, isBytes := strings.CutPrefix(asked, "bytes=")
	if !isBytes || strings.Contains(spec, ",") || (ifRange != "" && ifRange != tag) {
		return all, nil
	}
	first, last, dashed := strings.Cut(strings.TrimSpace(spec), "-")
	from, fromRead := offset(first)
	to, toRead := offset(last)
	switch {
	case !dashed || (first == "" && last == "") || !fromRead || !toRead || (first != "" && last != "" && to < from):
		return all, nil
	case first == "": // the last bytes
		from, to = max(0, size-to), size-1
	case last == "" || to >= size:
		to = size - 1
	}
	if from > to {
		return all, exchange.Errorf(exchange.CodeRange, "The file has %d bytes; the range is beyond them.", size)
	}
	return byteRange{from, to - from + 1}, nil
}

// offset reads a number of a range; 0 where it is left out. A number beyond all sizes is the largest one. It reports whether the text
// is a number.
func offset(text string) (int64, bool) {
	const longest = 18
	if text == "" {
		return 0, true
	}
	if len(text) > longest {
		text = strings.Repeat("9", longest)
	}
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}
