package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
)

// This file stores the answers of providers to a speculative plan, for the plan of the same objects after they were
// recorded. The row of a change has no index, because the changes of both plans may have different ones.

func answersPrefix(plan types.UID) string { return "answers/" + string(plan) + "/" }

func answersKey(plan types.UID, c *Change) string {
	sum := sha256.Sum256([]byte(c.Address + "\x00" + c.Deposed))
	return answersPrefix(plan) + hex.EncodeToString(sum[:16])
}

// answersWrites returns the write of the Answers of a change. It returns none for answers that exceed the limit: these
// are asked again.
func (l *Ledger) answersWrites(plan types.UID, c *Change) []Write {
	value, _ := json.Marshal(c.Answers) // encoding strings and bytes cannot fail
	if len(c.Answers) == 0 || l.check("", len(value)) != nil {
		return nil
	}
	return []Write{{Key: answersKey(plan, c), Value: value, Revision: AnyRevision}}
}

// LoadAnswers sets the Answers of a change to those of the change with the same address of another plan. That plan may
// have none.
func (l *Ledger) LoadAnswers(ctx context.Context, plan types.UID, c *Change) error {
	value, _, err := l.kv.Get(ctx, answersKey(plan, c))
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		err = unmarshal(value, &c.Answers)
	}
	if err != nil {
		return fmt.Errorf("read the answers of providers about %s: %w", c.Address, err)
	}
	return nil
}
