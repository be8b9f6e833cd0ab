package cli

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
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
