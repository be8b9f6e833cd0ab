package differential

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// cloud is the simulated cloud of one side of a story.
type cloud struct {
	*harness.Cloud
	// last is the ID of the last call before the step.
	last int64
	// directory replaces the cloud for providers that have none.
	directory directory
}

// startCloud starts a cloud, and creates a directory for the providers without one.
func startCloud(dir string) (*cloud, error) {
	d, err := openDirectory(dir)
	if err != nil {
		return nil, err
	}
	// Two clouds that get the same calls must give the same answers, in any order of the calls.
	c, err := harness.StartCloud(simcloud.Config{Settings: simcloud.Settings{Repeatable: true}})
	if err != nil {
		return nil, err
	}
	return &cloud{Cloud: c, directory: d}, nil
}

// prepare changes the cloud as the step defines.
func (c *cloud) prepare(ctx context.Context, s *step) error {
	if err := c.directory.prepare(s); err != nil {
		return err
	}
	for _, o := range s.Create {
		fields := map[string]any{"name": o.Name}
		for k, v := range o.Fields {
			fields[k] = v
		}
		if _, err := c.Create(ctx, o.Kind, fields); err != nil {
			return fmt.Errorf("create %s %q at the cloud: %w", o.Kind, o.Name, err)
		}
	}
	for _, o := range s.Drift {
		if shaped(o.Kind) {
			continue
		}
		if _, err := c.Drift(ctx, o.Kind, o.Name, o.Fields); err != nil && !s.excuses(err) {
			return fmt.Errorf("change %s %q at the cloud: %w", o.Kind, o.Name, err)
		}
	}
	for _, o := range s.Vanish {
		if shaped(o.Kind) {
			continue
		}
		if err := c.Destroy(ctx, o.Kind, o.Name); err != nil && !s.excuses(err) {
			return fmt.Errorf("delete %s %q at the cloud: %w", o.Kind, o.Name, err)
		}
	}
	if err := c.faults(ctx, s.Faults); err != nil {
		return err
	}
	calls, err := c.Calls(ctx, simcloud.Filter{Since: c.last})
	if err != nil {
		return err
	}
	if len(calls) > 0 {
		c.last = calls[len(calls)-1].ID
	}
	return nil
}

// excuses reports whether a generated step may name an object that does not exist, because its create failed.
func (s *step) excuses(err error) bool {
	_, answered := errors.AsType[*simcloud.Error](err)
	return s.Anyway && answered
}

func (c *cloud) faults(ctx context.Context, faults []simcloud.Fault) error {
	for _, f := range faults {
		if _, err := c.Fault(ctx, f); err != nil {
			return fmt.Errorf("ask the cloud for a fault: %w", err)
		}
	}
	return nil
}

// observe adds to an outcome the calls to the cloud, and its objects.
func (c *cloud) observe(ctx context.Context, out *outcome) error {
	if err := c.RemoveFault(ctx, 0); err != nil {
		return err
	}
	calls, err := c.Calls(ctx, simcloud.Filter{Since: c.last})
	if err != nil {
		return err
	}
	out.Calls = map[string][]string{}
	for _, call := range calls {
		if slices.Contains([]string{simcloud.OpRead, simcloud.OpList, simcloud.OpAccount}, call.Op) {
			continue
		}
		key := call.Kind + " " + call.Name
		word := call.Op
		if call.Object != "" {
			word += " " + call.Object
		}
		if call.Error != "" {
			word += fmt.Sprintf(" refused with %d", call.Status)
		}
		out.Calls[key] = append(out.Calls[key], word)
		if call.Error == "" && call.Object != "" {
			out.Order = append(out.Order, madeCall{object: call.Object, op: call.Op})
		}
	}
	out.Objects = map[string]map[string]any{}
	for _, kind := range simcloud.KindNames() {
		objects, err := c.Objects(ctx, kind, "")
		if err != nil {
			return err
		}
		for _, o := range objects {
			out.Objects[o.ID()] = o
		}
	}
	return c.directory.observe(out)
}
