package objects

import (
	"context"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/session"
)

// This file finds what the stores of the server disagree about, as after a restore of different moments.

// Unsettled finds the objects whose create has an unknown outcome, or whose record is lost.
type Unsettled struct {
	*session.Session
	// lost are the UIDs of the objects with a lost record, by namespace, as of the first question about one of it.
	lost map[string]map[types.UID]bool
}

// NewUnsettled returns an Unsettled that has read nothing yet.
func NewUnsettled(s *session.Session) Unsettled { return Unsettled{s, map[string]map[types.UID]bool{}} }

// Has reports whether an object is one of them. To a user who may not list Resources, a lost record is known only once
// a plan has found it.
func (u Unsettled) Has(ctx context.Context, o *unstructured.Unstructured) (bool, error) {
	reason, _, _ := Readiness(o)
	if reason == v1alpha1.ReasonCreateUnknown || reason == v1alpha1.ReasonRecordLost {
		return true, nil
	}
	lost, known := u.lost[o.GetNamespace()]
	if !known {
		lost = map[types.UID]bool{}
		err := EachSummary(ctx, u.Session, o.GetNamespace(), v1alpha1.ResourceFieldRecord, v1alpha1.RecordLost,
			func(r v1alpha1.ResourceSummary) bool {
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

// WithoutObject returns the records of a namespace whose object does not exist. It returns none to a user who may not
// list Resources.
func WithoutObject(ctx context.Context, s *session.Session,
	namespace string) (all []v1alpha1.ResourceSummary, err error) {
	err = EachSummary(ctx, s, namespace, v1alpha1.ResourceFieldRecord, v1alpha1.RecordWithoutObject,
		func(r v1alpha1.ResourceSummary) bool {
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

// RecordOf returns the record of a target whose object does not exist; nil without one.
func RecordOf(ctx context.Context, s *session.Session, t addrs.Target, k session.Kind,
	namespace string) (*v1alpha1.ResourceSummary, error) {
	all, err := WithoutObject(ctx, s, namespace)
	for i := range all {
		if of := all[i].Object; of.Kind == k.Kind && of.Name == t.Name &&
			of.APIVersion == k.GVR.GroupVersion().String() {
			return &all[i], nil
		}
	}
	return nil, err
}

// EachSummary visits the Resources that a field selects, until visit returns false. An empty namespace means all. It
// returns the server's error if the user lacks the right.
func EachSummary(ctx context.Context, s *session.Session, namespace, field, value string,
	visit func(v1alpha1.ResourceSummary) bool) error {
	for cont := ""; ; {
		page := &v1alpha1.ResourceSummaryList{}
		err := s.Hykube.Get().NamespaceIfScoped(namespace, namespace != "").Resource(resourcesResource).
			Param("fieldSelector", fields.OneTermEqualSelector(field, value).String()).
			Param("limit", strconv.Itoa(session.ListPage)).Param("continue", cont).Do(ctx).Into(page)
		if apierrors.IsForbidden(err) {
			return err
		}
		if err != nil {
			return s.Explain(err)
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

// resourcesResource is the resource of the table of all objects and instances.
const resourcesResource = "resources"
