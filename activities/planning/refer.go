package planning

import (
	"context"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// refer notes the values that a change refers to and that the plan does not change: when one of them is another one, so may the
// change be.
func (pr *proposal) refer(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	c.Referred = nil
	if changes.HasNoSteps(c) || c.Deposed != "" || r.Deleting || pr.plan.Spec.Destroy || pr.plan.Spec.RefreshOnly {
		return nil
	}
	pr.configuring.Lock()
	if pr.configs == nil {
		pr.configs = pr.ProviderConfigs(ctx, pr.plan)
	}
	config, err := pr.configs.ForResource(r, &ledger.Instance{Object: r.Ref}, true)
	pr.configuring.Unlock()
	if err != nil {
		return err
	}
	changing := map[string]bool{}
	for _, j := range c.DependsOn {
		changing[pr.all[j].Address] = changing[pr.all[j].Address] || !changes.HasNoSteps(pr.all[j])
	}
	for addr, refs := range changes.Referred(r.Parse().References, config) {
		if changing[addr.String()] {
			continue
		}
		digest, err := pr.scope.DigestOf(ctx, addr, refs)
		if err != nil {
			return err
		}
		if digest == "" {
			continue // it is not known yet, or not there
		}
		if c.Referred == nil {
			c.Referred = map[string]string{}
		}
		c.Referred[addr.String()] = digest
	}
	return nil
}
