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
	"github.com/hykube/hykube/internal/suggest"
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
	// kindWait is the maximum wait for the kinds of a ready provider.
	kindWait = 15 * time.Second
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

// target returns the object as a target of a plan. ok is false if its kind is not a provider's.
func (r recorded) target() (target, bool) {
	gvk := r.object.GroupVersionKind()
	if _, ok := v1alpha1.ProviderOfGroup(gvk.Group); !ok {
		return target{}, false
	}
	m, typ := v1alpha1.ParseKind(gvk.Kind)
	return target{namespace: r.namespace, mode: m, typ: typ, name: r.object.GetName(), group: gvk.Group}, true
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
				results[i], errs[i] = r.recordOne(ctx, m)
			}()
		}
	}()
	// Print the lines in the order of the files, regardless of the order of the responses.
	var out []recorded
	for i := range ms {
		<-done[i]
		if errs[i] != nil {
			continue
		}
		fmt.Fprintln(r.Out, line(results[i].object, results[i].verb))
		out = append(out, results[i])
	}
	return out, errors.Join(errs...)
}

// line returns kubectl's line: "sim-network.sim.hykube.io/main created".
func line(u *unstructured.Unstructured, verb string) string {
	gk := u.GroupVersionKind().GroupKind()
	return strings.ToLower(gk.String()) + "/" + u.GetName() + " " + verb
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
func (r *recorder) recordOne(ctx context.Context, m manifest) (out recorded, err error) {
	err = retry.OnError(retry.DefaultBackoff, func(err error) bool { return apierrors.IsConflict(err) && len(causes(err)) == 0 }, func() (err error) {
		out, err = r.recordOnce(ctx, m)
		return err
	})
	return out, err
}

func (r *recorder) recordOnce(ctx context.Context, m manifest) (recorded, error) {
	gvr, namespace, err := r.prepare(ctx, m)
	if err != nil {
		return recorded{}, err
	}
	gvk := m.object.GroupVersionKind()
	out := recorded{manifest: m, namespace: namespace}
	res := r.resource(gvr, out.namespace)
	before, err := res.Get(ctx, m.object.GetName(), metav1.GetOptions{})
	if m.version != nil && (err == nil && v1alpha1.ObjectVersion(before) != *m.version || apierrors.IsNotFound(err) && *m.version != "") {
		return out, &exitError{ExitStale, &movedError{m.object, fmt.Errorf("%s: record %s %q: it changed after the plan was shown; run the same command again to plan the new version", m.where(), gvk.Kind, m.object.GetName())}}
	}
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		before = nil // a user without read access may have write access
	case err != nil:
		return out, fmt.Errorf("%s: record %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), explain(err, r.server()))
	case before.GetDeletionTimestamp() != nil && !r.destroys:
		return out, r.beingDeleted(ctx, []manifest{m})
	default:
		if err := r.adopt(ctx, gvr, out.namespace, before); err != nil {
			return out, fmt.Errorf("%s: record %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), explain(err, r.server()))
		}
	}
	body, err := json.Marshal(m.object)
	if err != nil {
		return out, fmt.Errorf("%s: encode %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), err)
	}
	opts := metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict}
	if r.force {
		opts.Force = new(true)
	}
	after, err := res.Patch(ctx, m.object.GetName(), types.ApplyPatchType, body, opts)
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
	case before == nil:
		out.verb = "created"
	case sameContent(before, after):
		out.verb = "unchanged"
	default:
		out.verb = "configured"
		out.leftSet = before.GetLabels()[partOfLabel] != "" && after.GetLabels()[partOfLabel] == ""
	}
	return out, nil
}

// sameContent reports whether an apply changed only managed fields. These may change alone, as in the first apply of an
// object that another client created.
func sameContent(a, b *unstructured.Unstructured) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() {
		return true
	}
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
func (r *recorder) adopt(ctx context.Context, gvr schema.GroupVersionResource, namespace string, u *unstructured.Unstructured) error {
	if !slices.ContainsFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == clientSideManager && e.Operation == metav1.ManagedFieldsOperationUpdate
	}) {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(clientSideManager), fieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = r.resource(gvr, namespace).Patch(ctx, u.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
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
		return fmt.Errorf("%s: %w\nAn object may have 2 MB; store large values elsewhere and refer to them", what, err)
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

// awaitKind waits for a kind of a provider that has just become ready.
func (r *recorder) awaitKind(ctx context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionResource, bool, error) {
	provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
	deadline := time.Now().Add(kindWait)
	for {
		r.mu.Lock()
		r.mapper.Reset()
		gvr, namespaced, err := r.mapping(gvk)
		r.mu.Unlock()
		if err == nil || !r.installed[provider] || r.served(gvk.GroupVersion()) || time.Now().After(deadline) {
			return gvr, namespaced, err
		}
		pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return gvr, namespaced, ctx.Err()
		}
	}
}

// served reports whether a group serves any kind. Then a missing kind will not appear.
func (r *recorder) served(gv schema.GroupVersion) bool {
	l, err := r.disco.ServerResourcesForGroupVersion(gv.String())
	return err == nil && len(l.APIResources) > 0
}

// unknownKind returns the error for an unknown kind, with the existing kinds.
func (r *recorder) unknownKind(ctx context.Context, m manifest, cause error) error {
	gvk := m.object.GroupVersionKind()
	if !meta.IsNoMatchError(cause) {
		return fmt.Errorf("%s: find kind %q: %w", m.where(), gvk.Kind, explain(cause, r.server()))
	}
	head := fmt.Sprintf("%s: unknown kind %q in %q", m.where(), gvk.Kind, gvk.GroupVersion())
	provider, ours := v1alpha1.ProviderOfGroup(gvk.Group)
	if !ours {
		return fmt.Errorf("%s: this server serves no such kind; `kubectl api-resources` lists them all", head)
	}
	if l, err := r.disco.ServerResourcesForGroupVersion(v1alpha1.ProviderGroup(provider) + "/" + v1alpha1.ResourceVersion); err == nil && len(l.APIResources) > 0 {
		var names []string
		for _, k := range l.APIResources {
			if !strings.Contains(k.Name, "/") {
				names = append(names, k.Kind)
			}
		}
		if gvk.Version != v1alpha1.ResourceVersion {
			return fmt.Errorf("%s: write apiVersion: %s/%s", head, gvk.Group, v1alpha1.ResourceVersion)
		}
		if near := suggest.Nearest(v1alpha1.KindOf(gvk.Kind), names); near != "" {
			return fmt.Errorf("%s: did you mean %q? `kubectl hykube provider schema %s` lists the kinds of provider %q", head, near, provider, provider)
		}
		return fmt.Errorf("%s: provider %q has no such resource type; `kubectl hykube provider schema %s` lists those that it has", head, provider, provider)
	}
	list := &v1alpha1.ProviderList{}
	if err := r.hykube.Get().Resource("providers").Do(ctx).Into(list); err != nil {
		return fmt.Errorf("%s: no provider %q is ready", head, provider)
	}
	var names []string
	for _, p := range list.Items {
		if p.Name == provider {
			return fmt.Errorf("%s: provider %q isn't ready: %s", head, provider, conditionText(p.Status.Conditions))
		}
		names = append(names, p.Name)
	}
	installed := "none is installed"
	if len(names) > 0 {
		installed = "installed are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("%s: no provider is named %q (%s). Add this document before it:\n  apiVersion: %s\n  kind: Provider\n  metadata: {name: %s}\n  spec: {source: NAMESPACE/%s}",
		head, provider, installed, v1alpha1.SchemeGroupVersion, provider, provider)
}

// awaitProviders waits until the providers of the files are ready and serve their kinds.
func (r *recorder) awaitProviders(ctx context.Context, ms []manifest) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for _, m := range ms {
		name := m.object.GetName()
		if err := r.awaitProvider(ctx, name); err != nil {
			return fmt.Errorf("%s: %w", m.where(), err)
		}
		r.installed[name] = true
	}
	return nil
}

func (r *recorder) awaitProvider(ctx context.Context, name string) error {
	said, began := false, time.Now()
	for {
		p := &v1alpha1.Provider{}
		if err := r.hykube.Get().Resource("providers").Name(name).Do(ctx).Into(p); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("provider %q isn't ready after %s: `kubectl describe provider %s` shows why", name, elapsed(time.Since(began)), name)
			}
			return fmt.Errorf("get provider %q: %w", name, explain(err, r.server()))
		}
		current := p.Status.ObservedGeneration >= p.Generation
		switch {
		case current && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady):
			if said {
				fmt.Fprintf(r.ErrOut, "Provider %q is ready: version %s, %d kinds.\n", name, p.Status.Version, p.Status.Kinds)
			}
			return nil
		case current && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionStalled):
			return fmt.Errorf("provider %q can't be installed: %s", name, conditionText(p.Status.Conditions))
		}
		if !said && time.Since(began) > 300*time.Millisecond {
			said = true
			fmt.Fprintf(r.ErrOut, "Waiting for provider %q (%s) to be installed...\n", name, p.Spec.Source)
		}
		r.awaitChange(ctx, p)
	}
}

// awaitChange returns after a provider has changed, or after a second. The caller checks the provider itself.
func (r *recorder) awaitChange(ctx context.Context, p *v1alpha1.Provider) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	w, err := r.hykube.Get().Resource("providers").VersionedParams(&metav1.ListOptions{
		FieldSelector: "metadata.name=" + p.Name, ResourceVersion: p.ResourceVersion, Watch: true,
	}, metav1.ParameterCodec).Watch(ctx)
	if err != nil {
		pause(ctx, 100*time.Millisecond)
		return
	}
	defer w.Stop()
	select {
	case <-w.ResultChan():
	case <-ctx.Done():
	}
}

// conditionText returns the message of the condition that explains why an object is not ready.
func conditionText(conditions []metav1.Condition) string {
	order := []string{v1alpha1.ConditionStalled, v1alpha1.ConditionInstalled, v1alpha1.ConditionReady}
	for _, t := range order {
		if c := meta.FindStatusCondition(conditions, t); c != nil && c.Message != "" {
			return c.Message
		}
	}
	return "the server has not processed it yet"
}
