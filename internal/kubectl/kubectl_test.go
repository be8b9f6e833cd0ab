package kubectl

import (
	"slices"
	"strings"
	"testing"
)

// TestUsageOfTheVerbs checks that the usage lines of Hykube's verbs name each word of the command once.
func TestUsageOfTheVerbs(t *testing.T) {
	for _, args := range [][]string{{"kubectl", "hykube"}, {"kubectl", "hykube", "stack"}, {"kubectl", "hykube", "stack", "status"}} {
		cmd, _, err := NewRoot().Find(args)
		if err != nil {
			t.Fatal(err)
		}
		want := append([]string{"hykube"}, args...)
		if got := strings.Fields(cmd.UseLine()); len(got) < len(want) || !slices.Equal(got[:len(want)], want) || len(got) > len(want) && got[len(want)] == "kubectl" {
			t.Errorf("the usage of %s is %q", strings.Join(want, " "), got)
		}
	}
}
