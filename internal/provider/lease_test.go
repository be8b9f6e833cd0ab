package provider

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"
)

// TestLeaseServesAllOfTheProtocol drives a real process through all that a provider may have, once for each protocol.
func TestLeaseServesAllOfTheProtocol(t *testing.T) {
	for protocol, mode := range map[int]string{6: "protocol6", 5: "protocol5"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			l := acquire(t, newPool(t, PoolConfig{}, "TINY_MODE="+mode), tinyPackage(t), Configuration{Key: "eu", Config: tinyConfig("eu")})
			if l.Schema.Protocol != protocol {
				t.Fatalf("the process speaks protocol %d", l.Schema.Protocol)
			}
			t.Run("life", func(t *testing.T) { lifeOfAHost(t, l) })
			t.Run("import", func(t *testing.T) { importOfAHost(t, l) })
			t.Run("list", func(t *testing.T) { listOfHosts(t, l) })
			t.Run("action", func(t *testing.T) { pokes(t, l) })
			t.Run("data source", func(t *testing.T) { data(t, l) })
			t.Run("ephemeral resource", func(t *testing.T) { ephemeralKey(t, l) })
			t.Run("function", func(t *testing.T) { shouts(t, l) })
		})
	}
}

func object(set ...any) cty.Value {
	m := map[string]cty.Value{}
	for i := 0; i < len(set); i += 2 {
		v, ok := set[i+1].(cty.Value)
		if !ok {
			v = cty.StringVal(set[i+1].(string))
		}
		m[set[i].(string)] = v
	}
	return cty.ObjectVal(m)
}

var noString = cty.NullVal(cty.String)

func hostType(l *Lease, module string) *instance.Type {
	ty := instance.NewType(l.Schema, "tiny_host")
	ty.Provider = l
	if module != "" {
		ty.Meta = object("module", module)
	}
	return &ty
}

func lifeOfAHost(t *testing.T, l *Lease) {
	ctx, ty := t.Context(), hostType(l, "net")
	config := object("name", "a", "seen", noString)
	p, _, err := ty.Plan(ctx, ty.Null(), instance.Config{Written: config, Effective: config}, false)
	if err != nil {
		t.Fatal(err)
	}
	o := ty.Apply(ctx, ty.Null(), p, config)
	if o.Err != nil {
		t.Fatal(o.Err)
	}
	if want := object("name", "a", "seen", "created by net"); !o.State.Value.RawEquals(want) {
		t.Errorf("got %#v, want %#v: the provider's metadata goes along", o.State.Value, want)
	}
	var rec ledger.State
	if err := ty.Record(&rec, o.State); err != nil {
		t.Fatal(err)
	}
	if string(rec.Identity) != `{"name":"a"}` || rec.IdentityVersion != 1 {
		t.Errorf("recorded identity %s, version %d", rec.Identity, rec.IdentityVersion)
	}
	s, err := ty.Load(ctx, &rec)
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err = ty.Read(ctx, s); err != nil || !s.Identity.RawEquals(object("name", "a")) {
		t.Errorf("read identity %#v, %v", s.Identity, err)
	}
	d, _, err := ty.PlanDelete(ctx, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if o := ty.Apply(ctx, s, d, cty.NullVal(config.Type())); o.Err != nil || o.State.Exists() {
		t.Errorf("delete: %v, left %#v", o.Err, o.State.Value)
	}
}

func importOfAHost(t *testing.T, l *Lease) {
	ty := hostType(l, "")
	for name, by := range map[string]instance.ImportBy{
		"id": {ID: "b"}, "identity": {Identity: object("name", "b")},
	} {
		s, _, err := ty.Import(t.Context(), by)
		if err != nil {
			t.Errorf("by %s: %v", name, err)
			continue
		}
		if want := object("name", "b", "seen", "read"); !s.Value.RawEquals(want) || !s.Identity.RawEquals(object("name", "b")) {
			t.Errorf("by %s: got %#v, identity %#v", name, s.Value, s.Identity)
		}
	}
	if _, _, err := ty.Import(t.Context(), instance.ImportBy{ID: "nothing"}); err == nil || !strings.Contains(err.Error(), "non-existent") {
		t.Errorf("what is not there: %v", err)
	}
}

func listOfHosts(t *testing.T, l *Lease) {
	list := instance.List{Name: "tiny_host", Type: hostType(l, ""), Schema: l.Schema.ListResources["tiny_host"], Provider: l}
	var got []string
	for f, err := range list.Query(t.Context(), object("prefix", "h"), 3, true) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s: %s, %s", f.DisplayName, f.Identity.GetAttr("name").AsString(), f.Resource.GetAttr("seen").AsString()))
	}
	if diff := cmp.Diff([]string{"Host h0: h0, listed", "Host h1: h1, listed", "Host h2: h2, listed"}, got); diff != "" {
		t.Errorf("the limit of an endless list (-want +got):\n%s", diff)
	}
	seen := 0
	for f, err := range list.Query(t.Context(), object("prefix", noString), 0, false) {
		if err != nil || f.Resource != cty.NilVal {
			t.Fatalf("got %+v, %v; no resource was asked for", f, err)
		}
		if seen++; seen == 20 {
			break
		}
	}
	if made, inFlight := l.process.server.Made(), l.process.server.InFlight(); inFlight != 0 {
		t.Errorf("%d of %d calls are still going on after the loop", inFlight, made)
	}
}

func pokes(t *testing.T, l *Lease) {
	a := instance.Action{Name: "tiny_poke", Schema: l.Schema.Actions["tiny_poke"], Provider: l}
	config := object("times", cty.NumberIntVal(2))
	if _, err := a.Plan(t.Context(), object("times", cty.UnknownVal(cty.Number))); err != nil {
		t.Errorf("plan: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var heard []string
	diags, err := a.Invoke(ctx, config, func(m string) {
		heard = append(heard, m)
		cancel() // it continues nevertheless
	})
	if err != nil || len(diags) != 1 || diags[0].Summary != "Ouch" {
		t.Errorf("got %v, %v; want one warning", diags, err)
	}
	if diff := cmp.Diff([]string{"poke 1", "poke 2"}, heard); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func data(t *testing.T, l *Lease) {
	d := instance.NewDataSource(l.Schema, "tiny_where")
	d.Provider = l
	config := object("name", "x", "answer", noString)
	if v, _, err := d.Read(t.Context(), config); err != nil || !v.RawEquals(object("name", "x", "answer", "here is x")) {
		t.Errorf("got %#v, %v", v, err)
	}
	if v := d.Unread(config); v.GetAttr("answer").IsKnown() || !v.GetAttr("name").IsKnown() {
		t.Errorf("unread: %#v", v)
	}
}

func ephemeralKey(t *testing.T, l *Lease) {
	e := instance.Ephemeral{Name: "tiny_key", Schema: l.Schema.Ephemerals["tiny_key"], Provider: l}
	o, _, err := e.Open(t.Context(), object("value", noString))
	if err != nil {
		t.Fatal(err)
	}
	if got := o.Value.GetAttr("value").AsString(); got != "sesame" {
		t.Errorf("got %q", got)
	}
	if err := o.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func shouts(t *testing.T, l *Lease) {
	fns := instance.Functions("tiny", l.Schema, func(context.Context) (tfprotov6.ProviderServer, func(), error) { return l, func() {}, nil })
	shout, ok := fns["provider::tiny::shout"]
	if !ok {
		t.Fatalf("got %v", fns)
	}
	if v, err := shout.Call([]cty.Value{cty.StringVal("a"), cty.StringVal("b"), noString}); err != nil || v.AsString() != "A B " {
		t.Errorf("got %#v, %v", v, err)
	}
	if _, err := shout.Call([]cty.Value{cty.StringVal("a"), cty.StringVal("please")}); err == nil || !strings.Contains(err.Error(), "no shouting") {
		t.Errorf("a bad argument: %v", err)
	}
	if v, err := shout.Call([]cty.Value{cty.UnknownVal(cty.String)}); err != nil || v.IsKnown() {
		t.Errorf("an unknown argument: %#v, %v", v, err)
	}
}

// TestInvokeOfALostProcess ends a process during an action. The error has the stack trace, and not the message of the
// panic.
func TestInvokeOfALostProcess(t *testing.T) {
	t.Parallel()
	l := acquire(t, newPool(t, PoolConfig{}), tinyPackage(t), Configuration{Key: "none"})
	a := instance.Action{Name: "tiny_poke", Schema: l.Schema.Actions["tiny_poke"], Provider: l}
	_, err := a.Invoke(t.Context(), object("times", cty.NumberIntVal(13)), nil)
	if !diag.IsFailure(err, diag.Lost) || !strings.Contains(err.Error(), "main.poke.Invoke(") || strings.Contains(err.Error(), "unlucky") {
		t.Errorf("got %v, want the stack trace of the process alone", err)
	}
}

// answering is a provider that returns its functions only on request.
type answering struct {
	Server
	identities *tfprotov6.GetResourceIdentitySchemasResponse
	functions  *tfprotov6.GetFunctionsResponse
	asked      int
}

func (a *answering) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return a.identities, nil
}

func (a *answering) GetFunctions(context.Context, *tfprotov6.GetFunctionsRequest) (*tfprotov6.GetFunctionsResponse, error) {
	a.asked++
	return a.functions, nil
}

func TestIdentitiesAndFunctionsBesideTheSchema(t *testing.T) {
	no := []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: "broken"}}
	known := map[string]*schema.Function{"known": {}}
	for name, tc := range map[string]struct {
		reason string
		server answering
		fall   bool
		want   string
		err    string
	}{
		"functions in the schema": {"they are not asked for again", answering{identities: &tfprotov6.GetResourceIdentitySchemasResponse{}}, false, "known", ""},
		"functions beside it": {"they are asked for", answering{
			identities: &tfprotov6.GetResourceIdentitySchemasResponse{},
			functions: &tfprotov6.GetFunctionsResponse{Functions: map[string]*tfprotov6.Function{
				"found": {Return: &tfprotov6.FunctionReturn{Type: tftypes.String}},
			}},
		}, true, "found", ""},
		"broken identities": {"they cannot be guessed", answering{identities: &tfprotov6.GetResourceIdentitySchemasResponse{Diagnostics: no}}, false, "", "broken"},
		"broken functions":  {"they cannot be guessed", answering{identities: &tfprotov6.GetResourceIdentitySchemasResponse{}, functions: &tfprotov6.GetFunctionsResponse{Diagnostics: no}}, true, "", "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &schema.Provider{Functions: known}
			err := readRest(t.Context(), &tc.server, p, tc.fall)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v", tc.reason, err)
				}
				return
			}
			if err != nil || p.Functions[tc.want] == nil || p.Identities == nil || (tc.server.asked > 0) != tc.fall {
				t.Errorf("%s: got %v, %v, asked %d times", tc.reason, p.Functions, err, tc.server.asked)
			}
		})
	}
}
