package activities

import (
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/session"
)

// TestRetries counts the calls that change infrastructure. A create is retried only if the provider's API rejected it,
// and no call is retried forever.
func TestRetries(t *testing.T) {
	const throttled = "says 429 Too Many Requests"
	for name, tc := range map[string]struct {
		// verb is the call that fails, and fails is the number of failures.
		verb, fault string
		fails       int
		calls       int
		state       v1alpha1.ChangeState
	}{
		"a create that is throttled for a while":  {"create", throttled, 2, 3, v1alpha1.ChangeDone},
		"a create that is always throttled":       {"create", throttled, 99, session.Attempts, v1alpha1.ChangeFailed},
		"a create that timed out":                 {"create", "says timeout", 99, 1, v1alpha1.ChangeFailed},
		"a create whose timeouts are refused":     {"create", `says Unsupported block type "timeouts"`, 99, 1, v1alpha1.ChangeFailed},
		"a create that met a failing server":      {"create", "says 503 Service Unavailable", 99, 1, v1alpha1.ChangeFailed},
		"a create whose answer is lost":           {"create", "lost", 99, 1, v1alpha1.ChangeUnknown},
		"an update that is throttled for a while": {"update", throttled, 2, 3, v1alpha1.ChangeDone},
		"an update that is always throttled":      {"update", throttled, 99, session.Attempts, v1alpha1.ChangeFailed},
		"an update whose timeouts are refused":    {"update", `says Unsupported block type "timeouts"`, 99, 1, v1alpha1.ChangeFailed},
		"an update whose answers are lost":        {"update", "lost", 99, session.Attempts, v1alpha1.ChangeFailed},
		"a delete whose answer is lost":           {"delete", "lost", 1, 2, v1alpha1.ChangeDone},
		"a delete that is always throttled":       {"delete", throttled, 99, session.Attempts, v1alpha1.ChangeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCrashScenario(t)
			sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
			if tc.verb != "create" {
				sc.apply()
			}
			switch tc.verb {
			case "update":
				sc.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
			case "delete":
				sc.delete("test-thing/a")
			}
			call := tc.verb + " a"
			for range tc.fails {
				sc.cloud.faults[call] = append(sc.cloud.faults[call], tc.fault)
			}
			po := sc.apply()
			calls := tc.fails - len(sc.cloud.faults[call])
			if tc.state == v1alpha1.ChangeDone {
				calls++
			}
			c, err := sc.Ledger.Change(t.Context(), po.UID, 0)
			if err != nil {
				t.Fatal(err)
			}
			if calls != tc.calls || c.State != tc.state {
				t.Errorf("%d calls and the change is %s, want %d and %s: %v", calls, c.State, tc.calls, tc.state, c.Diagnostics)
			}
		})
	}
}
