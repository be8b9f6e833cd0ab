package planning

import (
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/fair"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file checks the references of a survey's objects.

// resolve checks that the objects to which a node refers exist and are not being deleted.
func (s *survey) resolve(n *node) {
	if !n.wanted || n.Config == nil {
		return
	}
	catalog := s.catalogOf(s.planner.Sources)
	// the Plan lists no more diagnostics, and the search for similar names takes the longest
	if len(s.diags) < diag.MaxDiagnostics {
		catalog.Types, catalog.Names = s.planner.Catalog.TypeNamesOf, s.names
	}
	s.resolveProviderConfig(n, catalog)
	diags := append(lang.CheckReferences(n.Parse().References, catalog), n.Config.CheckTypes(catalog)...)
	for _, e := range n.LifecycleExpressions {
		diags = append(diags, e.CheckTypes(catalog)...)
	}
	for _, r := range n.TriggerReferences() {
		// As in Terraform, an instance that leaves its set in this plan is no error, and triggers nothing.
		if d, missing := lang.MissingInstance(r, catalog); missing && !s.exists(r.Address) {
			diags = append(diags, d)
		}
	}
	if s.missing != nil {
		s.diags = append(s.diags, lang.WithAddress(s.missing(n), n.Address)...)
	}
	s.diags = append(s.diags, lang.WithAddress(diags, n.Address)...)
	declared := map[lang.Address]bool{}
	for _, text := range n.Lifecycle.DependsOn {
		if addr, err := lang.ParseAddress(text); err == nil {
			declared[addr] = true
		}
	}
	for _, addr := range n.DependsOn {
		if n.providerConfig.Names(addr) {
			continue // resolveProviderConfig reports it once for all users
		}
		i, ok := s.byAddr[addr]
		switch {
		case !catalog.Exists(addr) && declared[addr], !ok && declared[addr]:
			s.diags = append(s.diags, lang.Problem(n.Address, "lifecycle.dependsOn", "Reference to undeclared resource",
				fmt.Sprintf("There is no %s named %q in this namespace%s.", addr.Mode.KindOf(addr.Type), addr.Name,
					s.knownAddresses(addr))))
		case !catalog.Exists(addr):
			// CheckReferences reports it. An expression may permit a missing instance, as with try().
		case ok && s.nodes[i].movedTo != "":
			s.diags = append(s.diags, lang.Problem(n.Address, "", "Reference to a resource that was moved",
				fmt.Sprintf("%s refers to %s, which moves to %s. Refer to %s instead.", n.Address, addr,
					s.nodes[i].movedTo, s.nodes[i].movedTo)))
		case ok && s.nodes[i].Deleting && s.leftFiles(s.nodes[i].Ref):
			s.diags = append(s.diags, lang.Problem(n.Address, "",
				"Reference to a resource that is no longer in the files",
				fmt.Sprintf("%s refers to %s, which is no longer in the files and would be deleted. Put the resource back into the files, or remove the reference.", n.Address, addr)))
		case ok && s.nodes[i].Deleting:
			s.diags = append(s.diags, lang.Problem(n.Address, "", "Reference to a resource that is being deleted",
				fmt.Sprintf("%s refers to %s, which is marked for deletion. Remove the reference, delete %s, too, or take the deletion back: kubectl hykube undelete %s/%s -n %s.",
					n.Address, addr, n.Address, s.nodes[i].Ref.Kind, s.nodes[i].Ref.Name, s.nodes[i].Ref.Namespace)))
		}
	}
}

// noteReferences stores digests of the referenced values that the plan does not change. If one of them changes, the
// change is stale.
func (pr *proposal) noteReferences(ctx context.Context, c *ledger.Change, r *resource.Resource) error {
	c.Referred = nil
	if changes.HasNoSteps(c) || c.Deposed != "" || r.Deleting || pr.plan.Spec.Destroy || pr.plan.Spec.RefreshOnly {
		return nil
	}
	fair.Lock(ctx, &pr.configuring)
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
		d := pr.briefOf(j)
		if d.NoSteps {
			continue
		}
		changing[d.Address] = true
		if addr, err := lang.ParseAddress(d.Address); err == nil {
			if set, _, ok := addr.Set(); ok {
				changing[set.String()] = true // the value of the whole set changes, too
			}
		}
	}
	var failed error
	modules := modulesIn(ctx, pr.Sources, pr.plan.Namespace, &failed)
	for addr, refs := range changes.Referred(r.Parse().References, config) {
		if changing[addr.String()] {
			continue
		}
		if addr.Namespace == "" && addr.IsModuleOutput() && slices.ContainsFunc(resourceset.Behind(addr, modules),
			func(a lang.Address) bool { return changing[a.String()] }) {
			continue // the value of the output changes, too
		}
		digest, err := pr.scope.DigestOf(ctx, addr, refs)
		if err != nil {
			return err
		}
		if digest == "" {
			continue // the value is unknown, or the object does not exist
		}
		if c.Referred == nil {
			c.Referred = map[string]string{}
		}
		c.Referred[addr.String()] = digest
	}
	return failed
}
