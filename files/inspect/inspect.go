// Package inspect checks what an uploaded file holds. It reads what strangers made to hurt readers, so it runs in a process of its
// own (Serve, which files.Process starts) that has little time and memory, no settings, no secrets and no connection.
package inspect

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"kivuko/exchange"
)

// refusal is the error for a file that breaks a rule.
type refusal struct{ code, message string }

func (r refusal) Error() string { return r.code + ": " + r.message }

func refuse(code, format string, args ...any) error {
	return refusal{code, fmt.Sprintf(format, args...)}
}

// damaged refuses a file that can't be read as what it begins as. The library's words are not shown: they may hold content.
func damaged(what string) error {
	return refuse(exchange.FileRuleDamaged, "can't be read as %s; it may be damaged or incomplete", what)
}

// Check reads a file of a type and returns what it found. Of an accepted picture it writes a PDF with that one page to made.
// The error is one of reading or writing, never a fault of the file.
func Check(ctx context.Context, t exchange.FileType, content io.Reader, made io.Writer) (exchange.FileVerdict, error) {
	pages, err := check(ctx, t, content, made)
	if r, ok := errors.AsType[refusal](err); ok {
		return exchange.FileVerdict{Code: r.code, Message: r.message}, nil
	}
	return exchange.FileVerdict{Pages: pages}, err
}

func check(ctx context.Context, t exchange.FileType, content io.Reader, made io.Writer) (pages int, err error) {
	defer func() {
		if p := recover(); p != nil { // what a library panics about is in the file
			pages, err = 0, damaged("what it begins as")
		}
	}()
	switch t {
	case exchange.FileXML:
		return 0, checkXML(content)
	case exchange.FileCSV:
		return 0, checkText(content)
	case exchange.FilePDF, exchange.FilePNG, exchange.FileJPEG:
	default:
		return 0, fmt.Errorf("inspect: the type %q is unknown", t)
	}
	whole, err := io.ReadAll(io.LimitReader(content, exchange.MaxFileSize+1))
	if err != nil {
		return 0, err
	}
	if len(whole) > exchange.MaxFileSize {
		return 0, refuse(exchange.FileRuleSize, "must have at most %d bytes", exchange.MaxFileSize)
	}
	if t == exchange.FilePDF {
		return checkPDF(ctx, whole)
	}
	pdf, err := convert(t, whole)
	if err != nil {
		return 0, err
	}
	_, err = pdf.WriteTo(made)
	return 1, err
}

// maxVerdict bounds the line with the verdict.
const maxVerdict = 4 << 10

// Serve is the checking process: it reads the file from in and writes the verdict to out, as a line of JSON, and after it the PDF
// that was made.
func Serve(ctx context.Context, t exchange.FileType, in io.Reader, out io.Writer) error {
	var made bytes.Buffer
	verdict, err := Check(ctx, t, in, &made)
	if err != nil {
		return err
	}
	line, err := json.Marshal(verdict)
	if err != nil {
		return err
	}
	if _, err = out.Write(append(line, '\n')); err != nil {
		return err
	}
	_, err = made.WriteTo(out)
	return err
}

// ReadAnswer reads what Serve wrote.
func ReadAnswer(answer io.Reader, made io.Writer) (exchange.FileVerdict, error) {
	var verdict exchange.FileVerdict
	in := bufio.NewReaderSize(answer, maxVerdict)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return verdict, err
	}
	if err := json.Unmarshal(line, &verdict); err != nil {
		return verdict, err
	}
	_, err = in.WriteTo(made)
	return verdict, err
}
