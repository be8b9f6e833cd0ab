package speculation

import "testing"

// The identifier is the one that kubectl makes of the same parent; the value is from kubectl's own test.
func TestApplySetID(t *testing.T) {
	set := &ApplySet{kind: "Secret", namespace: "test", name: "my-set"}
	if got, want := set.id(), "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"; got != want {
		t.Errorf("id %q, not %q", got, want)
	}
}
