package planapi

import "testing"

// TestStackName takes the name of a stack with and without its kind, and no other prefix for a kind.
func TestStackName(t *testing.T) {
	for arg, want := range map[string]string{"web": "web", "stack/web": "web", "stacks.hykube.io/web": "web", "stk/web": "web", "shop/web": "", "plan/web": ""} {
		if got, err := StackName(arg); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", arg, got, err, want)
		}
	}
}
