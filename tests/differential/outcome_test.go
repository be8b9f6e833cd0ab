package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/hykube/hykube/api/v1alpha1"
)

// outcome is what one side made of a step.
type outcome struct {
	// PlanError is why it could not be planned; empty when it could.
	PlanError string
	// Plan is Terraform's JSON plan; nil when there is none.
	Plan *planDocument
	// ApplyError is why it could not be applied; empty when it could, or was not to be.
	ApplyError string
	// States by address, and by "ADDRESS deposed N" for what a replace left behind.
	States map[string]*state
	// Calls that were to change something, in their order, by the kind and the name of the object.
	Calls map[string][]string
	// Objects that exist in the cloud, by id.
	Objects map[string]map[string]any

	// log is what was printed, for people.
	log string
	// undone are Hykube's changes that were not made, by address.
	undone map[string]v1alpha1.ChangeState
}

// state is what is recorded of an instance.
type state struct {
	Attributes   map[string]any
	Tainted      bool
	Dependencies []string
}

// planDocument is what is compared of Terraform's JSON plan.
type planDocument struct {
	Applyable bool
	Complete  bool
	Errored   bool
	// Changes and Drift by address, and "ADDRESS deposed" for what a replace left behind.
	Changes map[string]map[string]any
	Drift   map[string]map[string]any
	// Values are planned values by address.
	Values map[string]map[string]any
}

// readPlan reads a JSON plan. Terraform's own parser has to accept it, too.
func readPlan(data []byte) (*planDocument, error) {
	if err := new(tfjson.Plan).UnmarshalJSON(data); err != nil {
		return nil, fmt.Errorf("terraform-json refuses the plan: %w", err)
	}
	var doc struct {
		Applyable     bool
		Complete      bool
		Errored       bool
		Changes       []map[string]any `json:"resource_changes"`
		Drift         []map[string]any `json:"resource_drift"`
		PlannedValues struct {
			Root struct{ Resources []map[string]any } `json:"root_module"`
		} `json:"planned_values"`
	}
	if err := decode(data, &doc); err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	out := &planDocument{Applyable: doc.Applyable, Complete: doc.Complete, Errored: doc.Errored}
	for _, part := range []struct {
		to *map[string]map[string]any
		in []map[string]any
	}{{&out.Changes, doc.Changes}, {&out.Drift, doc.Drift}, {&out.Values, doc.PlannedValues.Root.Resources}} {
		*part.to = map[string]map[string]any{}
		for _, c := range part.in {
			key := fmt.Sprint(c["address"])
			if c["deposed"] != nil {
				key += " deposed"
				c["deposed"] = "KEY" // both sides roll dice for it
			}
			for n := 2; (*part.to)[key] != nil; n++ {
				key = fmt.Sprintf("%s again %d", key, n)
			}
			(*part.to)[key] = c
		}
	}
	return out, nil
}

// actions are what a plan does, by address, without what it leaves alone.
func (p *planDocument) actions() map[string]string {
	out := map[string]string{}
	if p == nil {
		return out
	}
	for at, c := range p.Changes {
		change, _ := c["change"].(map[string]any)
		list, _ := change["actions"].([]any)
		var words []string
		for _, a := range list {
			words = append(words, fmt.Sprint(a))
		}
		out[at] = strings.Join(words, " ")
	}
	return out
}

// asJSON makes an outcome, or a part of one, plain JSON, to be compared path by path.
func asJSON(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it is made of JSON
	}
	var out any
	if err := decode(data, &out); err != nil {
		panic(err)
	}
	return out
}

// difference is a place in two JSON documents where they are not alike.
type difference struct {
	path              string
	terraform, hykube any
}

func (d difference) String() string {
	return fmt.Sprintf("%s\n      terraform: %s\n      hykube:    %s", d.path, shown(d.terraform), shown(d.hykube))
}

// absent stands for what is not there, which null is not.
type absent struct{}

func (absent) String() string { return "(absent)" }

func shown(v any) string {
	if a, ok := v.(absent); ok {
		return a.String()
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(data) > 400 {
		return string(data[:400]) + "..."
	}
	return string(data)
}

// compare finds where two JSON documents are not alike, at the deepest place.
func compare(path string, terraform, hykube any) []difference {
	switch a := terraform.(type) {
	case map[string]any:
		b, ok := hykube.(map[string]any)
		if !ok {
			break
		}
		var out []difference
		keys := slices.Sorted(maps.Keys(a))
		for k := range b {
			if _, ok := a[k]; !ok {
				keys = append(keys, k)
			}
		}
		slices.Sort(keys)
		for _, k := range slices.Compact(keys) {
			x, inA := a[k]
			y, inB := b[k]
			if !inA {
				x = absent{}
			}
			if !inB {
				y = absent{}
			}
			out = append(out, compare(path+"/"+k, x, y)...)
		}
		return out
	case []any:
		b, ok := hykube.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		var out []difference
		for i := range a {
			out = append(out, compare(fmt.Sprintf("%s/%d", path, i), a[i], b[i])...)
		}
		return out
	case json.Number:
		if b, ok := hykube.(json.Number); ok && sameNumber(a, b) {
			return nil
		}
	case absent:
		if _, ok := hykube.(absent); ok {
			return nil
		}
	default:
		if terraform == hykube && terraform != nil || terraform == nil && hykube == nil {
			return nil
		}
	}
	return []difference{{path, terraform, hykube}}
}

// sameNumber compares digits, not their spelling: 1.0 is 1, and 1e3 is 1000.
func sameNumber(a, b json.Number) bool {
	x, okA := new(big.Rat).SetString(a.String())
	y, okB := new(big.Rat).SetString(b.String())
	return okA && okB && x.Cmp(y) == 0
}
