package inspect

import (
	"bytes"
	"slices"
)

// decisive are the keys that say what a dictionary is or does. Where one is given twice, some readers take the first and some the last.
var decisive = []string{
	"S", "Type", "Subtype", "A", "AA", "OpenAction", "Next", "N", "F", "Root", "Prev", "Pages", "Kids", "Annots", "Names", "AcroForm", "Filter", "Width", "Height",
}

// rereadings is how often a file may be read over. Objects that begin in one another are read again and again.
const rereadings = 8

// saysTwice reports whether a dictionary in a file gives a decisive key twice: in an object, or in a trailer. Programs that write
// PDFs give other keys twice now and then.
func saysTwice(content []byte) bool {
	left := rereadings * len(content)
	for _, start := range [][]byte{[]byte("obj"), []byte("trailer")} {
		for at := 0; ; {
			next := bytes.Index(content[at:], start)
			if next < 0 {
				break
			}
			ends := bytes.HasSuffix(content[:at+next], []byte("end"))
			if at += next + len(start); ends || at == len(content) || bytes.IndexByte(delimiters, content[at]) < 0 {
				continue
			}
			w := words{rest: content[at:]}
			if w.twice(true) {
				return true
			}
			if left -= len(content) - at - len(w.rest); left < 0 {
				return true // which no program writes
			}
		}
	}
	return false
}

// delimiters end a name or a word (ISO 32000-1, 7.2.2).
var delimiters = []byte("()<>[]{}/% \t\r\n\f\x00")

// words goes through objects word by word.
type words struct {
	rest []byte
	open []level
}

// level is an open dictionary or array.
type level struct {
	dict  bool
	value bool // the next thing is the value of the last key
	keys  []string
}

// twice reports whether a dictionary gives a decisive key twice. Of a file it looks at one object, up to the word at its end; in a stream
// of objects there is no such word.
func (w *words) twice(file bool) bool {
	for len(w.rest) > 0 {
		c, wide := w.rest[0], len(w.rest) > 1 && w.rest[1] == w.rest[0]
		w.rest = w.rest[1:]
		switch {
		case bytes.IndexByte([]byte(white), c) >= 0 || c == '{' || c == '}':
		case c == '%':
			w.skip(bytes.IndexAny(w.rest, "\r\n"))
		case c == '(':
			w.given()
			w.skip(endOfString(w.rest))
		case c == '<' && !wide:
			w.given()
			w.skip(bytes.IndexByte(w.rest, '>') + 1)
		case c == '<':
			w.rest = w.rest[1:]
			w.enter(true)
		case c == '[':
			w.enter(false)
		case c == '>' && wide:
			w.rest = w.rest[1:]
			w.leave()
		case c == ']':
			w.leave()
		case c == '/':
			if w.name() {
				return true
			}
		default:
			w.given()
			word := append([]byte{c}, w.rest[:wordLength(w.rest)]...)
			w.rest = w.rest[len(word)-1:]
			if file && (bytes.Equal(word, keyword) || bytes.Equal(word, []byte("endobj")) || bytes.Equal(word, []byte("startxref"))) {
				return false
			}
		}
		if len(w.open) > maxNesting {
			return true // which is refused anyway
		}
	}
	return false
}

// skip goes on behind a number of bytes; to the end when it is below zero.
func (w *words) skip(n int) {
	if n < 0 {
		n = len(w.rest)
	}
	w.rest = w.rest[n:]
}

// given notes that the value of the last key has begun.
func (w *words) given() {
	if n := len(w.open); n > 0 {
		w.open[n-1].value = false
	}
}

func (w *words) enter(dict bool) {
	w.given()
	w.open = append(w.open, level{dict: dict})
}

func (w *words) leave() { w.open = w.open[:max(0, len(w.open)-1)] }

// name reads a name, and reports whether it is a decisive key that its dictionary gave before.
func (w *words) name() bool {
	name, _ := readName(w.rest)
	w.rest = w.rest[wordLength(w.rest):]
	if len(w.open) == 0 {
		return false
	}
	in := &w.open[len(w.open)-1]
	if !in.dict || in.value {
		in.value = false
		return false
	}
	in.value = true
	if !slices.Contains(decisive, name) {
		return false
	}
	again := slices.Contains(in.keys, name)
	in.keys = append(in.keys, name)
	return again
}

// wordLength is the length of a name or word at the beginning of bytes.
func wordLength(b []byte) int {
	if n := bytes.IndexAny(b, string(delimiters)); n >= 0 {
		return n
	}
	return len(b)
}

// endOfString is where a string in brackets ends, which may have more of them inside (ISO 32000-1, 7.3.4.2); below zero when it does not.
func endOfString(b []byte) int {
	depth := 1
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}
