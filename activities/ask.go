package activities

import (
	"errors"
	"io"
	"net/http"
	"net/url"
)

// ask sends a request to a service of somebody else and returns what it answered with 200, of at most limit
// bytes. Errors don't hold the address, in which a key may be.
func ask(client *http.Client, r *http.Request, token string, limit int64) ([]byte, error) {
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer func() { _ = answer.Body.Close() }() // read to the end or given up
	raw, err := io.ReadAll(io.LimitReader(answer.Body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, errors.New("status " + answer.Status)
	case int64(len(raw)) > limit:
		return nil, errors.New("the answer is too long")
	}
	return raw, nil
}

// withoutAddress takes the address out of an error of net/http: a key may be part of it, and errors reach histories
// and logs.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
