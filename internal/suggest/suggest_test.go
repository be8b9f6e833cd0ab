package suggest

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for reason, tc := range map[string]struct {
		name  string
		known []string
		want  string
	}{
		"two letters that changed places":     {"regoin", []string{"region", "zone"}, "region"},
		"a letter too few":                    {"uper", []string{"lower", "upper"}, "upper"},
		"the nearest of several":              {"main-2", []string{"main-10", "main-1", "man-2"}, "main-1"},
		"of equals the first in the alphabet": {"web-x", []string{"web-b", "web-a"}, "web-a"},
		"nothing that is near":                {"region", []string{"id", "name"}, ""},
		"short names must be almost the same": {"ab", []string{"cd"}, ""},
		"a letter for another is near enough": {"ab", []string{"ac"}, "ac"},
		"nothing known":                       {"ab", nil, ""},
		"a very long name":                    {strings.Repeat("a", 129), []string{strings.Repeat("a", 128)}, ""},
		"the name itself":                     {"id", []string{"ia", "id"}, "id"},
	} {
		if got := Nearest(tc.name, tc.known); got != tc.want {
			t.Errorf("%s: got %q, want %q", reason, got, tc.want)
		}
	}
	many := slices.Repeat([]string{"aaaaaa"}, maxCandidates)
	if got := Nearest("region", append(many, "regoin")); got != "" {
		t.Errorf("looked at more than %d names", maxCandidates)
	}
}
