package index

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// An instance that a cancelled plan did not try waits for a plan, and has no failure.
func TestACancelledInstanceHasNoFailure(t *testing.T) {
	for reason, stalled := range map[string]bool{v1alpha1.ReasonCancelled: false, v1alpha1.ReasonApplyFailed: true} {
		status := fmt.Sprintf(`{"conditions":[{"type":"Stalled","status":"True","reason":%q}]}`, reason)
		o := &Object{Instance: &Instance{}}
		o.setInstanceFacts(statusOf(ledger.Status{Value: json.RawMessage(status)}))
		if o.Instance.Stalled != stalled || !o.Has(Stalled) {
			t.Errorf("%s: stalled is %t, the flags are %b", reason, o.Instance.Stalled, o.Flags)
		}
	}
}
