package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"
)

func TestImport(t *testing.T) {
	one := func(typeName string, v cty.Value) *tfprotov6.ImportedResource {
		return &tfprotov6.ImportedResource{TypeName: typeName, State: wire(t, v), Private: []byte("from import")}
	}
	nothing := cty.NullVal(testBlock.ImpliedType())
	sketch := thing(str("1"), null)
	for name, tc := range map[string]struct {
		reason string
		by     ImportBy
		found  []*tfprotov6.ImportedResource
		failed []*tfprotov6.Diagnostic
		read   cty.Value
		err    string
	}{
		"by id":               {"what was found is read", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("test_thing", sketch)}, nil, thing(str("1"), str("a")), ""},
		"by identity":         {"what was found is read", ImportBy{Identity: identity(str("a"))}, []*tfprotov6.ImportedResource{one("test_thing", sketch)}, nil, thing(str("1"), str("a")), ""},
		"by nothing":          {"something must say what", ImportBy{}, nil, nil, nothing, "neither"},
		"by both":             {"they could disagree", ImportBy{ID: "1", Identity: identity(str("a"))}, nil, nil, nothing, "both"},
		"by half an identity": {"the schema says what is needed", ImportBy{Identity: identity(null)}, nil, nil, nothing, `"name" is required`},
		"by what is unknown":  {"it must be known", ImportBy{Identity: identity(cty.UnknownVal(cty.String))}, nil, nil, nothing, "not known yet"},
		"refused":             {"the provider says why", ImportBy{ID: "1"}, nil, failure("no access"), nothing, "no access"},
		"none":                {"exactly one", ImportBy{ID: "1"}, nil, nil, nothing, "the provider found nothing under"},
		"two":                 {"exactly one", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("test_thing", sketch), one("test_rule", sketch)}, nil, nothing, "found 2 resources"},
		"another type":        {"it must be what was asked for", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("test_rule", sketch)}, nil, nothing, `another type, "test_rule"`},
		"no type":             {"it must be what was asked for", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("", sketch)}, nil, nothing, `another type, ""`},
		"a null object":       {"that is nothing", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("test_thing", nothing)}, nil, nothing, "found nothing"},
		"an open object":      {"what exists is known", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("test_thing", thing(str("1"), cty.UnknownVal(cty.String)))}, nil, nothing, "unknown values"},
		"gone when read":      {"only then it is known to exist", ImportBy{ID: "1"}, []*tfprotov6.ImportedResource{one("test_thing", sketch)}, nil, nothing, "cannot import non-existent"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{}
			s.imports = func(r *tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse {
				if r.ID != tc.by.ID || (r.Identity == nil) != (tc.by.Identity == cty.NilVal) {
					t.Errorf("asked for %q, %v", r.ID, r.Identity)
				}
				return &tfprotov6.ImportResourceStateResponse{ImportedResources: tc.found, Diagnostics: tc.failed}
			}
			s.read = func(r *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
				if string(r.Private) != "from import" {
					t.Errorf("read with %q", r.Private)
				}
				return &tfprotov6.ReadResourceResponse{NewState: wire(t, tc.read), NewIdentity: wireIdentity(t, identity(str("a")))}
			}
			got, _, err := withIdentity(t, s).Import(t.Context(), tc.by)
			wantError(t, tc.reason, err, tc.err)
			if err == nil && (!got.Value.RawEquals(tc.read) || !got.Identity.RawEquals(identity(str("a")))) {
				t.Errorf("%s: got %#v, %#v", tc.reason, got.Value, got.Identity)
			}
			if err != nil && got.Exists() {
				t.Errorf("%s: an error and %#v", tc.reason, got.Value)
			}
		})
	}
	ty := newType(t, &scripted{})
	if _, _, err := ty.Import(t.Context(), ImportBy{Identity: identity(str("a"))}); err == nil || !strings.Contains(err.Error(), "by ID instead") {
		t.Errorf("a type without identities: %v", err)
	}
}

func TestMove(t *testing.T) {
	from := MoveSource{ProviderAddress: "example.com/a/b", TypeName: "old_thing", State: &ledger.State{
		SchemaVersion: 7, Attributes: []byte(`{"label":"a"}`), Private: []byte("p"), Identity: []byte(`{"arn":"x"}`), IdentityVersion: 3,
		Sensitive: []byte(`[[{"attr":"name"}],[{"attr":"label"}]]`), Tainted: true,
	}}
	for name, tc := range map[string]struct {
		reason string
		can    bool
		answer cty.Value
		failed []*tfprotov6.Diagnostic
		err    string
	}{
		"moved":    {"the state is of the new type", true, thing(str("1"), str("a")), nil, ""},
		"cannot":   {"not every provider can", false, cty.NilVal, nil, "import the resource instead"},
		"refused":  {"the provider says why", true, cty.NullVal(testBlock.ImpliedType()), failure("not from there"), "not from there"},
		"nothing":  {"a move destroys nothing", true, cty.NullVal(testBlock.ImpliedType()), nil, "with nothing"},
		"unknowns": {"what exists is known", true, thing(str("1"), cty.UnknownVal(cty.String)), nil, "unknown values"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scripted{move: func(r *tfprotov6.MoveResourceStateRequest) *tfprotov6.MoveResourceStateResponse {
				want := &tfprotov6.MoveResourceStateRequest{
					SourceProviderAddress: "example.com/a/b", SourceTypeName: "old_thing", SourceSchemaVersion: 7, TargetTypeName: "test_thing",
					SourceState: &tfprotov6.RawState{JSON: []byte(`{"label":"a"}`)}, SourcePrivate: []byte("p"),
					SourceIdentity: &tfprotov6.RawState{JSON: []byte(`{"arn":"x"}`)}, SourceIdentitySchemaVersion: 3,
				}
				if diff := cmp.Diff(want, r); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				return &tfprotov6.MoveResourceStateResponse{
					TargetState: wire(t, tc.answer), TargetPrivate: []byte("new"), Diagnostics: tc.failed, TargetIdentity: wireIdentity(t, identity(str("a"))),
				}
			}}
			ty := withIdentity(t, s)
			ty.MoveState = tc.can
			got, _, err := ty.Move(t.Context(), from)
			wantError(t, tc.reason, err, tc.err)
			if err != nil {
				return
			}
			want := thing(str("1"), str("a").Mark(lang.Sensitive))
			if !got.Value.RawEquals(want) || string(got.Private) != "new" || !got.Identity.RawEquals(identity(str("a"))) || !got.Tainted {
				t.Errorf("%s: got %#v", tc.reason, got)
			}
		})
	}
}

func TestGenerateConfig(t *testing.T) {
	inner := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "key", Type: cty.String, Optional: true, Sensitive: true}, {Name: "port", Type: cty.Number, Required: true}, {Name: "state", Type: cty.String, Computed: true},
	}}
	block := &schema.Block{
		Attributes: []*schema.Attribute{
			{Name: "empty", Type: cty.String, Optional: true},
			{Name: "id", Type: cty.String, Optional: true, Computed: true},
			{Name: "name", Type: cty.String, Required: true},
			{Name: "old", Type: cty.String, Optional: true, Deprecated: true},
			{Name: "secret", Type: cty.String, Optional: true, Sensitive: true},
			{Name: "size", Type: cty.Number, Optional: true, Computed: true},
			{Name: "tags", Type: cty.Map(cty.String), Optional: true},
		},
		Blocks: []*schema.NestedBlock{
			{TypeName: "legacy", Nesting: schema.NestingList, Block: &schema.Block{Deprecated: true, Attributes: inner.Attributes}},
			{TypeName: "rule", Nesting: schema.NestingSet, Block: inner},
		},
	}
	rule := func(key, state cty.Value) cty.Value {
		return cty.SetVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{"key": key, "port": cty.NumberIntVal(80), "state": state})})
	}
	value := func(set map[string]cty.Value) cty.Value {
		all := map[string]cty.Value{}
		for _, a := range block.Attributes {
			all[a.Name] = cty.NullVal(a.Type)
		}
		all["legacy"] = cty.ListValEmpty(inner.ImpliedType())
		for k, v := range set {
			all[k] = v
		}
		return cty.ObjectVal(all)
	}
	state := value(map[string]cty.Value{
		"legacy": cty.ListVal(rule(null, str("up")).AsValueSlice()),
		"empty":  str(""), "id": str("1"), "name": str("a"), "old": str("x"), "secret": str("hunter2"), "size": cty.NumberIntVal(3),
		"tags": cty.MapVal(map[string]cty.Value{"a": str("b"), "t": str("hunter2").Mark(lang.Sensitive)}), "rule": rule(str("hunter2"), str("up")),
	})
	want := value(map[string]cty.Value{
		"name": str("a"), "size": cty.NumberIntVal(3), "rule": rule(null, null),
		"tags": cty.MapVal(map[string]cty.Value{"a": str("b"), "t": null}),
	})
	s := &scripted{}
	ty := newType(t, s)
	ty.Schema = &schema.Schema{Block: block}
	got, err := ty.GenerateConfig(t.Context(), State{Value: state})
	if err != nil || !got.RawEquals(want) {
		t.Errorf("got %#v, %v\nwant %#v", got, err, want)
	}

	ty.GeneratesConfig = true
	answer := value(map[string]cty.Value{"name": str("by the provider"), "secret": str("hunter2"), "rule": rule(null, null)})
	s.generate = func(r *tfprotov6.GenerateResourceConfigRequest) *tfprotov6.GenerateResourceConfigResponse {
		if v, err := ty.decode(r.State); err != nil || !v.RawEquals(unmarked(state)) {
			t.Errorf("asked with %#v, %v", v, err)
		}
		return &tfprotov6.GenerateResourceConfigResponse{Config: encoded(t, ty, answer)}
	}
	want = value(map[string]cty.Value{"name": str("by the provider"), "rule": rule(null, null)})
	if got, err = ty.GenerateConfig(t.Context(), State{Value: state}); err != nil || !got.RawEquals(want) {
		t.Errorf("by the provider: got %#v, %v", got, err)
	}
	s.generate = func(*tfprotov6.GenerateResourceConfigRequest) *tfprotov6.GenerateResourceConfigResponse {
		return &tfprotov6.GenerateResourceConfigResponse{Diagnostics: failure("cannot say")}
	}
	if _, err = ty.GenerateConfig(t.Context(), State{Value: state}); err == nil || !strings.Contains(err.Error(), "cannot say") {
		t.Errorf("refused: %v", err)
	}
}
