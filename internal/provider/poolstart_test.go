package provider

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/schema"
)

func TestMain(m *testing.M) {
	if exe := os.Getenv(serverEnv); exe != "" {
		fmt.Fprintln(os.Stderr, serveForTest(exe))
		os.Exit(1)
	}
	code := m.Run()
	if bin, err := tinyBinary(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// tinyPackage is a package of its own around the tiny provider.
func tinyPackage(t *testing.T) Package {
	t.Helper()
	bin, err := tinyBinary()
	if err != nil {
		t.Fatalf("build tiny: %v", err)
	}
	dir := t.TempDir()
	exe := filepath.Join(dir, "terraform-provider-tiny")
	if err := os.Link(bin, exe); err != nil {
		data, err := os.ReadFile(bin)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(exe, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return packageAt(t, Source{"example.com", "test", "tiny"}, "1.0.0", exe)
}

func packageAt(t *testing.T, s Source, version, exe string) Package {
	t.Helper()
	sum, err := hashDir(filepath.Dir(exe))
	if err != nil {
		t.Fatal(err)
	}
	return Package{Source: s, Version: version, Executable: exe, Checksum: sum, Grants: contain.Grants{Environment: []string{"TINY_MODE"}}}
}

// newPool is a pool that is closed with the test, which then must have left no child.
func newPool(t *testing.T, c PoolConfig, env ...string) *Pool {
	t.Helper()
	if c.Containment == nil {
		c.Containment = contain.New(contain.Config{Environ: append(os.Environ(), env...)})
	}
	p := NewPool(c)
	t.Cleanup(func() {
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("close pool: %v", err)
		}
	})
	return p
}

func tinyConfig(region string) cty.Value {
	r := cty.NullVal(cty.String)
	if region != "" {
		r = cty.StringVal(region)
	}
	return cty.ObjectVal(map[string]cty.Value{
		"region": r,
		"retry":  cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"times": cty.NumberIntVal(3)})}),
	})
}

func acquire(t *testing.T, p *Pool, pkg Package, c Configuration) *Lease {
	t.Helper()
	l, err := p.Acquire(t.Context(), pkg, c)
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	t.Cleanup(l.Release)
	return l
}

// TestLongTemporaryDirectory starts a process where a socket in the temporary directory would have too long a name.
func TestLongTemporaryDirectory(t *testing.T) {
	temp := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	if err := os.Mkdir(temp, 0o755); err != nil {
		t.Fatal(err)
	}
	pkg := tinyPackage(t) // which is built first
	t.Setenv("TMPDIR", temp)
	acquire(t, newPool(t, PoolConfig{}), pkg, Configuration{Key: "eu", Config: tinyConfig("eu")})
}

// create plans and applies a new resource, and reads it back.
func create(ctx context.Context, l *Lease, typeName string, set map[string]cty.Value) (cty.Value, *tfprotov6.ApplyResourceChangeResponse, error) {
	s := l.Schema.Resources[typeName]
	if s == nil {
		return cty.NilVal, nil, fmt.Errorf("no resource type %q", typeName)
	}
	ty := s.Block.ImpliedType()
	config, proposed := map[string]cty.Value{}, map[string]cty.Value{}
	for _, a := range s.Block.Attributes {
		v, ok := set[a.Name]
		if !ok {
			v = cty.NullVal(a.Type)
		}
		config[a.Name], proposed[a.Name] = v, v
		if !ok && a.Computed {
			proposed[a.Name] = cty.UnknownVal(a.Type)
		}
	}
	encode := func(v cty.Value) *tfprotov6.DynamicValue {
		d, err := schema.Encode(v, ty)
		if err != nil {
			panic(err)
		}
		return d
	}
	conf, null := encode(cty.ObjectVal(config)), encode(cty.NullVal(ty))
	v, err := l.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: typeName, Config: conf})
	if err != nil {
		return cty.NilVal, nil, err
	}
	if hasErrors(v.Diagnostics) {
		return cty.NilVal, nil, diagnosticsError(v.Diagnostics)
	}
	plan, err := l.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: typeName, PriorState: null, ProposedNewState: encode(cty.ObjectVal(proposed)), Config: conf,
	})
	if err != nil {
		return cty.NilVal, nil, err
	}
	if hasErrors(plan.Diagnostics) {
		return cty.NilVal, nil, diagnosticsError(plan.Diagnostics)
	}
	applied, err := l.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: typeName, PriorState: null, PlannedState: plan.PlannedState, Config: conf, PlannedPrivate: plan.PlannedPrivate,
	})
	if err != nil {
		return cty.NilVal, nil, err
	}
	if hasErrors(applied.Diagnostics) {
		return cty.NilVal, applied, diagnosticsError(applied.Diagnostics)
	}
	read, err := l.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: typeName, CurrentState: applied.NewState, Private: applied.Private})
	if err != nil {
		return cty.NilVal, applied, err
	}
	if hasErrors(read.Diagnostics) {
		return cty.NilVal, applied, diagnosticsError(read.Diagnostics)
	}
	if !bytes.Equal(read.NewState.MsgPack, applied.NewState.MsgPack) {
		return cty.NilVal, applied, fmt.Errorf("read differs from what was applied")
	}
	out, err := schema.Decode(read.NewState, ty)
	return out, applied, err
}
