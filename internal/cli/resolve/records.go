package resolve

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// forgetRecords asks, and removes records whose object does not exist.
func (o *resolveOptions) forgetRecords(ctx context.Context) error {
	if !o.imports.AutoApprove {
		fmt.Fprintln(o.ErrOut, "These records have no object:")
		for _, r := range o.orphans {
			fmt.Fprintf(o.ErrOut, "  %s/%s with the ID %s\n", r.kind.Kind, r.Name, diff.Clean(cmp.Or(r.id, "-"), false))
		}
		fmt.Fprintln(o.ErrOut, "To forget them destroys nothing, and cannot be undone. Nothing manages the resources afterwards.")
		o.imports.Question = "Do you want to forget these records?"
		if yes, err := o.imports.Confirm(ctx); err != nil {
			return err
		} else if !yes {
			fmt.Fprintln(o.ErrOut, "Nothing was changed.")
			return exit.Silent(exit.Failed)
		}
	}
	var errs []error
	back := ""
	for _, r := range o.orphans {
		if err := objects.PostUID(ctx, o.Named.Session, r.kind, r.Namespace, r.Name, r.uid, "resolve"); err != nil {
			errs = append(errs, fmt.Errorf("forget the record of %s: %w", r.Address(), o.Explain(err)))
			continue
		}
		o.PrintResult(r.kind, r.Name, "forgotten")
		if id := operation.ShownID(r.id); id != "" {
			back += fmt.Sprintf("  kubectl hykube import %s/%s %s -n %s\n", r.kind.Kind, r.Name, shell.Word(id), r.Namespace)
		}
	}
	if back != "" && o.Output == "" {
		fmt.Fprint(o.ErrOut, "To take the resources back, where the type has an import:\n"+back)
	}
	return exit.Join(errs)
}
