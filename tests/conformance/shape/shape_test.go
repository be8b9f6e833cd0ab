package shape

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// eachShape calls visit for the shapes of some seeds, in both protocols.
func eachShape(t *testing.T, visit func(t *testing.T, s *Shape, legacy bool)) {
	for seed := range int64(30) {
		for provider, legacy := range map[string]bool{"shape5": true, "shape6": false} {
			resources, data := Make(provider, seed, legacy)
			for _, s := range append(resources, data) {
				t.Run(s.Name, func(t *testing.T) { visit(t, s, legacy) })
			}
		}
	}
}

func TestMakeIsRepeatable(t *testing.T) {
	for seed := range int64(20) {
		a, _ := Make("shape6", seed, false)
		b, _ := Make("shape6", seed, false)
		for i := range a {
			if x, y := a[i].Block.ObjectType(), b[i].Block.ObjectType(); !x.Equal(y) || a[i].Key != b[i].Key {
				t.Errorf("seed %d makes %s and %s", seed, x, y)
			}
		}
	}
}

// Terraform rejects a provider if one schema breaks these rules.
func TestMakeKeepsTheRules(t *testing.T) {
	eachShape(t, func(t *testing.T, s *Shape, _ bool) { rules(t, s.Block, false, false) })
}

func rules(t *testing.T, b *Block, inSet, within bool) {
	for _, a := range b.Attributes {
		switch {
		case a.Required && (a.Optional || a.Computed), !a.Required && !a.Optional && !a.Computed:
			t.Errorf("%s is required %t, optional %t, computed %t", a.Name, a.Required, a.Optional, a.Computed)
		case a.WriteOnly && (a.Computed || inSet || a.holdsSet()):
			t.Errorf("%s is write-only, and computed %t, in a set %t, with a set within %t", a.Name, a.Computed, inSet, a.holdsSet())
		case within && a.Type != nil && a.Type.Is(tftypes.DynamicPseudoType):
			t.Errorf("%s has a type of its own within a collection", a.Name)
		}
		if a.Type == nil {
			rules(t, &Block{Attributes: a.Attributes}, inSet || a.Mode == Set, within || a.Mode != Single)
		}
	}
	for _, n := range b.Blocks {
		if n.Max > 0 && n.Min > n.Max {
			t.Errorf("%s has from %d to %d items", n.Name, n.Min, n.Max)
		}
		rules(t, n.Block, inSet || n.Mode == Set, within || n.Mode != Single && n.Mode != Group)
	}
}

// A second plan of the same configuration must keep the value of the first.
func TestPlanOfUnchangedConfigurationChangesNothing(t *testing.T) {
	eachShape(t, func(t *testing.T, s *Shape, legacy bool) {
		ty := s.Block.ObjectType()
		config := (&Nested{Mode: Group, Block: s.Block}).empty()
		planned, _ := s.plan(legacy, tftypes.NewValue(ty, nil), config, config)
		made, err := s.complete(legacy, planned, "key-1")
		if err != nil {
			t.Fatal(err)
		}
		if !made.IsFullyKnown() {
			t.Fatalf("made %s", shown(made, ty))
		}
		again, replace := s.plan(legacy, made, config, proposed(s.Block, made, config))
		if got, want := shown(again, ty), shown(made, ty); got != want || len(replace) > 0 {
			t.Errorf("planned %s\nfor       %s\nand to replace it for %v", got, want, replace)
		}
	})
}

// proposed returns the value that a client proposes for a configuration with nothing but groups.
func proposed(b *Block, prior, config tftypes.Value) tftypes.Value {
	before, out := fields(prior), fields(config)
	for _, a := range b.Attributes {
		if a.Computed {
			out[a.Name] = before[a.Name]
		}
	}
	for _, n := range b.Blocks {
		if n.Mode == Group {
			out[n.Name] = proposed(n.Block, before[n.Name], out[n.Name])
		}
	}
	return tftypes.NewValue(config.Type(), out)
}
