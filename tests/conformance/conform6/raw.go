package conform6

import (
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// rawName is a type outside of the framework. It has the nesting modes that the framework lacks, and refined unknown
// values, which the framework cannot plan.
const rawName = "conform6_raw"

func rawSchema() *tfprotov6.Schema {
	inner := &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
		{Name: "key", Type: tftypes.String, Optional: true},
		{Name: "value", Type: tftypes.String, Optional: true, Computed: true},
		{Name: "id", Type: tftypes.String, Computed: true},
	}}
	return &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{
		Attributes: []*tfprotov6.SchemaAttribute{
			{Name: "id", Type: tftypes.String, Computed: true},
			{Name: "name", Type: tftypes.String, Required: true},
			{Name: "behaviour", Type: tftypes.String, Optional: true},
			{Name: "address", Type: tftypes.String, Computed: true, Description: "Begins with raw-; a plan says so when it is told to refine."},
			{Name: "number", Type: tftypes.Number, Optional: true},
		},
		BlockTypes: []*tfprotov6.SchemaNestedBlock{
			{TypeName: "group", Nesting: tfprotov6.SchemaNestedBlockNestingModeGroup, Block: inner},
			{TypeName: "map", Nesting: tfprotov6.SchemaNestedBlockNestingModeMap, Block: inner},
			{TypeName: "set", Nesting: tfprotov6.SchemaNestedBlockNestingModeSet, Block: inner},
			{TypeName: "single", Nesting: tfprotov6.SchemaNestedBlockNestingModeSingle, Block: inner},
		},
	}}
}

// planRaw plans the proposed value. Computed values that are null become unknown.
func (s *server) planRaw(req *tfprotov6.PlanResourceChangeRequest, b cloud.Behaviours) (*tfprotov6.PlanResourceChangeResponse, error) {
	ty := s.types[rawName]
	proposed, err := req.ProposedNewState.Unmarshal(ty)
	if err != nil {
		return nil, fmt.Errorf("decode proposed state: %w", err)
	}
	if proposed.IsNull() {
		return &tfprotov6.PlanResourceChangeResponse{PlannedState: req.ProposedNewState, PlannedPrivate: req.PriorPrivate}, nil
	}
	planned, err := tftypes.Transform(proposed, func(p *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
		name, ok := p.LastStep().(tftypes.AttributeName)
		if ok && v.IsNull() && (name == "id" || name == "value" || name == "address") {
			return unknown(tftypes.String), nil
		}
		return v, nil
	})
	if err != nil {
		return nil, err
	}
	dv, err := tfprotov6.NewDynamicValue(ty, planned)
	if err != nil {
		return nil, err
	}
	if b.Has("refine") && !fields(planned)["address"].IsKnown() {
		dv.MsgPack = refine(dv.MsgPack)
	}
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: &dv, PlannedPrivate: req.PriorPrivate}, nil
}

// refine refines the unknown address in an object: it is not null and begins with "raw-". See
// https://github.com/hashicorp/terraform/blob/main/docs/plugin-protocol/object-wire-format.md
func refine(msgpack []byte) []byte {
	const key, plain = "\xa7address", "\xd4\x00\x00"
	const refinements = "\x82\x01\xc2\x02\xa4raw-" // 1, that it is null: false; 2, its prefix: raw-
	refined := key + string([]byte{0xc7, byte(len(refinements)), 12}) + refinements
	before, after, ok := strings.Cut(string(msgpack), key+plain)
	if !ok {
		panic("the planned state holds no unknown address") // a bug of the suite
	}
	return []byte(before + refined + after)
}

func (s *server) applyRaw(req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	ty := s.types[rawName]
	if isNull(req.PlannedState) {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PlannedState}, nil
	}
	planned, err := req.PlannedState.Unmarshal(ty)
	if err != nil {
		return nil, fmt.Errorf("decode planned state: %w", err)
	}
	m := fields(planned)
	if !m["address"].IsKnown() {
		m["address"] = text("raw-address")
	}
	dv, err := tfprotov6.NewDynamicValue(ty, complete(tftypes.NewValue(ty, m), textOf(planned, "name")+"-raw"))
	return &tfprotov6.ApplyResourceChangeResponse{NewState: &dv, Private: req.PlannedPrivate}, err
}
