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

// outcome is the result of a step on one side.
type outcome struct {
	// PlanError is the reason why the plan failed; "" if it did not.
	PlanError string
	// Plan is Terraform's JSON plan; nil if there is none.
	Plan *planDocument
	// ApplyError is the reason why the apply failed; "" if it did not, or if there was none.
	ApplyError string
	// States holds the states by address, and by "ADDRESS deposed N" for deposed instances.
	States map[string]*state
	// Calls holds the changing calls in their order, by the kind and the name of the object.
	Calls map[string][]string
	// Order holds the calls that changed objects of the cloud, in their order.
	Order []madeCall `json:",omitempty"`
	// Objects holds the objects of the cloud by ID.
	Objects map[string]map[string]any

	// log is the output for a person.
	log string
	// unexplained holds the text of each of Hykube's replaces that names no cause.
	unexplained []string
	// undone holds Hykube's changes that were not made, by address.
	undone map[string]v1alpha1.ChangeState
}

// state is the recorded state of an instance.
type state struct {
	Attributes   map[string]any
	Tainted      bool
	Dependencies []string
}

// planDocument is the compared part of Terraform's JSON plan.
type planDocument struct {
	Applyable bool
	Complete  bool
	Errored   bool
	// Changes and Drift are by address, and by "ADDRESS deposed" for deposed instances.
	Changes map[string]map[string]any
	Drift   map[string]map[string]any
	// Values holds planned values by address.
	Values map[string]map[string]any
}

// readPlan parses a JSON plan. Terraform's own parser must accept it, too.
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
			Root moduleValues `json:"root_module"`
		} `json:"planned_values"`
	}
	if err := decode(data, &doc); err != nil {
		return nil, fmt.Errorf("read plan: %w", err)
	}
	out := &planDocument{Applyable: doc.Applyable, Complete: doc.Complete, Errored: doc.Errored}
	for _, part := range []struct {
		to *map[string]map[string]any
		in []map[string]any
	}{{&out.Changes, doc.Changes}, {&out.Drift, doc.Drift}, {&out.Values, doc.PlannedValues.Root.all()}} {
		*part.to = map[string]map[string]any{}
		for _, c := range part.in {
			key := fmt.Sprint(c["address"])
			delete(c, "module_address") // the address has it
			if c["deposed"] != nil {
				key += " deposed"
				c["deposed"] = "KEY" // the value is random on both sides
			}
			for n := 2; (*part.to)[key] != nil; n++ {
				key = fmt.Sprintf("%s again %d", key, n)
			}
			(*part.to)[key] = c
		}
	}
	return out, nil
}

// actions returns the actions of a plan, by address, without no-ops.
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

// asJSON converts an outcome, or a part of it, to plain JSON.
func asJSON(v any) any {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // it came from JSON
	}
	var out any
	if err := decode(data, &out); err != nil {
		panic(err)
	}
	return out
}

// difference is a path at which two JSON documents differ.
type difference struct {
	path              string
	terraform, hykube any
}

func (d difference) String() string {
	return fmt.Sprintf("%s\n      terraform: %s\n      hykube:    %s", d.path, shown(d.terraform), shown(d.hykube))
}

// absent is the value at a path that does not exist. It differs from null.
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

// compare returns the deepest paths at which two JSON documents differ.
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
