package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// TestTheBuiltInProviderIsInTheServer installs terraform.io/builtin/terraform without a download, and leads a terraform_data through its
// life: output follows input, and triggers_replace replaces.
func TestTheBuiltInProviderIsInTheServer(t *testing.T) {
	source, err := ParseSource("terraform.io/builtin/terraform")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseSource("terraform.io/builtin/other"); err == nil || !strings.Contains(err.Error(), "the server has only") {
		t.Errorf("another part of Terraform: %v", err)
	}
	pkg, err := NewInstaller(InstallerConfig{Dir: t.TempDir()}).Install(t.Context(), source, "", Trust{})
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, newPool(t, PoolConfig{}), pkg, Configuration{Key: "k", Config: cty.EmptyObjectVal})
	of := l.Schema.Resources["terraform_data"].Block.ImpliedType()
	encode := func(v cty.Value) *tfprotov6.DynamicValue {
		t.Helper()
		d, err := schema.Encode(v, of)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	null, triggers := cty.NullVal(cty.DynamicPseudoType), cty.TupleVal([]cty.Value{cty.NumberIntVal(1)})
	change := func(prior, input, triggers cty.Value) (state cty.Value, replaced bool) {
		t.Helper()
		proposed := map[string]cty.Value{"id": cty.UnknownVal(cty.String), "input": input, "output": cty.DynamicVal, "triggers_replace": triggers}
		if !prior.IsNull() {
			proposed["id"], proposed["output"] = prior.GetAttr("id"), prior.GetAttr("output")
		}
		p, err := l.PlanResourceChange(t.Context(), &tfprotov6.PlanResourceChangeRequest{
			TypeName: "terraform_data", PriorState: encode(prior), ProposedNewState: encode(cty.ObjectVal(proposed)),
		})
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.ApplyResourceChange(t.Context(), &tfprotov6.ApplyResourceChangeRequest{TypeName: "terraform_data", PlannedState: p.PlannedState})
		if err != nil {
			t.Fatal(err)
		}
		if state, err = schema.Decode(a.NewState, of); err != nil {
			t.Fatal(err)
		}
		return state, len(p.RequiresReplace) > 0
	}
	created, _ := change(cty.NullVal(of), cty.StringVal("a"), null)
	if id := created.GetAttr("id"); id.IsNull() || !created.GetAttr("output").RawEquals(cty.StringVal("a")) {
		t.Errorf("created: %#v", created)
	}
	updated, replaced := change(created, cty.NumberIntVal(7), null)
	if replaced || !updated.GetAttr("output").RawEquals(cty.NumberIntVal(7)) || !updated.GetAttr("id").RawEquals(created.GetAttr("id")) {
		t.Errorf("updated (replaced: %t): %#v", replaced, updated)
	}
	if next, replaced := change(updated, null, triggers); !replaced || next.GetAttr("id").RawEquals(updated.GetAttr("id")) || !next.GetAttr("output").IsNull() {
		t.Errorf("replaced (%t): %#v", replaced, next)
	}
	moved, err := l.MoveResourceState(t.Context(), &tfprotov6.MoveResourceStateRequest{
		SourceProviderAddress: "registry.terraform.io/hashicorp/null", SourceTypeName: "null_resource", TargetTypeName: "terraform_data",
		SourceState: &tfprotov6.RawState{JSON: []byte(`{"id":"5","triggers":{"a":"b"}}`)},
	})
	if err != nil || len(moved.Diagnostics) > 0 {
		t.Fatal(err, moved)
	}
	if v, err := schema.Decode(moved.TargetState, of); err != nil || !v.GetAttr("id").RawEquals(cty.StringVal("5")) || v.GetAttr("triggers_replace").IsNull() {
		t.Errorf("moved: %#v (%v)", v, err)
	}
}
