package conform5

//lint:file-ignore SA1019 the legacy type system is what this provider is about

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-sdk/v2/helper/schema"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// server returns the SDK's answers, except where a behaviour changes them.
type server struct {
	tfprotov5.ProviderServer
	types map[string]tftypes.Type

	mu    sync.Mutex
	cloud *cloud.Cloud // nil until the provider is configured
}

func New() (tfprotov5.ProviderServer, error) {
	s := &server{ProviderServer: schema.NewGRPCProviderServer(honest()), types: map[string]tftypes.Type{}}
	all, err := s.GetProviderSchema(context.Background(), &tfprotov5.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	for name, sch := range all.ResourceSchemas {
		s.types[name] = sch.ValueType()
	}
	return s, nil
}

func (s *server) ConfigureProvider(ctx context.Context, req *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	v, err := req.Config.Unmarshal(tftypes.Object{AttributeTypes: map[string]tftypes.Type{"directory": tftypes.String}})
	if err != nil {
		return nil, err
	}
	var m map[string]tftypes.Value
	if err := v.As(&m); err != nil {
		return nil, err
	}
	var dir *string
	if err := m["directory"].As(&dir); err != nil {
		return nil, err
	}
	named := ""
	if dir != nil {
		named = *dir
	}
	c, err := cloud.Open(cmp.Or(named, os.Getenv(cloud.DirectoryEnv)))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.cloud = c
	s.mu.Unlock()
	return s.ProviderServer.ConfigureProvider(ctx, req)
}

func (s *server) where() *cloud.Cloud {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cloud
}

// behaviours returns a resource's name and its behaviours, from the first value that is not null.
func (s *server) behaviours(typeName string, values ...*tfprotov5.DynamicValue) (string, cloud.Behaviours) {
	for _, dv := range values {
		m := s.fields(typeName, dv)
		if m == nil {
			continue
		}
		if c := s.where(); c != nil {
			return str(m["name"]), c.Behaviours(str(m["name"]), str(m["behaviour"]))
		}
		return str(m["name"]), strings.Split(str(m["behaviour"]), ",")
	}
	return "", nil
}

func (s *server) fields(typeName string, dv *tfprotov5.DynamicValue) map[string]tftypes.Value {
	if dv == nil {
		return nil
	}
	v, err := dv.Unmarshal(s.types[typeName])
	if err != nil || v.IsNull() || !v.IsKnown() {
		return nil
	}
	var m map[string]tftypes.Value
	_ = v.As(&m) // it is an object
	return m
}

func str(v tftypes.Value) string {
	var s string
	if v.IsKnown() && !v.IsNull() && v.Type() != nil && v.Type().Is(tftypes.String) {
		_ = v.As(&s) // it is a string
	}
	return s
}

func (s *server) encode(ty tftypes.Type, v any) *tfprotov5.DynamicValue {
	dv, err := tfprotov5.NewDynamicValue(ty, tftypes.NewValue(ty, v))
	if err != nil {
		panic(fmt.Sprintf("encode: %v", err)) // a bug of the suite
	}
	return &dv
}

func (s *server) set(typeName string, dv *tfprotov5.DynamicValue, attribute string, v any) *tfprotov5.DynamicValue {
	m := s.fields(typeName, dv)
	if m == nil {
		return dv
	}
	m[attribute] = tftypes.NewValue(tftypes.String, v)
	return s.encode(s.types[typeName], m)
}

func (s *server) misfit() *tfprotov5.DynamicValue {
	ty := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"surprise": tftypes.String}}
	return s.encode(ty, map[string]tftypes.Value{"surprise": tftypes.NewValue(tftypes.String, "boo")})
}

func (s *server) log(call cloud.Call) {
	if c := s.where(); c != nil {
		if err := c.Log(call); err != nil {
			fmt.Fprintln(os.Stderr, "log call:", err)
		}
	}
}

func isNull(dv *tfprotov5.DynamicValue) bool {
	if dv == nil {
		return true
	}
	null, err := dv.IsNull()
	return err == nil && null
}

func (s *server) PlanResourceChange(ctx context.Context, req *tfprotov5.PlanResourceChangeRequest) (*tfprotov5.PlanResourceChangeResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config, req.PriorState)
	creating, deleting := isNull(req.PriorState), isNull(req.ProposedNewState)
	s.log(cloud.Call{RPC: "PlanResourceChange", Type: req.TypeName, Name: name, Action: cloud.ActionOf(creating, deleting), Private: req.PriorPrivate})
	resp, err := s.ProviderServer.PlanResourceChange(ctx, req)
	if err != nil || deleting {
		return resp, err
	}
	switch {
	case b.Has("planned-write-only"):
		resp.PlannedState = s.set(req.TypeName, resp.PlannedState, "token", "leaked")
	case b.Has("planned-not-config"):
		resp.PlannedState = s.set(req.TypeName, resp.PlannedState, "name", "somebody else")
	case b.Has("planned-misfit"):
		resp.PlannedState = s.misfit()
	case b.Has("planned-null"):
		resp.PlannedState = s.encode(s.types[req.TypeName], nil)
	case b.Has("changes-ignored"):
		resp.PlannedState = s.set(req.TypeName, resp.PlannedState, "note", "changed although it is ignored")
	case b.Has("replace-for-nothing"):
		resp.RequiresReplace = append(resp.RequiresReplace, tftypes.NewAttributePath().WithAttributeName("no_such_attribute"))
	case b.Has("not-legacy"):
		resp.UnsafeToUseLegacyTypeSystem = false
	}
	return resp, nil
}

func (s *server) ApplyResourceChange(ctx context.Context, req *tfprotov5.ApplyResourceChangeRequest) (*tfprotov5.ApplyResourceChangeResponse, error) {
	name, b := s.behaviours(req.TypeName, req.Config, req.PriorState)
	creating, deleting := isNull(req.PriorState), isNull(req.PlannedState)
	s.log(cloud.Call{RPC: "ApplyResourceChange", Type: req.TypeName, Name: name, Action: cloud.ActionOf(creating, deleting), Private: req.PlannedPrivate})
	resp, err := s.ProviderServer.ApplyResourceChange(ctx, req)
	if err != nil {
		return nil, err
	}
	switch {
	case deleting && b.Has("left-after-delete"):
		resp.NewState = req.PriorState
	case deleting:
	case b.Has("crash-after-" + strings.ToLower(cloud.ActionOf(creating, deleting))):
		os.Exit(3)
	case b.Has("changed-after-apply"):
		resp.NewState = s.set(req.TypeName, resp.NewState, "name", "somebody else")
	case b.Has("unknown-after-apply"):
		resp.NewState = s.set(req.TypeName, resp.NewState, "serial", tftypes.UnknownValue)
	case b.Has("write-only-after-apply"):
		resp.NewState = s.set(req.TypeName, resp.NewState, "token", "leaked")
	case b.Has("misfit-after-apply"):
		resp.NewState = s.misfit()
	case b.Has("null-after-apply"):
		resp.NewState = s.encode(s.types[req.TypeName], nil)
	case b.Has("not-legacy-after-apply"):
		resp.UnsafeToUseLegacyTypeSystem = false
	}
	return resp, nil
}

func (s *server) ReadResource(ctx context.Context, req *tfprotov5.ReadResourceRequest) (*tfprotov5.ReadResourceResponse, error) {
	name, _ := s.behaviours(req.TypeName, req.CurrentState)
	s.log(cloud.Call{RPC: "ReadResource", Type: req.TypeName, Name: name, Private: req.Private})
	return s.ProviderServer.ReadResource(ctx, req)
}
