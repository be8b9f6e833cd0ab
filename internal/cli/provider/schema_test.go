package provider

import "testing"

func TestFirstSentence(t *testing.T) {
	for in, want := range map[string]string{
		"":                           "",
		"A network.":                 "A network.",
		"A network. It has subnets.": "A network.",
		"A size, e.g. Small or large. The default is small.":       "A size, e.g. Small or large.",
		"A name (i.e. Its DNS name). Must be unique.":              "A name (i.e. Its DNS name).",
		"Version 1.2 or later. Required.":                          "Version 1.2 or later.",
		"One line\nand another. And more.":                         "One line",
		`Write "all." Nothing else works.`:                         `Write "all."`,
		"See https://example.com/a.html for more. Then come back.": "See https://example.com/a.html for more.",
		"Sizes, types, etc. are listed. `small` is one.":           "Sizes, types, etc. are listed. `small` is one.",
	} {
		if got := firstSentence(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
