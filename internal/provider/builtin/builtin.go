// Package builtin is the provider terraform.io/builtin/terraform, which is a part of the server as it is a part of
// Terraform. It has the resource type terraform_data. It may import internal/schema and the messages of the protocol.
package builtin

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/internal/schema"
	pb "github.com/hykube/hykube/sdk/batch/tfplugin6"
)

var _ grpc.ClientConnInterface = Conn{}

// Conn is a connection to the provider. Its calls run in the server.
type Conn struct{}

// Invoke calls a method of protocol 6. The provider implements what a managed resource without secrets and functions
// needs. Other methods return the code Unimplemented.
func (Conn) Invoke(_ context.Context, method string, args, reply any, _ ...grpc.CallOption) error {
	answer, err := call(args)
	if err != nil {
		return status.Errorf(codes.Internal, "%s: %v", method, err)
	}
	if answer == nil {
		return status.Errorf(codes.Unimplemented, "%s is not implemented", method)
	}
	proto.Merge(reply.(proto.Message), answer)
	return nil
}

// NewStream returns the code Unimplemented: the provider has no lists and no actions.
func (Conn) NewStream(_ context.Context, _ *grpc.StreamDesc, method string,
	_ ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, status.Errorf(codes.Unimplemented, "%s is not implemented", method)
}

// call returns the response to a request; nil for an unknown one.
func call(request any) (proto.Message, error) {
	switch r := request.(type) {
	case *pb.GetProviderSchema_Request:
		return schemas(), nil
	case *pb.GetResourceIdentitySchemas_Request:
		return &pb.GetResourceIdentitySchemas_Response{}, nil
	case *pb.GetFunctions_Request:
		return &pb.GetFunctions_Response{}, nil
	case *pb.ValidateProviderConfig_Request:
		return &pb.ValidateProviderConfig_Response{}, nil
	case *pb.ConfigureProvider_Request:
		return &pb.ConfigureProvider_Response{}, nil
	case *pb.StopProvider_Request:
		return &pb.StopProvider_Response{}, nil
	case *pb.ValidateResourceConfig_Request:
		return &pb.ValidateResourceConfig_Response{}, nil
	case *pb.ReadResource_Request:
		return &pb.ReadResource_Response{NewState: r.CurrentState, Private: r.Private}, nil
	case *pb.UpgradeResourceState_Request:
		return upgrade(r)
	case *pb.PlanResourceChange_Request:
		return plan(r)
	case *pb.ApplyResourceChange_Request:
		return apply(r)
	case *pb.ImportResourceState_Request:
		return importID(r)
	case *pb.MoveResourceState_Request:
		return move(r)
	}
	return nil, nil
}

const dataType = "terraform_data"

// dataTypes are the types of the attributes of terraform_data.
var dataTypes = cty.Object(map[string]cty.Type{
	"id": cty.String, "input": cty.DynamicPseudoType, "output": cty.DynamicPseudoType,
	"triggers_replace": cty.DynamicPseudoType,
})

func schemas() *pb.GetProviderSchema_Response {
	dynamic := []byte(`"dynamic"`)
	return &pb.GetProviderSchema_Response{
		Provider: &pb.Schema{Block: &pb.Schema_Block{}},
		ResourceSchemas: map[string]*pb.Schema{dataType: {Block: &pb.Schema_Block{Attributes: []*pb.Schema_Attribute{
			{Name: "id", Type: []byte(`"string"`), Computed: true, Description: "A random ID."},
			{Name: "input", Type: dynamic, Optional: true, Description: "The value that output has after the apply."},
			{Name: "output", Type: dynamic, Computed: true,
				Description: "The value of input. It is known after the apply of a change of input."},
			{Name: "triggers_replace", Type: dynamic, Optional: true,
				Description: "A value whose change replaces the resource."},
		}}}},
		ServerCapabilities: &pb.ServerCapabilities{MoveResourceState: true},
	}
}

func decode(v *pb.DynamicValue) (cty.Value, error) { return schema.Decode(pb.FromValue(v), dataTypes) }

func encode(v cty.Value) (*pb.DynamicValue, error) {
	out, err := schema.Encode(v, dataTypes)
	return pb.ToValue(out), err
}

func upgrade(r *pb.UpgradeResourceState_Request) (proto.Message, error) {
	v, err := ctyjson.Unmarshal(r.RawState.GetJson(), dataTypes)
	if err != nil {
		return nil, err
	}
	state, err := encode(v)
	return &pb.UpgradeResourceState_Response{UpgradedState: state}, err
}

// plan plans as Terraform does: a changed triggers_replace replaces the resource, and a changed input makes output
// unknown.
func plan(r *pb.PlanResourceChange_Request) (proto.Message, error) {
	prior, err := decode(r.PriorState)
	if err != nil {
		return nil, err
	}
	proposed, err := decode(r.ProposedNewState)
	if err != nil {
		return nil, err
	}
	out := &pb.PlanResourceChange_Response{PlannedPrivate: r.PriorPrivate}
	if proposed.IsNull() {
		out.PlannedState = r.ProposedNewState
		return out, nil
	}
	planned := proposed.AsValueMap()
	replaced := !prior.IsNull() && !prior.GetAttr("triggers_replace").RawEquals(planned["triggers_replace"])
	if replaced {
		out.RequiresReplace = []*pb.AttributePath{{Steps: []*pb.AttributePath_Step{
			{Selector: &pb.AttributePath_Step_AttributeName{AttributeName: "triggers_replace"}},
		}}}
	}
	if prior.IsNull() || replaced {
		planned["id"] = cty.UnknownVal(cty.String).RefineNotNull()
	}
	if input := planned["input"]; prior.IsNull() || replaced || !prior.GetAttr("input").RawEquals(input) {
		planned["output"] = input // also if it is null
		if !input.IsNull() {
			planned["output"] = cty.UnknownVal(input.Type())
		}
	}
	out.PlannedState, err = encode(cty.ObjectVal(planned))
	return out, err
}

func apply(r *pb.ApplyResourceChange_Request) (proto.Message, error) {
	planned, err := decode(r.PlannedState)
	if err != nil {
		return nil, err
	}
	out := &pb.ApplyResourceChange_Response{Private: r.PlannedPrivate, NewState: r.PlannedState}
	if planned.IsNull() {
		return out, nil
	}
	state := planned.AsValueMap()
	if !state["output"].IsKnown() {
		state["output"] = state["input"]
	}
	if !state["id"].IsKnown() {
		state["id"] = cty.StringVal(uuid.NewString())
	}
	out.NewState, err = encode(cty.ObjectVal(state))
	return out, err
}

// stateWith returns a state that has an ID, and is null otherwise apart from triggers.
func stateWith(id, triggers cty.Value) (*pb.DynamicValue, error) {
	null := cty.NullVal(cty.DynamicPseudoType)
	return encode(cty.ObjectVal(map[string]cty.Value{"id": id, "input": null, "output": null,
		"triggers_replace": triggers}))
}

func importID(r *pb.ImportResourceState_Request) (proto.Message, error) {
	state, err := stateWith(cty.StringVal(r.Id), cty.NullVal(cty.DynamicPseudoType))
	return &pb.ImportResourceState_Response{
		ImportedResources: []*pb.ImportResourceState_ImportedResource{{TypeName: dataType, State: state}},
	}, err
}

const nullSource = "registry.terraform.io/hashicorp/null"

// move takes the ID and the triggers of a null_resource.
func move(r *pb.MoveResourceState_Request) (proto.Message, error) {
	if r.SourceTypeName != "null_resource" || r.SourceProviderAddress != nullSource {
		return &pb.MoveResourceState_Response{Diagnostics: []*pb.Diagnostic{{
			Severity: pb.Diagnostic_ERROR, Summary: "Unsupported source provider or resource type for move",
			Detail: fmt.Sprintf("Only a null_resource of %s can move to a terraform_data.", nullSource),
		}}}, nil
	}
	old, err := ctyjson.Unmarshal(r.SourceState.GetJson(),
		cty.Object(map[string]cty.Type{"id": cty.String, "triggers": cty.Map(cty.String)}))
	if err != nil {
		return nil, err
	}
	triggers := old.GetAttr("triggers")
	if triggers.IsNull() {
		triggers = cty.NullVal(cty.DynamicPseudoType)
	}
	state, err := stateWith(old.GetAttr("id"), triggers)
	return &pb.MoveResourceState_Response{TargetState: state}, err
}
