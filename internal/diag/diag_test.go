package diag

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/zclconf/go-cty/cty"
)

func TestFromProto(t *testing.T) {
	path := tftypes.NewAttributePath().WithAttributeName("rule").WithElementKeyInt(2).WithAttributeName("tags").WithElementKeyString("a b")
	p, err := FromProtoPath(path)
	if err != nil || PathField("", p) != `rule[2].tags["a b"]` {
		t.Errorf("got %q, %v", PathField("", p), err)
	}
	if p, err := FromProtoPath(nil); err != nil || len(p) > 0 {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := FromProtoPath(tftypes.NewAttributePath().WithElementKeyValue(tftypes.NewValue(tftypes.String, "x"))); err == nil {
		t.Error("an element of a set has no path")
	}
	got := FromProto([]*tfprotov6.Diagnostic{
		{Severity: tfprotov6.DiagnosticSeverityError, Summary: "S", Detail: "D", Attribute: path},
		nil,
		{Severity: tfprotov6.DiagnosticSeverityWarning, Summary: "W"},
	})
	want := Diagnostics{
		{Severity: v1alpha1.SeverityError, Summary: "S", Detail: "D", Attribute: `spec.rule[2].tags["a b"]`},
		{Severity: v1alpha1.SeverityWarning, Summary: "W"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	errs := []error{cty.GetAttrPath("x").NewErrorf(`x: was "a", but now "b"`)}
	if got := FromErrors(v1alpha1.SeverityWarning, "Inconsistent", errs); len(got) != 1 || got[0].Attribute != "spec.x" || got[0].Detail != `x: was "a", but now "b".` {
		t.Errorf("got %+v", got)
	}
}

// Some providers repeat the summary in the detail.
func TestTextHasTheSummaryOnce(t *testing.T) {
	for _, tt := range []struct {
		d    v1alpha1.Diagnostic
		want string
	}{
		{v1alpha1.Diagnostic{Summary: "No image", Detail: "It was deleted."}, "No image: It was deleted."},
		{v1alpha1.Diagnostic{Summary: "No image", Detail: "No image: it was deleted."}, "No image: it was deleted."},
		{v1alpha1.Diagnostic{Summary: "No image", Detail: "No image", Attribute: "spec.image"}, "spec.image: No image"},
		{v1alpha1.Diagnostic{Summary: "No image"}, "No image"},
	} {
		if got := Text(tt.d); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.d, got, tt.want)
		}
	}
}
