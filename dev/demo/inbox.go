package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"kivuko/dev/messages"
)

// What the demo reads from messages.
var (
	code = regexp.MustCompile(`\b([0-9]{6})\b`)
	link = regexp.MustCompile(`/people/invitation#([A-Za-z0-9_-]+)`)
)

// message waits for a message to somebody that has a code or a link, and returns it. The newest counts.
func (w Stack) message(ctx context.Context, to string, what *regexp.Regexp) (string, error) {
	const patience, pause = time.Minute, 200 * time.Millisecond
	began := time.Now()
	for deadline := began.Add(patience); ; {
		all, err := w.inbox(ctx, to)
		if err != nil {
			return "", err
		}
		for _, m := range all {
			if found := what.FindStringSubmatch(m.Text); found != nil && m.At.After(began.Add(-patience)) {
				return found[1], nil
			}
		}
		if time.Now().After(deadline) {
			return "", fmt.Errorf("no message came to %s", to)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(pause):
		}
	}
}

func (w Stack) inbox(ctx context.Context, to string) (all []messages.Message, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.Messages+"/messages?to="+url.QueryEscape(to), nil)
	if err != nil {
		return nil, err
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = got.Body.Close() }() // everything of worth was read before
	return all, json.NewDecoder(got.Body).Decode(&all)
}
