package plan

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/session"
)

// completeChanges completes plans, and then the addresses in the named plan.
func completeChanges(s *session.Session) session.Completer {
	plans := planapi.Complete(s, nil)
	addresses := s.CompleteWith(session.AnyNumber, func(ctx context.Context, args []string, _ string) (out []string, err error) {
		p, err := planapi.Get(ctx, s, s.Namespace, args[0])
		if err != nil {
			return nil, err
		}
		for c, err := range planapi.Changes(ctx, s, p) {
			if err != nil || len(out) == 1000 {
				break
			}
			out = append(out, addressOfChange(c)+"\t"+string(c.Action))
		}
		return out, nil
	})
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return plans(cmd, args, begun)
		}
		return addresses(cmd, args, begun)
	}
}

// addressOfChange returns a change's address in the format of parseTarget.
func addressOfChange(c *v1alpha1.PlanChange) string {
	if t, err := addrs.Parse(c.Address); err == nil {
		return t.Address()
	}
	return c.Address
}
