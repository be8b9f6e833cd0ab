package planning

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// node is an object of the namespace during a survey.
type node struct {
	*resource.Resource
	record *ledger.Instance
	// wanted is false if the plan destroys the object's infrastructure.
	wanted bool
	resource.Expressions
	// configVersion is the version of the ProviderConfig; see scope.VersionOfConfig.
	configVersion string
	// config is the ProviderConfig; nil if there is none.
	config *scope.ProviderConfigRef
	// account has the arguments of config and their writers, if these may contribute; see survey.configWriters.
	account *ledger.Account
	// takenBack are users with what they wrote and what is now as it was last applied.
	takenBack []v1alpha1.Contributor
	// providerConfig is the ProviderConfig if it has references. inherited lists the DependsOn that only the
	// ProviderConfig refers to.
	providerConfig *scope.ProviderConfigRef
	inherited      []lang.Address
	// requires lists the addresses that the recorded state refers to.
	requires []lang.Address
	// externalVersions holds the versions of dependencies that are not resources; see findExternalVersions.
	externalVersions map[string]string
	// createsFirst is true if a replace must create before it destroys.
	createsFirst bool
	// wholeSets are the addresses of the sets to which the node refers as a whole.
	wholeSets []lang.Address
	// edited is true if the object or its record changed after the outline of the survey was made.
	edited bool
	// slot is the node's slot in the outline of the survey.
	slot int
	// movedFrom is the node whose record moves to this one. movedTo is the address of the object to which the record
	// moves; "" without one.
	movedFrom *node
	movedTo   string
}

// tolerance says what a load does with objects that changed after the index was read.
type tolerance bool

const (
	// exact makes the load return errOutdated.
	exact tolerance = false
	// tolerant makes it return nodes whose field edited is set.
	tolerant tolerance = true
)

// loadNodes loads the objects with some slots and their records, several at once; see load.
func (a *Planner) loadNodes(ctx context.Context, po *v1alpha1.Plan, view *index.View, slots []int,
	t tolerance) ([]*node, error) {
	nodes := make([]*node, len(slots))
	tracker := graph.NewTracker(len(slots), func(int) []int { return nil })
	err := graph.Run(ctx, tracker, loadWidth, func(ctx context.Context, k int) (bool, error) {
		err := bug.Catch(func() (err error) {
			nodes[k], err = a.load(ctx, po, view, slots[k], t)
			return err
		})
		return err == nil, err
	})
	return nodes, err
}

// loadWidth is the number of objects that a survey loads at once.
const loadWidth = 8

// load loads the object with a slot and its record. If the object or the record is another one than in the view, apart
// from the object's status, exact returns errOutdated. With tolerant, a gone or edited object is replaced by one
// without a spec, whose change Propose takes out of the plan.
func (a *Planner) load(ctx context.Context, po *v1alpha1.Plan, view *index.View, slot int, t tolerance) (*node, error) {
	known := view.Nodes[slot]
	r, err := a.loadObject(ctx, po, known.Object)
	replaced := t == tolerant && errors.Is(err, errOutdated)
	if replaced {
		r, err = a.withoutSpec(known.Object, po.Namespace)
	}
	if err != nil {
		return nil, err
	}
	rec, err := a.Ledger.Instance(ctx, known.Object.Ref(po.Namespace))
	if err != nil {
		return nil, err
	}
	recorded := int64(0)
	if known.Record != nil {
		recorded = known.Record.Revision
	}
	edited := replaced || rec.Revision() != recorded
	if edited && t == exact {
		return nil, errOutdated
	}
	n := nodeOf(po, r, rec)
	n.slot, n.edited = slot, edited
	return n, nil
}

// loadObject loads an object. It returns errOutdated if the object has another spec, deletion mark or label than its
// entry.
func (a *Planner) loadObject(ctx context.Context, po *v1alpha1.Plan, known *index.Object) (*resource.Resource, error) {
	obj, err := a.Objects.Get(ctx, known.Ref(po.Namespace))
	if errors.Is(err, store.ErrGone) {
		return nil, errOutdated
	}
	if err != nil {
		return nil, err
	}
	r, err := resource.Of(obj, a.Catalog)
	if err != nil { // the provider is no longer ready
		return nil, fmt.Errorf("%w: %w", errOutdated, err)
	}
	relabelled := !known.Has(index.Overlaid) && !maps.Equal(obj.GetLabels(), known.Labels)
	if r.Ref.Generation != known.Generation || r.Deleting != known.Has(index.Deleting) || relabelled {
		return nil, errOutdated
	}
	return r, nil
}

// withoutSpec returns what the index knows of an object. It has no generation, so the object is never the same.
func (a *Planner) withoutSpec(known *index.Object, namespace string) (*resource.Resource, error) {
	r, err := resource.Of(outlineOf(known, namespace), a.Catalog)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOutdated, err)
	}
	r.Ref, r.Deleting = known.Ref(namespace), known.Has(index.Deleting)
	r.Ref.Generation = 0
	return r, nil
}

// outlineOf returns an object with the kind, the names and the labels of an entry.
func outlineOf(known *index.Object, namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(known.APIVersion)
	u.SetKind(known.Kind.Kind)
	u.SetNamespace(namespace)
	u.SetName(known.Name)
	u.SetUID(known.UID)
	u.SetLabels(known.Labels)
	return u
}

// nodeOf returns the node of an object with its record, which may be nil. The caller adds the ProviderConfig with
// configure.
func nodeOf(po *v1alpha1.Plan, r *resource.Resource, rec *ledger.Instance) *node {
	n := &node{Resource: r, record: rec, wanted: !r.Deleting && !po.Spec.Destroy}
	if n.record == nil {
		n.record = &ledger.Instance{Object: r.Ref}
	}
	for _, s := range n.record.Dependencies {
		if addr, err := lang.ParseAddress(s); err == nil {
			n.requires = append(n.requires, addr)
		}
	}
	// a resource that is only read needs no configuration
	if n.wanted && (!po.Spec.RefreshOnly || n.Mode != v1alpha1.ModeManaged) {
		n.Expressions = *n.Parse()
	}
	return n
}
