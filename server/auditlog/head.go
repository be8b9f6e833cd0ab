package auditlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hykube/hykube/internal/ledger"
)

// Head is the end of a log.
type Head struct {
	link
	// First is the sequence number of the oldest record that the log keeps.
	First uint64 `json:"first"`
}

// headRecord is the record of the head of the server's log in the store.
const headRecord = "audit/head"

// Heads stores the head of a log.
type Heads struct {
	KV ledger.KV
	// Worker names the worker whose log it is; empty for the server.
	Worker string
}

// record returns the record of the head.
func (h *Heads) record() string {
	if h.Worker == "" {
		return headRecord
	}
	return headRecord + "/" + h.Worker
}

// Load returns the stored head; the zero Head if there is none.
func (h *Heads) Load(ctx context.Context) (Head, error) {
	head, _, err := h.load(ctx)
	return head, err
}

func (h *Heads) load(ctx context.Context) (head Head, revision int64, err error) {
	data, revision, err := h.KV.Get(ctx, h.record())
	if errors.Is(err, ledger.ErrNotFound) {
		return Head{}, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &head)
	}
	if err != nil {
		return Head{}, 0, fmt.Errorf("read the head of the audit log: %w", err)
	}
	return head, revision, nil
}

// Save stores the head.
func (h *Heads) Save(ctx context.Context, head Head) error {
	_, revision, err := h.load(ctx)
	if err != nil {
		return err
	}
	data, err := json.Marshal(head)
	if err == nil {
		_, err = h.KV.Put(ctx, h.record(), data, revision)
	}
	if err != nil {
		return fmt.Errorf("store the head of the audit log: %w", err)
	}
	return nil
}
