package module

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVersionConstraints(t *testing.T) {
	for constraint, want := range map[string][2]bool{
		">= 1.5": {true, true}, ">= 1.3.0, < 2.0.0": {true, true}, "~> 1.5": {true, true}, "~> 1.5.0": {false, true}, "~> 1": {true, true}, "< 1.0": {false, true},
		"1.14.0": {true, true}, "= 1.14.1": {false, true}, "!= 1.14.0": {false, true}, "> 1.14.0": {false, true}, "<= 1.14": {true, true}, "~> 1.14.0-beta1": {true, true},
		"": {false, false}, "latest": {false, false}, ">= 1.x": {false, false}, "=> 1.0": {false, false}, "1.2.3.4": {false, false},
	} {
		allowed, valid := allows(constraint, "1.14.0")
		if d := cmp.Diff(want, [2]bool{allowed, valid}); d != "" {
			t.Errorf("%q (-want +got):\n%s", constraint, d)
		}
	}
	_, diags := Load(bundle("terraform {\n  required_version = \"< 1.0\"\n  backend \"s3\" {}\n}\n"), nil)
	if d := cmp.Diff([]string{"main.tf:2:22 Other version of the language", "main.tf:3:3 Block without effect"}, summaries(diags)); d != "" {
		t.Errorf("the warnings differ (-want +got):\n%s", d)
	}
}
