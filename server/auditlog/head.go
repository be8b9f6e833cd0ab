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

// headRecord is the record of the head in the store.
const headRecord = "audit/head"

// Heads stores the head of a log.
type Heads struct {
	KV ledger.KV
}

// Load returns the stored head; the zero Head if there is none.
func (h *Heads) Load(ctx context.Context) (Head, error) {
	head, _, err := h.load(ctx)
	return head, err
}

func (h *Heads) load(ctx context.Context) (head Head, revision int64, err error) {
	data, revision, err := h.KV.Get(ctx, headRecord)
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
		_, err = h.KV.Put(ctx, headRecord, data, revision)
	}
	if err != nil {
		return fmt.Errorf("store the head of the audit log: %w", err)
	}
	return nil
}
