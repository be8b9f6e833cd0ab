package scope

import (
	"testing"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

func TestSecretsAreHiddenInWhatProvidersSay(t *testing.T) {
	s := &Scope{scopeCache: &scopeCache{Secrets: new(plan.Secrets)}}
	s.NoteSecrets(cty.ObjectVal(map[string]cty.Value{
		"password": cty.StringVal("hunter22").Mark(lang.Sensitive),
		"nested":   cty.ListVal([]cty.Value{cty.StringVal("s3cr3t")}).Mark(lang.Sensitive),
		"short":    cty.StringVal("abc").Mark(lang.Sensitive),
		"open":     cty.StringVal("visible"),
		"unknown":  cty.UnknownVal(cty.String).Mark(lang.Sensitive),
	}))
	got := s.Mask("sh -c 'login hunter22 s3cr3t abc visible'")
	if want := "sh -c 'login (sensitive value) (sensitive value) abc visible'"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestSensitiveValuesOfTheStateAreMasked is about secrets that were written as plain text.
func TestSensitiveValuesOfTheStateAreMasked(t *testing.T) {
	block := &schema.Block{
		Attributes: []*schema.Attribute{{Name: "password", Type: cty.String, Sensitive: true}, {Name: "note", Type: cty.String}},
		Blocks: []*schema.NestedBlock{{TypeName: "login", Nesting: schema.NestingList, Block: &schema.Block{
			Attributes: []*schema.Attribute{{Name: "token", Type: cty.String, Sensitive: true}},
		}}},
	}
	s := &Scope{scopeCache: &scopeCache{Secrets: new(plan.Secrets)}}
	s.NoteSecretState(block, instance.State{Value: cty.ObjectVal(map[string]cty.Value{
		"password": cty.StringVal("hunter2"), "note": cty.StringVal("visible"),
		"login": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"token": cty.StringVal("t0ken-t0ken")})}),
	})})
	if got, want := s.Mask("hunter2, visible, t0ken-t0ken"), lang.Mask+", visible, "+lang.Mask; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	s.NoteSecretState(block, instance.State{}) // of nothing
	(*Scope)(nil).NoteSecretAttributes(block, cty.StringVal("no scope, no secrets"))
}
