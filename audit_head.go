package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"kivuko/activities"
	"kivuko/exchange"
)

// headFile keeps the head of the audit log in a file, outside the database whose owner could cut the log off.
type headFile string

var _ activities.AuditHeads = headFile("")

// Kept reads the head; a missing file is that of a log that was never sealed.
func (f headFile) Kept() (exchange.AuditHead, error) {
	var head exchange.AuditHead
	b, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return head, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &head)
	}
	if err != nil {
		return exchange.AuditHead{}, fmt.Errorf("the head of the audit log in %s: %w", f, err)
	}
	return head, nil
}

// Keep replaces the head at once: a crash leaves the old one or the new one.
func (f headFile) Keep(head exchange.AuditHead) error {
	b, err := json.Marshal(head)
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(string(f)), ".head-*")
	if err != nil {
		return err
	}
	_, err = draft.Write(append(b, '\n'))
	if err == nil {
		err = draft.Sync()
	}
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = os.Rename(draft.Name(), string(f))
	}
	if err != nil {
		return errors.Join(err, os.Remove(draft.Name()))
	}
	return nil
}
