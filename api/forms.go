package api

import (
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Limits of forms with a file. Each is part of the contract.
const (
	fieldFile     = "file"
	maxFormFields = 16
	maxFormField  = 4 << 10  // bytes of one field
	maxPartHead   = 16 << 10 // bytes of the headers of a field, and of what is between two
	maxUploads    = 16       // uploads that one process takes at a time
	maxOwnUploads = 4        // of one merchant with its subvendors, or of one member of the staff
)

// uploads are the running uploads of this process. Slow ones of one merchant leave room for others.
type uploads struct {
	mu  sync.Mutex
	all int
	of  map[uuid.UUID]int
}

// take reports whether a merchant or member of the staff may upload now. If so, give ends the upload.
func (u *uploads) take(by uuid.UUID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == maxUploads || u.of[by] == maxOwnUploads {
		return false
	}
	if u.of == nil {
		u.of = map[uuid.UUID]int{}
	}
	u.all++
	u.of[by]++
	return true
}

func (u *uploads) give(by uuid.UUID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all--
	if u.of[by]--; u.of[by] == 0 {
		delete(u.of, by)
	}
}

// formReader bounds what the parser of a form reads where no file is.
type formReader struct {
	in   io.Reader
	left int64 // negative: unbounded, because who reads the file counts
}

var errFormHead = exchange.Errorf(exchange.CodeMalformed, "A part of the form has too long headers.")

func (r *formReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, errFormHead
	}
	if r.left > 0 && int64(len(b)) > r.left {
		b = b[:r.left]
	}
	n, err := r.in.Read(b)
	if r.left > 0 {
		r.left -= int64(n)
	}
	return n, err
}

// errForm is the error for a body that is no form.
func errForm(err error) error {
	if own, ok := errors.AsType[*exchange.Error](err); ok {
		return own
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return exchange.Wrap(exchange.CodeMalformed, err, "The form ends too early.")
	}
	return unreadable(err)
}

// upload reads a form with one file, which it hands to take together with the fields that came before it. The fields after it are in
// the form that comes back. The file is read as it arrives; what take leaves of it after an error is not read.
func (c *call) upload(take func(before *form, name string, content io.Reader) error) (*form, error) {
	if len(c.fc.Request().Header.ContentEncoding()) > 0 {
		return nil, exchange.Errorf(exchange.CodeMediaType, "Send the body without a Content-Encoding.")
	}
	media, params, err := mime.ParseMediaType(string(c.fc.Request().Header.ContentType()))
	if err != nil || media != mediaForm || params["boundary"] == "" || !c.fc.Request().IsBodyStream() {
		return nil, exchange.Errorf(exchange.CodeMediaType, "Send the body as multipart/form-data.")
	}
	in := &formReader{in: c.fc.Request().BodyStream()}
	parts := multipart.NewReader(in, params["boundary"])
	bad := &[]exchange.FieldError{}
	f, taken := &form{values: map[string]any{}, read: map[string]bool{fieldFile: true}, bad: bad}, false
	for n := 0; ; n++ {
		in.left = maxPartHead
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errForm(err)
		}
		if n == maxFormFields {
			return nil, exchange.Errorf(exchange.CodeMalformed, "The form has more than %d fields.", maxFormFields)
		}
		in.left = -1
		if part.FormName() == fieldFile {
			err = c.fileOf(f, part, &taken, take)
		} else {
			err = f.part(part)
		}
		if err != nil {
			return nil, err
		}
	}
	if !taken {
		f.fail(fieldFile, "required", "is required")
	}
	return f, nil
}

// fileOf hands the file of a form over.
func (c *call) fileOf(f *form, part *multipart.Part, taken *bool, take func(*form, string, io.Reader) error) error {
	if *taken {
		return exchange.Invalid(exchange.FieldError{Pointer: "/" + fieldFile, Code: "repeated", Message: "must be given once"})
	}
	*taken = true
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if _, named := params["filename"]; err != nil || !named {
		return exchange.Invalid(exchange.FieldError{Pointer: "/" + fieldFile, Code: "type", Message: "must be a file, with a filename"})
	}
	if part.Header.Get("Content-Transfer-Encoding") != "" {
		return exchange.Errorf(exchange.CodeMediaType, "Send the file without a Content-Transfer-Encoding.")
	}
	source := &formContent{part: part}
	err = take(f, params["filename"], source)
	if source.err != nil {
		return errForm(source.err)
	}
	return err
}

// formContent keeps the error of reading a file apart from those of taking it.
type formContent struct {
	part io.Reader
	err  error
}

func (r *formContent) Read(b []byte) (int, error) {
	n, err := r.part.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// part reads a field of a form as a text.
func (f *form) part(part *multipart.Part) error {
	name := part.FormName()
	if _, twice := f.values[name]; twice || name == "" {
		return exchange.Errorf(exchange.CodeMalformed, "The form has the field %q twice, or one without a name.", clip(name, clipLength))
	}
	raw, err := io.ReadAll(io.LimitReader(part, maxFormField+1))
	if err != nil {
		return errForm(err)
	}
	switch {
	case len(raw) > maxFormField:
		f.values[name] = "" // known, so that it is not called missing
		f.fail(name, "too_long", "must have at most 4096 bytes")
	case !utf8.Valid(raw):
		return exchange.Errorf(exchange.CodeMalformed, "The body is not UTF-8.")
	case len(raw) > 0:
		f.values[name] = string(raw)
	}
	return nil
}
