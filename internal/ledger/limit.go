package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// defaultLimit is the default of Ledger.Limit. A row of MySQL has at most 16 MiB.
const defaultLimit = 8 << 20

// TooLargeError is the error of a record that exceeds Ledger.Limit.
type TooLargeError struct {
	// Record names the record, such as "the state of sim_network.a".
	Record string
	// Bytes is the size of the record, and Limit is the limit.
	Bytes, Limit int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s takes %d bytes, and the limit on a stored record is %d bytes: make its values smaller, or raise --record-limit of the server",
		e.Record, e.Bytes, e.Limit)
}

func (l *Ledger) limit() int {
	if l.Limit == 0 {
		return defaultLimit
	}
	return l.Limit
}

func (l *Ledger) check(record string, bytes int) error {
	if bytes > l.limit() {
		return &TooLargeError{Record: record, Bytes: bytes, Limit: l.limit()}
	}
	return nil
}

// CheckState returns a *TooLargeError if the state of the resource at address exceeds the limit. Callers check the
// value of a data source, and the planned value of a change before its intent. Save and Keep do not check: they store
// what already exists, and must not lose a provider's answer.
func (l *Ledger) CheckState(address string, s *State) error {
	record := "the state of " + address
	encoded, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode %s: %w", record, err)
	}
	return l.check(record, len(encoded))
}

// SavePlanned is SaveChange for a change that was planned. It returns a *TooLargeError if the change exceeds the limit.
// The later writes of a change only record its progress, so SaveChange does not check.
func (l *Ledger) SavePlanned(ctx context.Context, plan types.UID, c *Change) error {
	e, err := encodeChange(c)
	if err == nil {
		err = l.check("the planned change of "+c.Address+", with its values before and after,", e.size())
	}
	if err != nil {
		return err
	}
	return l.putChange(ctx, plan, c, e)
}
