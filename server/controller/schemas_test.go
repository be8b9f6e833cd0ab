package controller

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
)

// TestSchemas expects a recorded schema unchanged, and no other one.
func TestSchemas(t *testing.T) {
	ports := &schema.Object{Nesting: schema.NestingMap, Attributes: []*schema.Attribute{{Name: "from", Type: cty.Number, Required: true}}}
	sch := &schema.Provider{
		Config: &schema.Schema{Block: &schema.Block{}},
		Resources: map[string]*schema.Schema{"sim_network": {Version: 3, Block: &schema.Block{
			Attributes: []*schema.Attribute{
				{Name: "any", Type: cty.DynamicPseudoType, Optional: true},
				{Name: "point", Type: cty.ObjectWithOptionalAttrs(map[string]cty.Type{"x": cty.Number, "y": cty.Number}, []string{"y"}), Computed: true},
				{Name: "ports", Nested: ports, Type: ports.ImpliedType(), Sensitive: true},
				{Name: "tags", Type: cty.Map(cty.Set(cty.String)), WriteOnly: true},
			},
			Blocks: []*schema.NestedBlock{{TypeName: "rule", Nesting: schema.NestingSet, Block: &schema.Block{Deprecated: true}, MaxItems: 4}},
		}}},
		Identities: map[string]*schema.Identity{"sim_network": {Version: 1, Attributes: []*schema.IdentityAttribute{{Name: "id", Type: cty.String}}}},
		Functions:  map[string]*schema.Function{"f": {Variadic: &schema.Parameter{Name: "rest", Type: cty.List(cty.Bool)}, Return: cty.String}},
		Protocol:   6,
	}
	s := Schemas(filepath.Join(t.TempDir(), "schemas"))
	if _, err := s.read("sim", "h1:a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read what was never recorded: %v", err)
	}
	want := record{Checksum: "h1:a", Source: "registry.terraform.io/hykube/sim", Version: "0.1.0", Schema: sch}
	if err := s.write("sim", want); err != nil {
		t.Fatal(err)
	}
	got, err := s.read("sim", "h1:a")
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b cty.Type) bool { return a.Equals(b) }), cmpopts.IgnoreUnexported(schema.Block{})); err != nil || diff != "" {
		t.Errorf("%v (-recorded +read):\n%s", err, diff)
	}
	if _, err := s.read("sim", "h1:b"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("read the schema of another package: %v", err)
	}
	if err := errors.Join(s.remove("sim"), s.remove("sim")); err != nil || s.has("sim") {
		t.Errorf("remove: %v", err)
	}
}
