package files_test

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/files"
)

// s3 is as much of S3 as the object store uses: whole objects, their deletion, and lists by pages.
type s3 struct {
	mu      sync.Mutex
	objects map[string][]byte
	away    bool
	cut     int // after how many bytes of an object the connection breaks; 0: not
}

func (s *s3) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	object, found := s.objects[key]
	switch {
	case s.away:
		http.Error(w, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
	case bucket != "receipts":
		http.Error(w, "<Error><Code>NoSuchBucket</Code></Error>", http.StatusNotFound)
	case r.Method == http.MethodPut:
		raw, err := io.ReadAll(r.Body)
		if strings.Contains(r.Header.Get("Content-Encoding"), "aws-chunked") {
			raw, err = unchunked(raw)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.objects[key] = raw
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		s.list(w, r.URL.Query().Get("continuation-token"), r.URL.Query().Get("max-keys"))
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !found:
		http.Error(w, "<Error><Code>NoSuchKey</Code></Error>", http.StatusNotFound)
	case s.cut > 0:
		w.Header().Set("Content-Length", strconv.Itoa(len(object)))
		_, _ = w.Write(object[:s.cut])
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		http.ServeContent(w, r, "", time.Now(), bytes.NewReader(object))
	}
}

type s3Object struct {
	Key          string
	LastModified time.Time
	ETag         string
	Size         int
}

func (s *s3) list(w io.Writer, after, most string) {
	var page struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []s3Object
	}
	size, _ := strconv.Atoi(most)
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if key <= after {
			continue
		}
		if len(page.Contents) == size {
			page.IsTruncated, page.NextContinuationToken = true, page.Contents[size-1].Key
			break
		}
		page.Contents = append(page.Contents, s3Object{key, time.Now().UTC().Add(-time.Hour), `"x"`, len(s.objects[key])})
	}
	_ = xml.NewEncoder(w).Encode(page)
}

// unchunked reads a body in the encoding aws-chunked: sizes in hexadecimal, each before as many bytes, and a trailer.
func unchunked(raw []byte) ([]byte, error) {
	in, out := bufio.NewReader(bytes.NewReader(raw)), bytes.Buffer{}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		size, err := strconv.ParseInt(digits, 16, 64)
		if err != nil || size == 0 {
			return out.Bytes(), err
		}
		if _, err := io.CopyN(&out, in, size); err != nil {
			return nil, err
		}
		if _, err := in.Discard(2); err != nil {
			return nil, err
		}
	}
}

// The same store on S3, by its address alone.
func TestFilesAreKeptInS3(t *testing.T) {
	service := &s3{objects: map[string][]byte{}}
	server := httptest.NewServer(service)
	defer server.Close()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_MAX_ATTEMPTS": "1",
	} {
		t.Setenv(name, value)
	}
	store, err := files.Open(t.Context(), files.Config{
		Bucket: "s3://receipts?region=eu-west-1&use_path_style=true&endpoint=" + server.URL, Keys: reversing{new(error)}, Check: accept, Dir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	e := env{Store: store, fault: new(error)}
	defer e.Store.Close()
	if err := e.Reach(t.Context()); err != nil {
		t.Error(err)
	}
	large := pdf(exchange.MaxFileSize)
	var kept []exchange.NewFile
	for _, content := range [][]byte{large, pdf(100), pdf(70_000)} {
		f := e.keep(t, content)
		kept = append(kept, f)
		if got, err := e.read(t, f, 10); err != nil || !bytes.Equal(got, content[10:]) {
			t.Errorf("%d bytes come back as %d others, %v", len(content), len(got), err)
		}
	}
	var listed []exchange.FileRef
	for from, pages := "", 0; pages == 0 || from != ""; pages++ {
		page, next, err := e.List(t.Context(), from, 2, time.Now())
		if err != nil || pages > 5 {
			t.Fatal(pages, err)
		}
		listed, from = append(listed, page...), next
	}
	if want := []exchange.FileRef{ref(kept[0]), ref(kept[1]), ref(kept[2])}; !slices.Equal(listed, want) {
		t.Errorf("listed %v, want %v", listed, want)
	}
	for range 2 {
		if err := e.Delete(t.Context(), ref(kept[1])); err != nil {
			t.Error(err)
		}
	}
	if _, err := e.read(t, kept[1], 0); exchange.CodeOf(err) != exchange.CodeInternal {
		t.Errorf("a deleted object: %v", err)
	}
	for _, service.cut = range []int{10, 5000, exchange.MaxFileSize / 2} {
		if _, err := e.read(t, kept[0], 0); exchange.CodeOf(err) != exchange.CodeUnavailable {
			t.Errorf("a connection that breaks after %d bytes: %v", service.cut, err)
		}
	}
	service.cut, service.away = 0, true
	if _, err := e.read(t, kept[0], 0); exchange.CodeOf(err) != exchange.CodeUnavailable {
		t.Errorf("while S3 refuses us: %v", err)
	}
	taken, err := e.take(t, pdf(100))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Keep(t.Context(), taken); exchange.CodeOf(err) != exchange.CodeUnavailable {
		t.Errorf("while S3 refuses us: %v", err)
	}
	service.away = false
	if err := e.Keep(t.Context(), taken); err != nil {
		t.Error(err)
	}
}
