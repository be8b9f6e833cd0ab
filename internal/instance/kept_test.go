package instance

import (
	"context"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
)

// secretName is a thing whose name came from a secret.
func secretName() cty.Value { return thing(str("1"), str("s3cret").Mark(lang.Sensitive)) }

func isSecret(v cty.Value) bool { return v.GetAttr("name").HasMark(lang.Sensitive) }

func TestReadKeepsWhatIsKnownBesideTheValue(t *testing.T) {
	s := &scripted{read: func(r *tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
		return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, Private: []byte("after")}
	}}
	now, _, err := newType(t, s).Read(t.Context(), State{Value: secretName(), Private: []byte("before"), Tainted: true})
	if err != nil {
		t.Fatal(err)
	}
	if string(s.reads[0].Private) != "before" || string(now.Private) != "after" {
		t.Errorf("private data: the provider got %q, and its answer is kept as %q", s.reads[0].Private, now.Private)
	}
	if !now.Tainted || !isSecret(now.Value) {
		t.Errorf("tainted %t, secret %t", now.Tainted, isSecret(now.Value))
	}
}

// TestNoAnswerMayHoldAWriteOnlyValue asks a provider that returns what must never be stored.
func TestNoAnswerMayHoldAWriteOnlyValue(t *testing.T) {
	s := &scripted{}
	ty := writeOnlyType(t, s)
	s.read = func(*tfprotov6.ReadResourceRequest) *tfprotov6.ReadResourceResponse {
		return &tfprotov6.ReadResourceResponse{NewState: encoded(t, ty, account(str("1"), str("hunter2")))}
	}
	s.plan = func(*tfprotov6.PlanResourceChangeRequest) *tfprotov6.PlanResourceChangeResponse {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: encoded(t, ty, account(str("1"), str("hunter2")))}
	}
	old := State{Value: account(str("1"), null)}
	if _, _, err := ty.Read(t.Context(), old); err == nil {
		t.Error("a read returns it")
	}
	if _, _, err := ty.Plan(t.Context(), old, config(account(null, str("hunter2"))), false); err == nil {
		t.Error("a plan holds it")
	}
}

// TestAFailedDestroyKeepsTheState has a destroy refused: the instance is still there, and its secrets are secrets.
func TestAFailedDestroyKeepsTheState(t *testing.T) {
	s := &scripted{apply: func(r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PriorState, Private: []byte("after"), Diagnostics: failure("in use")}, nil
	}}
	none := cty.NullVal(testBlock.ImpliedType())
	o := newType(t, s).Apply(t.Context(), State{Value: secretName()}, &Planned{Value: none}, none)
	if o.Err == nil || !o.State.Exists() || !isSecret(o.State.Value) || string(o.State.Private) != "after" {
		t.Errorf("%v: %#v, private %q", o.Err, o.State.Value, o.State.Private)
	}
}

// patient is a provider that looks whether its caller still waits.
type patient struct {
	*scripted
	err error
}

func (p *patient) ApplyResourceChange(ctx context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	p.err = ctx.Err()
	return p.scripted.ApplyResourceChange(ctx, r)
}

func TestApplyIsNotCutOff(t *testing.T) {
	p := &patient{scripted: &scripted{}}
	ty := newType(t, p.scripted)
	ty.Provider = p
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := thing(str("1"), str("a"))
	if o := ty.Apply(ctx, ty.Null(), &Planned{Value: v}, thing(null, str("a"))); o.Err != nil || p.err != nil {
		t.Errorf("the call ends with its caller: %v, %v", o.Err, p.err)
	}
}

func TestAnOlderProviderRefusesTheState(t *testing.T) {
	s := &scripted{}
	_, err := newType(t, s).Load(t.Context(), &ledger.State{SchemaVersion: 3, Attributes: []byte(`{"id":"1","name":"a"}`)})
	if err == nil || len(s.upgraded) > 0 {
		t.Errorf("got %v, and %d calls", err, len(s.upgraded))
	}
}
