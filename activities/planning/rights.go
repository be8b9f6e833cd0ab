package planning

import (
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// This file checks the rights that a plan requires of its requester.

// summaryRights is the summary of the error for a requester who lacks rights.
const summaryRights = "Missing rights"

// checkReads returns an error if the requester lacks one of the readRights. The planner calls it before its first
// provider call.
func checkReads(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, s *survey,
	visited []int) (diag.Diagnostics, error) {
	rights, err := readRights(src, po, s, visited)
	if err != nil {
		return nil, err
	}
	return missingRights(ctx, src.RequesterOf(po), rights)
}

// readRights returns the rights to get the objects that a plan visits, and their dependencies. It adds those to the
// ConfigMap with the keys of a ResourceSet, and to the object in lifecycle.moved. That object need not exist, but the
// plan shows whether it has a record.
func readRights(src *scope.Sources, po *v1alpha1.Plan, s *survey, visited []int) (rights []store.Right, err error) {
	seen, keysSeen := map[lang.Address]bool{}, map[string]bool{}
	add := func(addrs ...lang.Address) error {
		for _, i := range s.nodesAt(addrs) {
			n := s.nodes[i]
			if seen[n.Address] {
				continue
			}
			seen[n.Address] = true
			right, err := changes.RightTo(src.Objects, n.Ref)
			if err != nil {
				return err
			}
			rights = append(rights, right)
		}
		return nil
	}
	for _, i := range visited {
		n := s.nodes[i]
		err := add(slices.Concat([]lang.Address{n.Address}, n.DependsOn, n.requires)...)
		if err == nil && n.movedFrom != nil {
			err = add(n.movedFrom.Address)
		}
		if err != nil {
			return nil, err
		}
		if keys := resourceset.SourceOf(n.Object); n.wanted && keys != "" && !keysSeen[keys] {
			keysSeen[keys] = true
			rights = append(rights, store.Right{Verb: store.VerbGet, Namespace: po.Namespace, Resource: "configmaps",
				Name: keys})
		}
		if from, err := lang.ParseAddress(n.movesFrom()); err == nil {
			taken, err := src.RightsTo(po.Namespace, from)
			if err != nil {
				return nil, err
			}
			rights = append(rights, taken...)
		}
	}
	return rights, nil
}

// checkVerbs returns an error if the requester lacks a right that a change requires. It does not check a speculative
// plan, which is never applied.
func checkVerbs(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan,
	all []changes.Brief) (diag.Diagnostics, error) {
	if po.Spec.Speculative {
		return nil, nil
	}
	var rights []store.Right
	for i := range all {
		c := &all[i]
		if c.State == v1alpha1.ChangeSkipped || c.State == v1alpha1.ChangeFailed {
			continue
		}
		taken, err := c.Rights(src)
		if err != nil {
			return nil, err
		}
		rights = append(rights, taken...)
	}
	return missingRights(ctx, src.RequesterOf(po), rights)
}

// missingRights returns an error if the requester of a plan lacks one of the rights. asker is nil if there is none.
func missingRights(ctx context.Context, asker *store.Asker, rights []store.Right) (diag.Diagnostics, error) {
	if asker == nil {
		return diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: summaryRights,
			Detail: "The plan has no requester; make a new plan."}}, nil
	}
	missing, err := asker.Missing(ctx, rights)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: summaryRights, Detail: fmt.Sprintf(
		"The user %q, who made the plan, has no right to %s. For each change, a plan needs its verb on the kind of the object. "+
			"Ask for the verbs, or use --target, --exclude or --selector to plan only resources that you may change.",
		asker.Who.Username, store.ListRights(missing))}}, nil
}
