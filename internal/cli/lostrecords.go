package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/shell"
)

// This file finds what the stores of the server disagree about, as after a restore of different moments.

// unsettled finds the objects whose create has an unknown outcome, or whose record is lost.
type unsettled struct {
	*session
	// lost are the UIDs of the objects with a lost record, by namespace, as of the first question about one of it.
	lost map[string]map[types.UID]bool
}

func newUnsettled(s *session) unsettled { return unsettled{s, map[string]map[types.UID]bool{}} }

// has reports whether an object is one of them. To a user who may not list Resources, a lost record is known only once a plan
// has found it.
func (u unsettled) has(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	reason, _, _ := readiness(o)
	if reason == v1alpha1.ReasonCreateUnknown || reason == v1alpha1.ReasonRecordLost {
		return true, nil
	}
	lost, known := u.lost[o.GetNamespace()]
	if !known {
		lost = map[types.UID]bool{}
		err := u.eachSummary(ctx, o.GetNamespace(), v1alpha1.ResourceFieldRecord, v1alpha1.RecordLost, func(r v1alpha1.ResourceSummary) bool {
			lost[r.UID] = true
			return true
		})
		if err != nil && !apierrors.IsForbidden(err) {
			return false, err
		}
		u.lost[o.GetNamespace()] = lost
	}
	return lost[o.GetUID()], nil
}

// withoutObject returns the records of a namespace whose object does not exist. It returns none to a user who may not list
// Resources.
func (s *session) withoutObject(ctx context.Context, namespace string) (all []v1alpha1.ResourceSummary, err error) {
	err = s.eachSummary(ctx, namespace, v1alpha1.ResourceFieldRecord, v1alpha1.RecordWithoutObject, func(r v1alpha1.ResourceSummary) bool {
		all = append(all, r)
		return true
	})
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	slices.SortFunc(all, func(a, b v1alpha1.ResourceSummary) int {
		return v1alpha1.CompareNames(a.Object.Kind+"/"+a.Object.Name, b.Object.Kind+"/"+b.Object.Name)
	})
	return all, err
}

// recordOf returns the record of a target whose object does not exist; nil without one.
func (s *session) recordOf(ctx context.Context, t target, k kind, namespace string) (*v1alpha1.ResourceSummary, error) {
	all, err := s.withoutObject(ctx, namespace)
	for i := range all {
		if of := all[i].Object; of.Kind == k.kind && of.Name == t.name && of.APIVersion == k.gvr.GroupVersion().String() {
			return &all[i], nil
		}
	}
	return nil, err
}

// forgetRecords asks, and removes records whose object does not exist.
func (o *resolveOptions) forgetRecords(ctx context.Context) error {
	if !o.imports.autoApprove {
		fmt.Fprintln(o.ErrOut, "These records have no object:")
		for _, r := range o.orphans {
			fmt.Fprintf(o.ErrOut, "  %s/%s with the ID %s\n", r.kind.kind, r.name, diff.Clean(cmp.Or(r.id, "-"), false))
		}
		fmt.Fprintln(o.ErrOut, "To forget them destroys nothing, and cannot be undone. Nothing manages the resources afterwards.")
		o.imports.question = "Do you want to forget these records?"
		if yes, err := o.imports.confirm(ctx); err != nil {
			return err
		} else if !yes {
			fmt.Fprintln(o.ErrOut, "Nothing was changed.")
			return silent(ExitError)
		}
	}
	var errs []error
	back := ""
	for _, r := range o.orphans {
		if err := o.postUID(ctx, r.kind, r.namespace, r.name, r.uid, "resolve"); err != nil {
			errs = append(errs, fmt.Errorf("forget the record of %s: %w", r.address(), explain(err, o.server())))
			continue
		}
		o.printResult(r.kind, r.name, "forgotten")
		if id := shownID(r.id); id != "" {
			back += fmt.Sprintf("  kubectl hykube import %s/%s %s -n %s\n", r.kind.kind, r.name, shell.Word(id), r.namespace)
		}
	}
	if back != "" && o.output == "" {
		fmt.Fprint(o.ErrOut, "To take the resources back, where the type has an import:\n"+back)
	}
	return joinExit(errs)
}

// eachSummary visits the Resources that a field selects, until visit returns false. An empty namespace means all. It returns
// the server's error if the user lacks the right.
func (s *session) eachSummary(ctx context.Context, namespace, field, value string, visit func(v1alpha1.ResourceSummary) bool) error {
	for cont := ""; ; {
		page := &v1alpha1.ResourceSummaryList{}
		err := s.hykube.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resourcesResource).
			Param("fieldSelector", fields.OneTermEqualSelector(field, value).String()).
			Param("limit", strconv.Itoa(listPage)).Param("continue", cont).Do(ctx).Into(page)
		if apierrors.IsForbidden(err) {
			return err
		}
		if err != nil {
			return explain(err, s.server())
		}
		for _, r := range page.Items {
			if !visit(r) {
				return nil
			}
		}
		if cont = page.Continue; cont == "" {
			return nil
		}
	}
}
