package api

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/files"
)

// endless is a file of any length that takes no memory.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'x'
	}
	return len(b), nil
}

// BenchmarkUpload compares the memory that uploads of 10 MiB take, from the client's request to the object and the row, with that of
// uploads of 1 MiB. The check of a file has a process, and memory, of its own, so it only reads the file here. The goal is 1.2.
func BenchmarkUpload(b *testing.B) {
	const rounds, few, many = 5, 1 << 20, exchange.MaxFileSize - 100
	var e *env
	var vendor person
	// The harness needs a *testing.T for its fixtures; the benchmark borrows one with the same lifetime.
	done, ready := make(chan struct{}), make(chan struct{})
	var finished sync.WaitGroup
	finished.Go(func() {
		testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "fixtures", F: func(t *testing.T) {
			e = start(t, func(d *Deps) {
				store, err := files.Open(t.Context(), files.Config{Bucket: "file://" + t.TempDir(), Keys: reversing{}, Check: readAll, Dir: t.TempDir()})
				if err != nil {
					t.Fatal(err)
				}
				d.Files = store
			})
			vendor = e.person(exchange.RoleVendor)
			close(ready)
			<-done
		}}})
	})
	<-ready
	send := func(size int) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			e.stream(b, vendor, size)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	send(few)
	b.ResetTimer()
	var small, large uint64
	var took time.Duration
	for range b.N {
		small += send(few)
		began := time.Now()
		large += send(many)
		took += time.Since(began)
	}
	b.StopTimer()
	b.ReportMetric(float64(large)/float64(small), "x_memory")
	b.ReportMetric(float64(large)/float64(rounds*b.N)/(1<<20), "MiB/upload")
	b.ReportMetric(float64(rounds*b.N*many)/(1<<20)/took.Seconds(), "MiB/s")
	close(done)
	finished.Wait()
}

func readAll(_ context.Context, _ exchange.FileType, in io.Reader, _ io.Writer) (exchange.FileVerdict, error) {
	_, err := io.Copy(io.Discard, in)
	return exchange.FileVerdict{Pages: 1}, err
}

// stream uploads a file of a size that begins like a PDF.
func (e *env) stream(b *testing.B, p person, size int) {
	b.Helper()
	const boundary, begin = "line", "%PDF-1.4\n"
	head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\notc_proof\r\n--" + boundary +
		"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.pdf\"\r\n\r\n" + begin
	tail := "\r\n--" + boundary + "--\r\n"
	body := io.MultiReader(bytes.NewReader([]byte(head)), io.LimitReader(endless{}, int64(size-len(begin))), bytes.NewReader([]byte(tail)))
	r, err := http.NewRequestWithContext(b.Context(), post, e.base+filesPath, body)
	if err != nil {
		b.Fatal(err)
	}
	r.ContentLength = int64(len(head) + size - len(begin) + len(tail))
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
	p.auth()(r)
	answer, err := e.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if raw, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusCreated {
		b.Fatal(strconv.Itoa(answer.StatusCode), string(raw), err)
	}
}
