package conform6

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

func (s *server) ValidateResourceConfig(ctx context.Context, req *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config)
	s.log(cloud.Call{RPC: "ValidateResourceConfig", Type: req.TypeName, Name: name})
	if b.Has("validate-error") {
		return &tfprotov6.ValidateResourceConfigResponse{Diagnostics: failed()}, nil
	}
	if req.TypeName == rawName {
		return &tfprotov6.ValidateResourceConfigResponse{}, nil
	}
	return s.framework.ValidateResourceConfig(ctx, req)
}

func (s *server) PlanResourceChange(ctx context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config, req.PriorState)
	creating, deleting := isNull(req.PriorState), isNull(req.ProposedNewState)
	s.log(cloud.Call{RPC: "PlanResourceChange", Type: req.TypeName, Name: name, Action: cloud.ActionOf(creating, deleting), Private: req.PriorPrivate, Detail: s.module(req.ProviderMeta)})
	if b.Has("plan-error") {
		return &tfprotov6.PlanResourceChangeResponse{Diagnostics: failed()}, nil
	}
	if b.Has("plan-echo") {
		return &tfprotov6.PlanResourceChangeResponse{Diagnostics: s.echo(req.TypeName, req.Config, req.PriorState)}, nil
	}
	if b.Has("plan-crash") {
		os.Exit(3)
	}
	var resp *tfprotov6.PlanResourceChangeResponse
	var err error
	if req.TypeName == rawName {
		resp, err = s.planRaw(req, b)
	} else {
		framed := *req
		framed.PriorPrivate = opened(req.PriorPrivate)
		resp, err = s.framework.PlanResourceChange(ctx, &framed)
	}
	if err != nil || hasError(resp.Diagnostics) {
		return resp, err
	}
	resp.PlannedPrivate = sealed(b, resp.PlannedPrivate)
	if b.Has("plan-private") {
		resp.PlannedPrivate = []byte(marker + `{"planned":"ImhpIg=="}`)
	}
	if b.Has("plan-kept") && !deleting {
		if err := s.planKept(ctx, req, resp, name); err != nil {
			return nil, err
		}
	}
	if b.Has("plan-warning") {
		resp.Diagnostics = append(resp.Diagnostics, problem(tfprotov6.DiagnosticSeverityWarning, "Warned on command"))
	}
	if b.Has("plan-deferred") {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonAbsentPrereq}
	}
	if deleting {
		if b.Has("destroy-planned-to-stay") {
			resp.PlannedState = req.PriorState
		}
		return resp, nil
	}
	s.spoilPlan(req, resp, b, creating)
	return resp, nil
}

// spoilPlan breaks the rules of a plan. Each behaviour breaks one.
func (s *server) spoilPlan(req *tfprotov6.PlanResourceChangeRequest, resp *tfprotov6.PlanResourceChangeResponse, b cloud.Behaviours, creating bool) {
	set := func(behaviour, attribute string, v tftypes.Value) {
		if b.Has(behaviour) {
			resp.PlannedState = s.edit(req.TypeName, resp.PlannedState, func(m map[string]tftypes.Value) { m[attribute] = v })
		}
	}
	set("planned-not-config", "name", text("somebody else"))
	set("planned-secret-not-config", "password", text("hunter3"))
	set("planned-unconfigured", "note", text("nobody asked"))
	set("planned-unknown", "name", unknown(tftypes.String))
	set("planned-write-only", "token", text("leaked"))
	set("planned-computed", "size", tftypes.NewValue(tftypes.Number, 11))
	rules := tftypes.List{ElementType: tftypes.Object{AttributeTypes: map[string]tftypes.Type{"port": tftypes.Number, "id": tftypes.String}}}
	set("planned-fewer-blocks", "rule", tftypes.NewValue(rules, []tftypes.Value{}))
	set("planned-unknown-blocks", "rule", unknown(rules))
	set("planned-unknown-size", "size", unknown(tftypes.Number))
	set("planned-unknown-bag", "bag", unknown(tftypes.Set{ElementType: tftypes.String}))
	if b.Has("planned-prior") && !creating {
		resp.PlannedState = req.PriorState // the plan calls the change equivalent to the prior value
	}
	if b.Has("planned-misfit") {
		resp.PlannedState = misfit()
	}
	if b.Has("planned-null") {
		resp.PlannedState = encode(s.types[req.TypeName], nil)
	}
	if b.Has("planned-other-identity") && resp.PlannedIdentity != nil {
		resp.PlannedIdentity = s.identity(req.TypeName, text("somebody else"))
	}
	if b.Has("planned-unknown-identity") && resp.PlannedIdentity != nil {
		resp.PlannedIdentity = s.identity(req.TypeName, unknown(tftypes.String))
	}
	if b.Has("planned-identity") && creating {
		name, _ := s.behaviours(req.TypeName, req.Config)
		resp.PlannedIdentity = s.identity(req.TypeName, text(name+"-1")) // the cloud gives this to the first thing of a name
	}
	if b.Has("planned-misfit-identity") {
		resp.PlannedIdentity = &tfprotov6.ResourceIdentityData{IdentityData: misfit()}
	}
	for behaviour, attribute := range map[string]string{
		"replace-for-name": "name", "replace-for-note": "note", "replace-for-token": "token", "replace-for-serial": "serial", "replace-for-nothing": "no_such_attribute",
	} {
		if b.Has(behaviour) {
			resp.RequiresReplace = append(resp.RequiresReplace, tftypes.NewAttributePath().WithAttributeName(attribute))
		}
	}
}

func (s *server) identity(typeName string, id tftypes.Value) *tfprotov6.ResourceIdentityData {
	return &tfprotov6.ResourceIdentityData{IdentityData: encode(s.identities[typeName], map[string]tftypes.Value{"id": id})}
}

func (s *server) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config, req.PriorState)
	creating, deleting := isNull(req.PriorState), isNull(req.PlannedState)
	s.log(cloud.Call{RPC: "ApplyResourceChange", Type: req.TypeName, Name: name, Action: cloud.ActionOf(creating, deleting), Private: req.PlannedPrivate, Detail: s.module(req.ProviderMeta)})
	// "delete-fails" applies to deletes, "create-fails" to creates, and so on. The others apply to creates and updates.
	kind := strings.ToLower(cloud.ActionOf(creating, deleting))
	switch {
	case b.Has("crash-before-" + kind):
		os.Exit(3)
	case b.Has("throttled-before-" + kind):
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate, Diagnostics: throttled()}, nil
	case b.Has("echo-in-" + kind):
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate, Diagnostics: s.echo(req.TypeName, req.Config, req.PriorState)}, nil
	case b.Has("hang-before-" + kind):
		<-s.stopped.Done()
		return &tfprotov6.ApplyResourceChangeResponse{Diagnostics: failed()}, nil
	case b.Has(kind + "-fails"):
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate, Diagnostics: failed()}, nil
	case b.Has(kind + "-fails-without-state"):
		return &tfprotov6.ApplyResourceChangeResponse{Diagnostics: failed()}, nil
	case b.Has(kind + "-fails-with-null"):
		return &tfprotov6.ApplyResourceChangeResponse{NewState: encode(s.types[req.TypeName], nil), Private: req.PlannedPrivate, Diagnostics: failed()}, nil
	}
	var resp *tfprotov6.ApplyResourceChangeResponse
	var err error
	if req.TypeName == rawName {
		resp, err = s.applyRaw(req)
	} else {
		framed := *req
		framed.PlannedPrivate = opened(req.PlannedPrivate)
		resp, err = s.framework.ApplyResourceChange(ctx, &framed)
	}
	if err != nil || hasError(resp.Diagnostics) {
		return resp, err
	}
	resp.Private = sealed(b, resp.Private)
	if b.Has("throttled-after-" + kind) { // the create succeeded, and the API throttled the read after it
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Private: req.PlannedPrivate, Diagnostics: throttled()}, nil
	}
	if b.Has("crash-after-" + kind) {
		os.Exit(3) // the create succeeded, and the answer is lost
	}
	if b.Has("hang-in-" + kind) {
		<-s.stopped.Done()
		resp.Diagnostics = append(resp.Diagnostics, problem(tfprotov6.DiagnosticSeverityError, "Stopped"))
		return resp, nil
	}
	for b.Has("deaf-in-" + kind) { // until a stop; another command ends it
		time.Sleep(50 * time.Millisecond)
		_, b = s.behaviours(req.TypeName, req.Config, req.PriorState)
	}
	if deleting {
		if b.Has("left-after-delete") {
			resp.NewState = req.PriorState
		}
		return resp, nil
	}
	s.spoilApply(req, resp, b, kind)
	return resp, nil
}

// spoilApply breaks the rules of an apply.
func (s *server) spoilApply(req *tfprotov6.ApplyResourceChangeRequest, resp *tfprotov6.ApplyResourceChangeResponse, b cloud.Behaviours, kind string) {
	set := func(behaviour, attribute string, v tftypes.Value) {
		if b.Has(behaviour) {
			resp.NewState = s.edit(req.TypeName, resp.NewState, func(m map[string]tftypes.Value) { m[attribute] = v })
		}
	}
	set("changed-after-apply", "name", text("somebody else"))
	set("unknown-after-apply", "serial", unknown(tftypes.String))
	set("write-only-after-apply", "token", text("leaked"))
	set("partial-"+kind, "note", text("half done"))
	set("grown-set", "bag", tftypes.NewValue(tftypes.Set{ElementType: tftypes.String}, []tftypes.Value{text("a"), text("b"), text("c"), text("d")}))
	if b.Has("partial-"+kind) || b.Has("whole-but-failed-"+kind) {
		resp.Diagnostics = append(resp.Diagnostics, failed()...)
	}
	if b.Has("misfit-after-apply") {
		resp.NewState = misfit()
	}
	if b.Has("null-after-apply") {
		resp.NewState = encode(s.types[req.TypeName], nil)
	}
	if b.Has("no-state-after-apply") {
		resp.NewState = nil
	}
	if b.Has("unknown-identity-after-apply") {
		resp.NewIdentity = s.identity(req.TypeName, unknown(tftypes.String))
	}
	if b.Has("warned-after-apply") {
		resp.Diagnostics = append(resp.Diagnostics, problem(tfprotov6.DiagnosticSeverityWarning, "Warned on command"))
	}
}

func (s *server) ReadResource(ctx context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	name, b := s.behaviours(req.TypeName, req.CurrentState)
	s.log(cloud.Call{RPC: "ReadResource", Type: req.TypeName, Name: name, Private: req.Private, Detail: s.module(req.ProviderMeta)})
	if b.Has("read-error") {
		return &tfprotov6.ReadResourceResponse{Diagnostics: failed()}, nil
	}
	if req.TypeName == rawName {
		return &tfprotov6.ReadResourceResponse{NewState: req.CurrentState, Private: req.Private}, nil
	}
	framed := *req
	framed.Private = opened(req.Private)
	resp, err := s.framework.ReadResource(ctx, &framed)
	if err != nil || hasError(resp.Diagnostics) {
		return resp, err
	}
	resp.Private = sealed(b, resp.Private)
	if b.Has("read-unknown") {
		resp.NewState = s.edit(req.TypeName, resp.NewState, func(m map[string]tftypes.Value) { m["serial"] = unknown(tftypes.String) })
	}
	if b.Has("read-write-only") {
		resp.NewState = s.edit(req.TypeName, resp.NewState, func(m map[string]tftypes.Value) { m["token"] = text("leaked") })
	}
	if b.Has("read-misfit") {
		resp.NewState = misfit()
	}
	if b.Has("read-deferred") {
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonProviderConfigUnknown}
	}
	return resp, nil
}

func (s *server) UpgradeResourceState(ctx context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	var m struct{ Name, Behaviour string }
	if err := json.Unmarshal(req.RawState.JSON, &m); err != nil {
		return nil, err
	}
	s.log(cloud.Call{RPC: "UpgradeResourceState", Type: req.TypeName, Name: m.Name, Detail: string(req.RawState.JSON)})
	if req.TypeName == rawName {
		v, err := req.RawState.Unmarshal(s.types[rawName])
		if err != nil {
			return nil, err
		}
		dv, err := tfprotov6.NewDynamicValue(s.types[rawName], v)
		return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &dv}, err
	}
	resp, err := s.framework.UpgradeResourceState(ctx, req)
	if err != nil || hasError(resp.Diagnostics) {
		return resp, err
	}
	if strings.Contains(m.Behaviour, "upgrade-unknown") {
		resp.UpgradedState = s.edit(req.TypeName, resp.UpgradedState, func(m map[string]tftypes.Value) { m["name"] = unknown(tftypes.String) })
	}
	if strings.Contains(m.Behaviour, "upgrade-misfit") {
		resp.UpgradedState = misfit()
	}
	if strings.Contains(m.Behaviour, "upgrade-error") {
		resp.Diagnostics = failed()
	}
	return resp, nil
}

func (s *server) UpgradeResourceIdentity(ctx context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	s.log(cloud.Call{RPC: "UpgradeResourceIdentity", Type: req.TypeName, Detail: string(req.RawIdentity.JSON)})
	return s.framework.UpgradeResourceIdentity(ctx, req)
}

// ImportResourceState takes a behaviour from the ID: "none!" finds nothing, and "two!", "null!", "other-type!" and
// "deferred!" do what they say.
func (s *server) ImportResourceState(ctx context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	s.log(cloud.Call{RPC: "ImportResourceState", Type: req.TypeName, Name: req.ID})
	resp, err := s.framework.ImportResourceState(ctx, req)
	if err != nil || len(resp.ImportedResources) == 0 {
		return resp, err
	}
	switch one := resp.ImportedResources[0]; {
	case req.ID == "none!":
		resp.ImportedResources = nil
	case req.ID == "two!":
		resp.ImportedResources = append(resp.ImportedResources, one)
	case req.ID == "null!":
		one.State = encode(s.types[req.TypeName], nil)
	case req.ID == "no-type!":
		one.TypeName = ""
	case req.ID == "other-type!":
		one.TypeName = "conform6_values"
	case req.ID == "unknown!":
		one.State = s.edit(req.TypeName, one.State, func(m map[string]tftypes.Value) { m["note"] = unknown(tftypes.String) })
	case req.ID == "deferred!":
		resp.Deferred = &tfprotov6.Deferred{Reason: tfprotov6.DeferredReasonResourceConfigUnknown}
	case req.ID == "error!":
		resp.Diagnostics = failed()
	}
	return resp, nil
}

func (s *server) MoveResourceState(ctx context.Context, req *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	s.log(cloud.Call{RPC: "MoveResourceState", Type: req.TargetTypeName, Private: req.SourcePrivate, Detail: req.SourceProviderAddress + " " + req.SourceTypeName})
	return s.framework.MoveResourceState(ctx, req)
}

func throttled() []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{problem(tfprotov6.DiagnosticSeverityError, "429 Too Many Requests")}
}

// echo returns an error that quotes the password, as some providers quote their arguments.
func (s *server) echo(typeName string, values ...*tfprotov6.DynamicValue) []*tfprotov6.Diagnostic {
	text := "cannot log in with"
	for _, dv := range values {
		if v, err := dv.Unmarshal(s.types[typeName]); err == nil {
			text += fmt.Sprintf(" %q", textOf(v, "password"))
		}
	}
	return []*tfprotov6.Diagnostic{problem(tfprotov6.DiagnosticSeverityError, text)}
}

func hasError(ds []*tfprotov6.Diagnostic) bool {
	for _, d := range ds {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			return true
		}
	}
	return false
}
