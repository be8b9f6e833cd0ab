package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/client-go/util/retry"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

const (
	// fieldManager is kubectl's own name, so that `kubectl apply --server-side` and `kubectl hykube apply` never
	// conflict.
	fieldManager = "kubectl"
	// stateManager is the field manager with which state rm and state mv set lifecycle.destroy, so that undelete can
	// find and remove it.
	stateManager = "kubectl-hykube-state"
	// clientSideManager is the field manager of `kubectl apply` without --server-side.
	clientSideManager = "kubectl-client-side-apply"
	// recordAtOnce is the number of objects that are recorded concurrently.
	recordAtOnce = 16
)

// recorder writes objects to the server. It changes no infrastructure.
type recorder struct {
	*session
	force   bool
	timeout time.Duration // maximum time for the installation of a provider
	mu      sync.Mutex
	// installed holds the providers of the files; true once one is ready.
	installed map[string]bool
	// destroys is true if the objects are recorded for a destroy plan. Then objects that are being deleted are
	// recorded, too.
	destroys bool
	// several is true if the objects have more than one namespace.
	several bool
	// warned is true if the user was already warned about objects that leave an applyset.
	warned bool
}

// recorded is an object as the server has stored it.
type recorded struct {
	manifest
	namespace string // "" for a cluster-scoped object
	verb      string // created, configured or unchanged
	leftSet   bool   // its applyset label was removed
}

// target returns the object as a target of a plan; for a ResourceSet, the address of all its instances, and
// for a Module that of the whole module. ok is false if its
// kind is not a provider's.
func (r recorded) target() (target, bool) {
	if isModule(r.object) {
		return target{namespace: r.namespace, mode: modeModule, name: r.object.GetName(), group: v1alpha1.GroupName}, true
	}
	u := templateOf(r.object)
	gvk := u.GroupVersionKind()
	if _, ok := v1alpha1.ProviderOfGroup(gvk.Group); !ok {
		return target{}, false
	}
	m, typ := v1alpha1.ParseKind(gvk.Kind)
	return target{namespace: r.namespace, mode: m, typ: typ, name: u.GetName(), group: gvk.Group}, true
}

// tier returns the position of a kind in the order of recording: prerequisites of others come first.
func tier(gk schema.GroupKind) int {
	switch {
	case gk == schema.GroupKind{Kind: "Namespace"}:
		return 0
	case gk.Group == "" || strings.HasSuffix(gk.Group, ".k8s.io"):
		return 1
	case gk == v1alpha1.Kind("Provider"):
		return 2
	case gk == v1alpha1.Kind("ProviderConfig"):
		return 3
	case gk == v1alpha1.Kind("Plan"):
		return 5
	}
	return 4
}

// record writes the objects, tier by tier, and prints kubectl's line for each. After an error, it still tries the rest
// of the tier, so that the user sees all errors at once.
func (r *recorder) record(ctx context.Context, ms []manifest) ([]recorded, error) {
	if r.installed == nil {
		r.installed = map[string]bool{}
	}
	tiers := make([][]manifest, 6)
	r.several = r.severalNamespaces(ms)
	for _, m := range ms {
		gk := m.object.GroupVersionKind().GroupKind()
		tiers[tier(gk)] = append(tiers[tier(gk)], m)
		if gk == v1alpha1.Kind("Provider") {
			r.installed[m.object.GetName()] = false
		}
	}
	// Kinds that no provider in the files adds must exist before the first object is written.
	var bad []error
	for _, m := range ms {
		gvk := m.object.GroupVersionKind()
		provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
		if _, coming := r.installed[provider]; coming {
			continue
		}
		if _, _, err := r.mapping(gvk); err != nil {
			bad = append(bad, r.unknownKind(ctx, m, err))
		}
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	var out []recorded
	for i, t := range tiers {
		done, err := r.recordTier(ctx, t)
		out = append(out, done...)
		if err != nil {
			if len(out) > 0 {
				err = fmt.Errorf("%w\nNothing was planned. The objects that are listed above as created or configured stay recorded; correct the files and run the same command again", err)
			}
			return out, err
		}
		if !r.warned {
			r.warnLeftSets(done)
		}
		if i == 2 {
			if err := r.awaitProviders(ctx, t); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (r *recorder) recordTier(ctx context.Context, ms []manifest) ([]recorded, error) {
	existing, err := r.list(ctx, ms)
	if err != nil {
		return nil, err
	}
	results := make([]recorded, len(ms))
	errs := make([]error, len(ms))
	slots := make(chan struct{}, recordAtOnce)
	done := make([]chan struct{}, len(ms))
	for i := range ms {
		done[i] = make(chan struct{})
	}
	go func() {
		for i, m := range ms {
			slots <- struct{}{}
			go func() {
				defer func() { <-slots; close(done[i]) }()
				results[i], errs[i] = r.recordOne(ctx, m, existing)
			}()
		}
	}()
	// Print the lines in the order of the files, regardless of the order of the responses.
	var out []recorded
	unchanged := 0
	for i := range ms {
		<-done[i]
		if errs[i] != nil {
			continue
		}
		out = append(out, results[i])
		if results[i].verb == "unchanged" {
			if unchanged++; unchanged > listedChanges {
				continue
			}
		}
		fmt.Fprintln(r.Out, line(results[i].object, results[i].verb)+r.inNamespace(results[i].namespace))
	}
	if more := unchanged - listedChanges; more > 0 {
		fmt.Fprintf(r.Out, "%s unchanged\n", diff.Plural(more, "more object"))
	}
	return out, errors.Join(errs...)
}

// line returns kubectl's line: "sim-network.sim.hykube.io/main created".
func line(u *unstructured.Unstructured, verb string) string {
	gk := u.GroupVersionKind().GroupKind()
	return strings.ToLower(gk.String()) + "/" + u.GetName() + " " + verb
}

// inNamespace returns the end of kubectl's line for an object in a namespace, if the objects have several.
func (r *recorder) inNamespace(namespace string) string {
	if namespace == "" || !r.several {
		return ""
	}
	return " in namespace " + namespace
}

// severalNamespaces reports whether objects have more than one namespace.
func (r *recorder) severalNamespaces(ms []manifest) bool {
	found := map[string]bool{}
	for _, m := range ms {
		namespace := m.object.GetNamespace()
		if namespace == "" {
			// The kinds of a provider that is not installed yet are unknown, and have a namespace.
			if _, namespaced, err := r.mapping(m.object.GroupVersionKind()); err == nil && !namespaced {
				continue
			}
			namespace = r.namespace
		}
		found[namespace] = true
	}
	return len(found) > 1
}

// prepare finds the resource of an object and prepares the object for recording: it sets the namespace and removes the
// fields that the server sets.
func (r *recorder) prepare(ctx context.Context, m manifest) (gvr schema.GroupVersionResource, namespace string, err error) {
	gvk := m.object.GroupVersionKind()
	gvr, namespaced, err := r.mapping(gvk)
	if err != nil && meta.IsNoMatchError(err) {
		gvr, namespaced, err = r.awaitKind(ctx, gvk)
	}
	if err != nil {
		return gvr, "", r.unknownKind(ctx, m, err)
	}
	if namespaced {
		namespace = m.object.GetNamespace()
		if namespace == "" {
			namespace = r.namespace
			m.object.SetNamespace(namespace)
		}
		if r.enforce && namespace != r.namespace {
			return gvr, "", fmt.Errorf("%s: %s %q has namespace %q, and -n is %q", m.where(), gvk.Kind, m.object.GetName(), namespace, r.namespace)
		}
	} else {
		m.object.SetNamespace("")
	}
	// A status in a file is a copy from `kubectl get -o yaml`, and must not replace the server's.
	for _, f := range [][]string{{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "generation"}, {"status"}} {
		unstructured.RemoveNestedField(m.object.Object, f...)
	}
	encodeStringData(m.object)
	return gvr, namespace, nil
}

// recordOne writes an object. It retries if another client changes the object concurrently, but not after a conflict of
// field managers, which the user must resolve.
func (r *recorder) recordOne(ctx context.Context, m manifest, existing existingObjects) (out recorded, err error) {
	err = retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) && len(causes(err)) == 0 }, func() (err error) {
		out, err = r.recordOnce(ctx, m, existing)
		existing = nil // the list is outdated
		return err
	})
	return out, err
}

func (r *recorder) recordOnce(ctx context.Context, m manifest, existing existingObjects) (recorded, error) {
	gvr, namespace, err := r.prepare(ctx, m)
	if err != nil {
		return recorded{}, err
	}
	gvk := m.object.GroupVersionKind()
	out := recorded{manifest: m, namespace: namespace}
	before, listed, err := r.before(ctx, gvr, namespace, m.object.GetName(), existing)
	if m.version != nil && err == nil && objectVersion(before) != *m.version {
		return out, &exitError{ExitStale, &changedError{m.object, fmt.Errorf("%s: record %s %q: it changed after the plan was shown; run the same command again to plan the new version", m.where(), gvk.Kind, m.object.GetName())}}
	}
	switch {
	case apierrors.IsForbidden(err):
		// A user without read access may have write access.
	case err != nil:
		return out, fmt.Errorf("%s: record %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), explain(err, r.server()))
	case before == nil:
	case before.GetDeletionTimestamp() != nil && !r.destroys:
		return out, r.beingDeleted(ctx, []manifest{m})
	default:
		if err := r.adopt(ctx, gvr, out.namespace, before); err != nil {
			return out, fmt.Errorf("%s: record %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), explain(err, r.server()))
		}
	}
	if listed && before != nil {
		m.object = m.object.DeepCopy()
		m.object.SetResourceVersion(before.GetResourceVersion()) // after another write, get the object and try again
	}
	body, err := json.Marshal(m.object)
	if err != nil {
		return out, fmt.Errorf("%s: encode %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), err)
	}
	opts := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if r.force {
		opts.Force = new(true)
	}
	after, err := r.resource(gvr, namespace).Patch(ctx, m.object.GetName(), types.ApplyPatchType, body, opts)
	if err != nil {
		if apierrors.IsNotFound(err) && notServed(err) {
			// The cached discovery has a kind that no longer exists.
			r.mapper.Reset()
			if _, _, merr := r.mapping(gvk); merr != nil {
				return out, r.unknownKind(ctx, m, merr)
			}
		}
		if inDeletion(err) {
			return out, &exitError{ExitError, r.beingDeleted(ctx, []manifest{m})}
		}
		return out, r.refused(m, out.namespace, err)
	}
	out.object = after
	switch {
	case before == nil && after.GetGeneration() <= 1:
		out.verb = "created"
	case before == nil: // another client created it after the list
		out.verb = "configured"
	case sameContent(before, after):
		out.verb = "unchanged"
	default:
		out.verb = "configured"
		out.leftSet = before.GetLabels()[partOfLabel] != "" && after.GetLabels()[partOfLabel] == ""
	}
	return out, nil
}

// objectVersion returns the version of an object, as v1alpha1.ObjectVersion does, or "" for nil.
func objectVersion(obj existingObject) string {
	if obj == nil {
		return ""
	}
	return v1alpha1.ObjectVersion(obj)
}

// sameObject reports whether two versions of an object differ in nothing but managed fields and the status.
func sameObject(a, b *unstructured.Unstructured) bool {
	strip := func(u *unstructured.Unstructured) map[string]any {
		c := u.DeepCopy()
		c.SetManagedFields(nil)
		c.SetResourceVersion("")
		unstructured.RemoveNestedField(c.Object, "status")
		return c.Object
	}
	return reflect.DeepEqual(strip(a), strip(b))
}

// adopt moves the ownership of fields from client-side `kubectl apply` to server-side apply, as kubectl does. Otherwise
// they would conflict, and fields that the file omits would stay.
func (r *recorder) adopt(ctx context.Context, gvr schema.GroupVersionResource, namespace string, u existingObject) error {
	if !appliedClientSide(u) {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(clientSideManager), fieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = r.resource(gvr, namespace).Patch(ctx, u.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// appliedClientSide reports whether kubectl applied an object without --server-side.
func appliedClientSide(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == clientSideManager && e.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// refused returns the error for an object that the server rejected.
func (r *recorder) refused(m manifest, namespace string, err error) error {
	what := fmt.Sprintf("%s: record %s %q", m.where(), m.object.GetKind(), m.object.GetName())
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w\n%s", what, err, takeOver)
	case apierrors.IsNotFound(err) && namespace != "":
		return fmt.Errorf("%s: %w\nDoes the namespace exist? kubectl create namespace %s", what, err, namespace)
	case apierrors.IsInvalid(err) && len(causes(err)) > 0:
		return m.causeErrors(causes(err))
	case apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("%s: %w\nAn object may have 2 MB, and each of its maps 10,000 keys; store large values elsewhere and refer to them", what, err)
	}
	return fmt.Errorf("%s: %w", what, explain(err, r.server()))
}

// causes returns the causes of an API error.
func causes(err error) []metav1.StatusCause {
	if s := apiStatus(err); s != nil && s.Details != nil {
		return s.Details.Causes
	}
	return nil
}

// causeErrors returns an error for each cause, with its position in the file.
func (m manifest) causeErrors(causes []metav1.StatusCause) error {
	var out []error
	for _, c := range causes {
		out = append(out, fmt.Errorf("%s: %s %q: %s: %s", m.at(c.Field), m.object.GetKind(), m.object.GetName(), c.Field, c.Message))
	}
	return errors.Join(out...)
}
