package activitiestest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// FakeProvider is an in-memory provider with the schema of Schema. It records its calls.
type FakeProvider struct {
	tfprotov6.ProviderServer
	t      *testing.T
	schema *schema.Provider

	mu    sync.Mutex
	Calls []string
	// Fails holds the diagnostics of the calls that must fail. Its key is a call as Calls records it.
	Fails map[string][]*tfprotov6.Diagnostic
	// Deferred is the set of calls that the provider answers with a deferral. Its key is a call as Calls records it.
	Deferred map[string]bool
	// InvokeAction calls While during an invocation, if While is not nil.
	While func()
	// Lost ends an invocation without a completion event. Broken ends it with an error of its stream.
	Lost, Broken bool
	// Things are the IDs of the resources that a list request returns. For the ID "whole", the result includes the
	// complete resource.
	Things []string
}

func newFake(t *testing.T) *FakeProvider {
	return &FakeProvider{t: t, schema: Schema(), Fails: map[string][]*tfprotov6.Diagnostic{},
		Deferred: map[string]bool{}}
}

func (f *FakeProvider) RecordedCalls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.Calls)
}

func (f *FakeProvider) record(format string, args ...any) ([]*tfprotov6.Diagnostic, *tfprotov6.Deferred) {
	call := fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Calls = append(f.Calls, call)
	if f.Deferred[call] {
		return nil, &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	return f.Fails[call], nil
}

func Refusal(summary string) []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: summary}}
}

// decode returns the known attributes of a configuration as strings.
func (f *FakeProvider) decode(d *tfprotov6.DynamicValue, s *schema.Schema) map[string]string {
	v, err := schema.Decode(d, s.Block.ImpliedType())
	if err != nil {
		f.t.Error(err)
		return nil
	}
	out := map[string]string{}
	for name, a := range v.AsValueMap() {
		if a.IsKnown() && !a.IsNull() {
			out[name] = a.AsString()
		}
	}
	return out
}

func (f *FakeProvider) encode(ty cty.Type, texts map[string]string) *tfprotov6.DynamicValue {
	vals := map[string]cty.Value{}
	for name, t := range ty.AttributeTypes() {
		vals[name] = cty.NullVal(t)
		if text, ok := texts[name]; ok {
			vals[name] = cty.StringVal(text)
		}
	}
	d, err := schema.Encode(cty.ObjectVal(vals), ty)
	if err != nil {
		f.t.Error(err)
	}
	return d
}

func (f *FakeProvider) ValidateDataResourceConfig(context.Context,
	*tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (f *FakeProvider) ReadDataSource(_ context.Context,
	r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	s := f.schema.DataSources[r.TypeName]
	c := f.decode(r.Config, s)
	diags, deferred := f.record("read %s", c["name"])
	c["id"], c["token"] = "id-"+c["name"], "token-"+c["name"]
	return &tfprotov6.ReadDataSourceResponse{State: f.encode(s.Block.ImpliedType(), c), Diagnostics: diags,
		Deferred: deferred}, nil
}

func (f *FakeProvider) ValidateEphemeralResourceConfig(context.Context,
	*tfprotov6.ValidateEphemeralResourceConfigRequest) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return &tfprotov6.ValidateEphemeralResourceConfigResponse{}, nil
}

func (f *FakeProvider) OpenEphemeralResource(_ context.Context,
	r *tfprotov6.OpenEphemeralResourceRequest) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	s := f.schema.Ephemerals[r.TypeName]
	c := f.decode(r.Config, s)
	diags, deferred := f.record("open %s", c["audience"])
	c["value"] = "value-for-" + c["audience"]
	return &tfprotov6.OpenEphemeralResourceResponse{
		Result: f.encode(s.Block.ImpliedType(), c), Private: []byte(c["audience"]), Diagnostics: diags,
		Deferred: deferred,
	}, nil
}

func (f *FakeProvider) CloseEphemeralResource(_ context.Context,
	r *tfprotov6.CloseEphemeralResourceRequest) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	diags, _ := f.record("close %s", r.Private)
	return &tfprotov6.CloseEphemeralResourceResponse{Diagnostics: diags}, nil
}

func (f *FakeProvider) ValidateActionConfig(context.Context,
	*tfprotov6.ValidateActionConfigRequest) (*tfprotov6.ValidateActionConfigResponse, error) {
	return &tfprotov6.ValidateActionConfigResponse{}, nil
}

func (f *FakeProvider) PlanAction(_ context.Context,
	r *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	diags, deferred := f.record("plan %s", f.decode(r.Config, f.schema.Actions[r.ActionType])["target"])
	return &tfprotov6.PlanActionResponse{Diagnostics: diags, Deferred: deferred}, nil
}

func (f *FakeProvider) InvokeAction(_ context.Context,
	r *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	c := f.decode(r.Config, f.schema.Actions[r.ActionType])
	diags, _ := f.record("invoke %s %s", c["target"], c["password"])
	return &tfprotov6.InvokeActionServerStream{Events: func(yield func(tfprotov6.InvokeActionEvent) bool) {
		for _, text := range []string{"half way", "almost"} {
			yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.ProgressInvokeActionEventType{Message: text}})
		}
		if f.While != nil {
			f.While()
		}
		if f.Broken {
			yield(tfprotov6.InvokeActionEvent{Type: struct {
				tfprotov6.InvokeActionEventType
				error
			}{error: errors.New("the stream broke")}})
			return
		}
		if !f.Lost {
			yield(tfprotov6.InvokeActionEvent{Type: tfprotov6.CompletedInvokeActionEventType{Diagnostics: diags}})
		}
	}}, nil
}

func (f *FakeProvider) CallFunction(_ context.Context,
	r *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	v, err := schema.Decode(r.Arguments[0], cty.String)
	if err != nil {
		return nil, err
	}
	f.record("call %s", r.Name)
	d, err := schema.Encode(cty.StringVal(strings.ToUpper(v.AsString())), cty.String)
	return &tfprotov6.CallFunctionResponse{Result: d}, err
}

func (f *FakeProvider) identity(id string) *tfprotov6.ResourceIdentityData {
	return &tfprotov6.ResourceIdentityData{IdentityData: f.encode(f.schema.Identities["test_thing"].ImpliedType(),
		map[string]string{"id": id})}
}

func (f *FakeProvider) thing(id string) *tfprotov6.DynamicValue {
	return f.encode(f.schema.Resources["test_thing"].Block.ImpliedType(),
		map[string]string{"id": id, "password": "secret-of-" + id, "uses": "${of " + id + "}"})
}

func (f *FakeProvider) ValidateListResourceConfig(context.Context,
	*tfprotov6.ValidateListResourceConfigRequest) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return &tfprotov6.ValidateListResourceConfigResponse{}, nil
}

func (f *FakeProvider) ListResource(_ context.Context,
	r *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	diags, _ := f.record("list %s", f.decode(r.Config, f.schema.ListResources[r.TypeName])["prefix"])
	return &tfprotov6.ListResourceServerStream{Results: func(yield func(tfprotov6.ListResourceResult) bool) {
		for _, id := range f.Things {
			result := tfprotov6.ListResourceResult{DisplayName: "Thing " + id, Identity: f.identity(id)}
			if r.IncludeResource && id == "whole" {
				result.Resource = f.thing(id)
			}
			if !yield(result) {
				return
			}
		}
		if len(diags) > 0 {
			yield(tfprotov6.ListResourceResult{Diagnostics: diags})
		}
	}}, nil
}

func (f *FakeProvider) ImportResourceState(_ context.Context,
	r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	id := r.ID
	if r.Identity != nil {
		v, err := schema.Decode(r.Identity.IdentityData, f.schema.Identities["test_thing"].ImpliedType())
		if err != nil {
			return nil, err
		}
		id = v.GetAttr("id").AsString()
	}
	diags, _ := f.record("import %s", id)
	return &tfprotov6.ImportResourceStateResponse{Diagnostics: diags, ImportedResources: []*tfprotov6.ImportedResource{
		{TypeName: r.TypeName, State: f.thing(id), Identity: f.identity(id)},
	}}, nil
}

func (f *FakeProvider) ReadResource(_ context.Context,
	r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, NewIdentity: r.CurrentIdentity}, nil
}

// Done sets the status of an object as if its current generation were applied.
func (w *World) Done(r *resource.Resource) {
	w.T.Helper()
	s := resource.StatusOf(r.Object)
	s.Ready(r.Ref.Generation, "")
	condition.Ready(&s.Conditions, r.Ref.Generation, v1alpha1.ReasonApplied, "done")
	r.Object.Object["status"] = s.ToMap()
}

// RecordBegun records a change of another plan that began. ended is true if that plan ended without learning the
// outcome.
func (w *World) RecordBegun(r *resource.Resource, ended bool) {
	w.T.Helper()
	old := ChangeOf(r, 7)
	old.State = v1alpha1.ChangeRunning
	if ended {
		old.State = v1alpha1.ChangeUnknown
	}
	if err := w.Ledger.SaveChange(w.T.Context(), "older", old); err != nil {
		w.T.Fatal(err)
	}
	rec := &ledger.Instance{Object: r.Ref, Mode: v1alpha1.ModeAction, Provider: "test", Plan: "older"}
	rec.Intent = &ledger.Intent{Plan: "older", Change: 7, Action: v1alpha1.ActionInvoke}
	if err := w.Ledger.Save(w.T.Context(), rec); err != nil {
		w.T.Fatal(err)
	}
}

// UnrefinedEquals reports whether two values are equal, ignoring the refinements of unknown values.
func UnrefinedEquals(a, b cty.Value) bool {
	return a.RawEquals(b) || !a.IsKnown() && !b.IsKnown()
}
