package differential

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	conformance "github.com/hykube/hykube/tests/conformance/cloud"
	"github.com/hykube/hykube/tests/conformance/shape"
)

// directory replaces the cloud for the providers of generated types. It has a file with the state of each object, and a
// log of all calls with their values.
type directory struct {
	*conformance.Cloud
	// last is the number of calls before the step.
	last *int
}

func openDirectory(dir string) (directory, error) {
	c, err := conformance.Open(dir)
	return directory{c, new(int)}, err
}

// shaped reports whether objects of a kind are in the directory.
func shaped(kind string) bool { return strings.HasPrefix(kind, "shape") }

// newest returns the ID of the newest object of a type and title; "" if there is none.
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

// prepare changes the directory as the step defines. It skips objects whose create failed.
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

// observe adds the calls and the objects to an outcome. A change may be planned any number of times, but always in the
// same way. So plans are a set, as are the reads of data sources.
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
