package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"kivuko/exchange"
)

// Process checks each file in a process of its own, which it starts with the path of a program and its arguments. The program gets
// the file's type as its last argument, the content as its input, and no environment of ours.
type Process struct {
	Path string
	Args []string
	// Read reads the program's answer.
	Read func(answer io.Reader, made io.Writer) (exchange.FileVerdict, error)
}

const (
	// checkTimeout is for a machine that has no time for the process; its time on the processor is limited by itself.
	checkTimeout = time.Minute
	// exitFault is the status of a program that could not do its work. One that ended otherwise took more than it may.
	exitFault = 1
	// maxAnswer bounds what is read of a process that a file has taken over: a verdict and a PDF.
	maxAnswer = exchange.MaxFileSize + 64<<10
	// softMemory makes the garbage collector of the process keep it below its limit of memory.
	softMemory = "GOMEMLIMIT=300MiB"
)

// Check is a Check. A process that takes more time on the processor or more memory than it may is the file's fault; one that waits for
// a processor is not.
func (p Process) Check(ctx context.Context, t exchange.FileType, content io.Reader, made io.Writer) (exchange.FileVerdict, error) {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	in := &sourceReader{from: content}
	cmd := exec.CommandContext(limited, p.Path, append(p.Args, string(t))...) //nolint:gosec // our own program
	cmd.Env, cmd.Stdin = []string{softMemory}, in
	cmd.WaitDelay = time.Second
	answer, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return exchange.FileVerdict{}, fmt.Errorf("files: the check did not start: %w", err)
	}
	verdict, readErr := p.Read(&bounded{answer, maxAnswer}, made)
	if readErr != nil && !errors.Is(readErr, io.EOF) { // what it still says is of no use
		_ = cmd.Process.Kill()
	}
	_, drainErr := io.Copy(io.Discard, answer)
	err = cmd.Wait()
	ended, stopped := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return exchange.FileVerdict{}, ctx.Err()
	case in.err != nil:
		return exchange.FileVerdict{}, fmt.Errorf("files: the content can't be read: %w", in.err)
	case readErr != nil && !errors.Is(readErr, io.EOF):
		return exchange.FileVerdict{}, fmt.Errorf("files: the answer of the check: %w", readErr)
	case limited.Err() != nil:
		return exchange.FileVerdict{}, errors.New("files: the check had not ended after " + checkTimeout.String())
	case stopped && ended.ExitCode() != exitFault:
		return exchange.FileVerdict{Code: exchange.FileRuleUnchecked, Message: "took too much time or memory to be checked"}, nil
	case err != nil:
		return exchange.FileVerdict{}, fmt.Errorf("files: the check failed: %w", err)
	}
	return verdict, errors.Join(readErr, drainErr)
}

// bounded fails where it would end behind more than a number of bytes.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errors.New("it is too long")
	}
	return n, err
}

// sourceReader keeps the error of reading the content apart from one of the process.
type sourceReader struct {
	from io.Reader
	err  error
}

func (r *sourceReader) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
