package ledger

import "testing"

// TestAuthorities has servers that start one after the other. The first one stores its authorities, and an administrator
// replaces them at the third one.
func TestAuthorities(t *testing.T) {
	l := newLedger()
	for _, step := range []struct {
		own     string
		replace bool
		want    string
	}{{"a", false, "a"}, {"b", false, "a"}, {"c", true, "c"}, {"c", true, "c"}, {"a", false, "c"}} {
		if got, err := l.Authorities(t.Context(), []byte(step.own), step.replace); err != nil || string(got) != step.want {
			t.Errorf("%+v: got %q, %v", step, got, err)
		}
	}
}
