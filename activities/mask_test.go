package activities

import (
	"testing"

	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

func TestSecretsAreHiddenInWhatProvidersSay(t *testing.T) {
	s := &scope{memory: &memory{secrets: map[string]bool{}}}
	s.heed(cty.ObjectVal(map[string]cty.Value{
		"password": cty.StringVal("hunter22").Mark(plan.Sensitive),
		"nested":   cty.ListVal([]cty.Value{cty.StringVal("s3cr3t")}).Mark(plan.Sensitive),
		"short":    cty.StringVal("abc").Mark(plan.Sensitive),
		"open":     cty.StringVal("visible"),
		"unknown":  cty.UnknownVal(cty.String).Mark(plan.Sensitive),
	}))
	got := s.mask("sh -c 'login hunter22 s3cr3t abc visible'")
	if want := "sh -c 'login (sensitive value) (sensitive value) abc visible'"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
