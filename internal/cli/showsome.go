package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// chosen are the changes of the addresses that were named, in the order of the plan: more than one for an address with old
// instances. An address that the plan has no change of is an error.
func (o *showOptions) chosen(ctx context.Context, p *v1alpha1.Plan) ([]*v1alpha1.PlanChange, error) {
	var out []*v1alpha1.PlanChange
	var known []string
	found := map[string]bool{}
	for c, err := range o.changes(ctx, p) {
		if err != nil {
			return nil, err
		}
		address := addressOfChange(c)
		known = append(known, address)
		if slices.Contains(o.addresses, address) {
			found[address] = true
			out = append(out, c)
		}
	}
	var missing []error
	for _, a := range o.addresses {
		if !found[a] {
			missing = append(missing, fmt.Errorf("plan %q has no change of %s%s", p.Name, a, suggestion(a, known)))
		}
	}
	return out, errors.Join(missing...)
}

// addressOfChange is a change's address in the form in which parseTarget gives it.
func addressOfChange(c *v1alpha1.PlanChange) string {
	if t, err := parseTarget(c.Address); err == nil {
		return t.address()
	}
	return c.Address
}

// some shows the changes that were named, and what became of each.
func (o *showOptions) some(ctx context.Context, p *v1alpha1.Plan) error {
	list, err := o.chosen(ctx, p)
	if err != nil {
		return err
	}
	style := o.style
	style.Width = 0 // nothing is cut in the full view
	for _, c := range list {
		text := diff.Change(c, style)
		if text == "" {
			text = fmt.Sprintf("  %s: no change.\n\n", style.Bold(diff.Name(c)))
		}
		fmt.Fprint(o.Out, text)
		for _, d := range c.Diagnostics {
			if d.Address == "" {
				d.Address = c.Address
			}
			fmt.Fprint(o.Out, diff.Diagnostic(d, o.style))
		}
		if c.State == "" || c.State == v1alpha1.ChangePending && p.Status.Approval == nil {
			continue
		}
		line := fmt.Sprintf("%s: %s", diff.Name(c), c.State)
		if c.Message != "" {
			line += ": " + diff.Clean(c.Message, false)
		}
		fmt.Fprintln(o.Out, line)
	}
	return nil
}
