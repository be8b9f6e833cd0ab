package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/storage"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/server/kinds"
	hykubestorage "github.com/hykube/hykube/server/storage"
)

// resourceSelection is what a request for Resources selects.
type resourceSelection struct {
	// SelectionPredicate is the selection by the labels and fields that a Resource has.
	storage.SelectionPredicate
	// names is the search by name and ID; zero without one. exactID is true if it is for the field selector "id", which
	// the predicate has, too.
	names   index.Names
	exactID bool
	// attribute and record are the texts of these field selectors; empty without one.
	attribute, record string
}

func newResourceSelection(opts *metainternalversion.ListOptions) (s resourceSelection, err error) {
	s.SelectionPredicate = storage.SelectionPredicate{
		Label: labels.Everything(), Field: fields.Everything(), GetAttrs: resourceAttributes,
		Limit: opts.Limit, Continue: opts.Continue, AllowWatchBookmarks: opts.AllowWatchBookmarks,
	}
	if opts.LabelSelector != nil {
		s.Label = opts.LabelSelector
	}
	if opts.FieldSelector == nil {
		return s, nil
	}
	for _, r := range opts.FieldSelector.Requirements() {
		exact := r.Operator != selection.NotEquals
		switch {
		case r.Field == v1alpha1.ResourceFieldID && exact && s.names.Contains == "":
			s.names, s.exactID = index.Names{ID: r.Value, Unowned: true}, true
		case r.Field == v1alpha1.ResourceFieldRecord:
			if !exact || r.Value != v1alpha1.RecordLost && r.Value != v1alpha1.RecordWithoutObject {
				return s, apierrors.NewBadRequest(fmt.Sprintf("the field selector %q is %s or %s", r.Field,
					v1alpha1.RecordLost, v1alpha1.RecordWithoutObject))
			}
			s.record = r.Value
		case r.Field != v1alpha1.ResourceFieldSearch && r.Field != v1alpha1.ResourceFieldAttribute:
		case !exact || r.Value == "":
			return s, apierrors.NewBadRequest(fmt.Sprintf("the field selector %q needs a text, as in %s=TEXT", r.Field,
				r.Field))
		case r.Field == v1alpha1.ResourceFieldSearch:
			s.names, s.exactID = index.Names{Contains: r.Value, ID: r.Value}, false
		default:
			s.attribute = r.Value
		}
	}
	if s.record != "" {
		if s.names.Contains != "" || s.attribute != "" {
			return s, apierrors.NewBadRequest(fmt.Sprintf("the field selector %q cannot be combined with a search",
				v1alpha1.ResourceFieldRecord))
		}
		s.names, s.exactID = index.Names{Unrecorded: true}, false
	}
	s.Field, err = opts.FieldSelector.Transform(func(field, value string) (string, string, error) {
		if field == v1alpha1.ResourceFieldSearch || field == v1alpha1.ResourceFieldAttribute ||
			field == v1alpha1.ResourceFieldRecord {
			return "", "", nil
		}
		return field, value, nil
	})
	return s, err
}

// searches reports whether the selection has a search, which no watch has.
func (s resourceSelection) searches() bool {
	return s.attribute != "" || s.record != "" || s.names != index.Names{} && !s.exactID
}

// convert returns the Resource of an object, or nil if the selection omits it.
func (s resourceSelection) convert(u *unstructured.Unstructured) (*v1alpha1.ResourceSummary, error) {
	r := kinds.Summarize(u).(*v1alpha1.ResourceSummary)
	if s.names.Contains != "" && !s.names.Matches(r.Object.Name, r.Status.ID) {
		return nil, nil
	}
	if s.record == v1alpha1.RecordLost {
		if !resource.StatusOf(u).ShowsInfrastructure() {
			return nil, nil
		}
		r.Status.Ready, r.Status.Reason, r.Status.Message = metav1.ConditionFalse, v1alpha1.ReasonRecordLost,
			messageRecordLost
	}
	if s.attribute != "" {
		if r.Found = attributeWith(u, s.attribute); r.Found == "" {
			return nil, nil
		}
	}
	matches, err := s.Matches(r)
	if err != nil || !matches {
		return nil, err
	}
	return r, nil
}

// messageRecordLost is the message of an object with a lost record.
const messageRecordLost = "A plan applied it, and the ledger has no record of it. Check whether the resource exists; then: kubectl hykube resolve"

// attributeWith returns the path of the first attribute in the status of an object that contains a text in any case; ""
// if none does. A masked value contains nothing.
func attributeWith(u *unstructured.Unstructured, text string) string {
	status, _ := u.Object["status"].(map[string]any)
	return strings.TrimPrefix(pathWith(status["attributes"], "", strings.ToLower(text)), ".")
}

func pathWith(v any, path, text string) string {
	switch v := v.(type) {
	case nil:
		return ""
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := pathWith(v[key], path+"."+key, text); found != "" {
				return found
			}
		}
	case []any:
		for i, element := range v {
			if found := pathWith(element, fmt.Sprintf("%s[%d]", path, i), text); found != "" {
				return found
			}
		}
	default:
		if shown := fmt.Sprint(v); shown != lang.Mask && strings.Contains(strings.ToLower(shown), text) {
			return path
		}
	}
	return ""
}

// wants returns the selection of entries of the index. It selects each entry whose Resource the view has and the
// selection may select: the entries of stored objects have neither ready nor reason. failed has the first error of the
// view.
func (s resourceSelection) wants(view hykubestorage.View, failed *error) index.WantFunc {
	visible := kindsOf(view, failed)
	requirements := s.Field.Requirements()
	return func(namespace string, n index.Node) bool {
		if *failed != nil || view.Namespace != "" && view.Namespace != namespace ||
			!visible(namespace, n.Object.Kind) || !s.Label.Matches(n.Object.Labels) {
			return false
		}
		for _, r := range requirements {
			if value, known := fieldOf(namespace, n, r.Field); known &&
				(value == r.Value) == (r.Operator == selection.NotEquals) {
				return false
			}
		}
		return true
	}
}

// kindsOf returns a function that reports whether a view shows a kind in a namespace. It stores the first error.
func kindsOf(view hykubestorage.View, failed *error) func(namespace string, kind *index.Kind) bool {
	type kindIn struct {
		namespace string
		kind      *index.Kind
	}
	known := map[kindIn]bool{}
	return func(namespace string, kind *index.Kind) bool {
		at := kindIn{namespace, kind}
		ok, asked := known[at]
		if !asked {
			var err error
			if ok, err = view.Visible(schema.GroupResource{Group: v1alpha1.ProviderGroup(kind.Provider),
				Resource: kind.Stored}, namespace); err != nil && *failed == nil {
				*failed = err
			}
			known[at] = ok
		}
		return ok
	}
}

// fieldOf returns the value of a field of a Resource as far as the index knows it.
func fieldOf(namespace string, n index.Node, field string) (value string, known bool) {
	switch o := n.Object; field {
	case v1alpha1.ResourceFieldKind:
		return o.Kind.Kind, true
	case v1alpha1.ResourceFieldProvider:
		return o.Provider, true
	case v1alpha1.ResourceFieldProviderConfig:
		return o.Config, !o.Has(index.Unready)
	case "metadata.namespace":
		return namespace, true
	case "metadata.name":
		return kinds.SummaryName(o.Provider, o.Kind.Kind, o.Name), true
	case v1alpha1.ResourceFieldReady:
		if o.Instance != nil {
			return string(n.Readiness().Status), true
		}
	case v1alpha1.ResourceFieldReason:
		if o.Instance != nil {
			return n.Readiness().Reason, true
		}
	}
	return "", false
}

// resourceAttributes returns the labels and fields for selectors.
func resourceAttributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	r, ok := obj.(*v1alpha1.ResourceSummary)
	if !ok {
		return nil, nil, fmt.Errorf("select by attributes: unexpected type %T", obj)
	}
	return r.Labels, fields.Set{
		"metadata.name": r.Name, "metadata.namespace": r.Namespace,
		v1alpha1.ResourceFieldKind: r.Object.Kind, v1alpha1.ResourceFieldProvider: r.Provider,
		v1alpha1.ResourceFieldProviderConfig: r.ProviderConfig, v1alpha1.ResourceFieldID: r.Status.ID,
		v1alpha1.ResourceFieldReady: string(r.Status.Ready), v1alpha1.ResourceFieldReason: r.Status.Reason,
	}, nil
}

// located returns an object or an instance that the index has found; nil if it does not exist any more.
func (r resourcesREST) located(ctx context.Context, l index.Located) (*unstructured.Unstructured, error) {
	if l.Object.Instance != nil {
		return r.backend.Instance(ctx, l)
	}
	return r.objects.Get(ctx, schema.GroupResource{Group: v1alpha1.ProviderGroup(l.Provider), Resource: l.Stored},
		l.Namespace, l.Name)
}
