package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	conformance "github.com/hykube/hykube/tests/conformance/cloud"
	"github.com/hykube/hykube/tests/conformance/shape"
)

// directory is what stands for a cloud to the providers of generated types: the state of each object is a file there. The log tells
// what the providers were asked for, to the last value.
type directory struct {
	*conformance.Cloud
	// last is how many calls there were before the step.
	last *int
}

func openDirectory(dir string) (directory, error) {
	c, err := conformance.Open(dir)
	return directory{c, new(int)}, err
}

// shaped says that objects of a kind are in the directory.
func shaped(kind string) bool { return strings.HasPrefix(kind, "shape") }

// newest is the id of the newest object of a type and title; empty when there is none.
func (d directory) newest(typ, title string) (id string, o conformance.Object, err error) {
	ids, err := d.IDs(typ)
	if err != nil {
		return "", nil, err
	}
	for _, candidate := range ids {
		found, err := d.Get(typ, candidate)
		if err != nil {
			return "", nil, err
		}
		if found[shape.ObjectTitle] == title {
			id, o = candidate, found
		}
	}
	return id, o, nil
}

// prepare does what a step says happens behind everybody's back. What is not there, because its create failed, cannot change.
func (d directory) prepare(s *step) error {
	for _, o := range slices.Concat(s.Drift, s.Vanish) {
		if !shaped(o.Kind) {
			continue
		}
		id, object, err := d.newest(o.Kind, o.Name)
		if err != nil {
			return err
		}
		switch {
		case id == "":
		case o.Fields == nil:
			if err := d.Remove(o.Kind, id); err != nil {
				return err
			}
		default:
			var state map[string]any
			if err := decode([]byte(object[shape.ObjectState]), &state); err != nil {
				return fmt.Errorf("read %s %q: %w", o.Kind, id, err)
			}
			for name, v := range o.Fields {
				state[name] = v
			}
			data, err := json.Marshal(state)
			if err != nil {
				return err
			}
			object[shape.ObjectState] = string(data)
			if err := d.Put(o.Kind, id, object); err != nil {
				return err
			}
		}
	}
	calls, err := d.Calls()
	*d.last = len(calls)
	return err
}

// observe adds what was asked for, and what there is. A change may be planned any number of times, but not in different ways: plans
// are a set, as are the readings of data sources.
func (d directory) observe(out *outcome) error {
	calls, err := d.Calls()
	if err != nil {
		return err
	}
	types := map[string]bool{}
	for i, call := range calls {
		if !shaped(call.Type) {
			continue
		}
		types[call.Type] = true
		if i < *d.last {
			continue
		}
		if call.RPC == "Apply" {
			key := "applies " + call.Type + " " + call.Name
			out.Calls[key] = append(out.Calls[key], call.Action+" "+call.Detail)
			continue
		}
		key := "plans " + call.Type + " " + call.Name
		if !slices.Contains(out.Calls[key], call.Detail) {
			out.Calls[key] = append(out.Calls[key], call.Detail)
			slices.Sort(out.Calls[key])
		}
	}
	for typ := range types {
		ids, err := d.IDs(typ)
		if err != nil {
			return err
		}
		for _, id := range ids {
			o, err := d.Get(typ, id)
			if err != nil {
				return err
			}
			var state map[string]any
			if err := decode([]byte(o[shape.ObjectState]), &state); err != nil {
				return fmt.Errorf("read %s %q: %w", typ, id, err)
			}
			out.Objects[typ+" "+id] = state
		}
	}
	return nil
}
