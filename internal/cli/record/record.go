// Package record writes the objects of files to a server, with the rules of server-side apply. It changes no
// infrastructure.
package record

import (
	"context"
	"encoding/base64"
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
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// ChangedError is the error for an object of the files that changed after the plan was shown.
type ChangedError struct {
	Object *unstructured.Unstructured
	Cause  error
}

func (e *ChangedError) Error() string { return e.Cause.Error() }

func (e *ChangedError) Unwrap() error { return e.Cause }

// ChangedObjects returns the objects of the files that changed after the plan was shown. It returns none if there is
// also another error.
func ChangedObjects(err error) []*ChangedError {
	if m, ok := err.(*ChangedError); ok {
		return []*ChangedError{m}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var out []*ChangedError
		for _, one := range e.Unwrap() {
			ms := ChangedObjects(one)
			if len(ms) == 0 {
				return nil
			}
			out = append(out, ms...)
		}
		return out
	case interface{ Unwrap() error }:
		return ChangedObjects(errors.Unwrap(err))
	}
	return nil
}

const (
	// clientSideManager is the field manager of `kubectl apply` without --server-side.
	clientSideManager = "kubectl-client-side-apply"
	// RecordAtOnce is the number of objects that are recorded concurrently.
	RecordAtOnce = 16
)

// Recorder writes objects to the server. It changes no infrastructure.
type Recorder struct {
	*session.Session
	Force   bool
	Timeout time.Duration // maximum time for the installation of a provider
	mu      sync.Mutex
	// Installed holds the providers of the files; true once one is ready.
	Installed map[string]bool
	// Destroys is true if the objects are recorded for a destroy plan. Then objects that are being deleted are
	// recorded, too.
	Destroys bool
	// several is true if the objects have more than one namespace.
	several bool
	// Warned is true if the user was already warned about objects that leave an applyset.
	Warned bool
}

// Recorded is an object as the server has stored it.
type Recorded struct {
	manifest.Manifest
	Namespace string // "" for a cluster-scoped object
	Verb      string // created, configured or unchanged
	leftSet   bool   // its applyset label was removed
}

// Target returns the object as a target of a plan; for a ResourceSet, the address of all its instances, and
// for a Module that of the whole module. ok is false if its
// kind is not a provider's.
func (r Recorded) Target() (addrs.Target, bool) {
	if addrs.IsModule(r.Object) {
		return addrs.Target{Namespace: r.Namespace, Mode: addrs.ModeModule, Name: r.Object.GetName(),
			Group: v1alpha1.GroupName}, true
	}
	u := addrs.TemplateOf(r.Object)
	gvk := u.GroupVersionKind()
	if _, ok := v1alpha1.ProviderOfGroup(gvk.Group); !ok {
		return addrs.Target{}, false
	}
	m, typ := v1alpha1.ParseKind(gvk.Kind)
	return addrs.Target{Namespace: r.Namespace, Mode: m, Type: typ, Name: u.GetName(), Group: gvk.Group}, true
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

// Record writes the objects, tier by tier, and prints kubectl's line for each. After an error, it still tries the rest
// of the tier, so that the user sees all errors at once.
func (r *Recorder) Record(ctx context.Context, ms []manifest.Manifest) ([]Recorded, error) {
	if r.Installed == nil {
		r.Installed = map[string]bool{}
	}
	tiers := make([][]manifest.Manifest, 6)
	r.several = r.severalNamespaces(ms)
	for _, m := range ms {
		gk := m.Object.GroupVersionKind().GroupKind()
		tiers[tier(gk)] = append(tiers[tier(gk)], m)
		if gk == v1alpha1.Kind("Provider") {
			r.Installed[m.Object.GetName()] = false
		}
	}
	// Kinds that no provider in the files adds must exist before the first object is written.
	var bad []error
	for _, m := range ms {
		gvk := m.Object.GroupVersionKind()
		provider, _ := v1alpha1.ProviderOfGroup(gvk.Group)
		if _, coming := r.Installed[provider]; coming {
			continue
		}
		if _, _, err := r.Mapping(gvk); err != nil {
			bad = append(bad, r.UnknownKind(ctx, m, err))
		}
	}
	if len(bad) > 0 {
		return nil, errors.Join(bad...)
	}
	var out []Recorded
	for i, t := range tiers {
		done, err := r.recordTier(ctx, t)
		out = append(out, done...)
		if err != nil {
			if len(out) > 0 {
				err = fmt.Errorf("%w\nNothing was planned. The objects that are listed above as created or configured stay recorded; correct the files and run the same command again", err)
			}
			return out, err
		}
		if !r.Warned {
			r.warnLeftSets(done)
		}
		if i == 2 {
			if err := r.AwaitProviders(ctx, t); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

func (r *Recorder) recordTier(ctx context.Context, ms []manifest.Manifest) ([]Recorded, error) {
	existing, err := r.list(ctx, ms)
	if err != nil {
		return nil, err
	}
	results := make([]Recorded, len(ms))
	errs := make([]error, len(ms))
	slots := make(chan struct{}, RecordAtOnce)
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
	var out []Recorded
	unchanged := 0
	for i := range ms {
		<-done[i]
		if errs[i] != nil {
			continue
		}
		out = append(out, results[i])
		if results[i].Verb == "unchanged" {
			if unchanged++; unchanged > printer.ListedChanges {
				continue
			}
		}
		fmt.Fprintln(r.Out, Line(results[i].Object, results[i].Verb)+r.inNamespace(results[i].Namespace))
	}
	if more := unchanged - printer.ListedChanges; more > 0 {
		fmt.Fprintf(r.Out, "%s unchanged\n", diff.Plural(more, "more object"))
	}
	return out, errors.Join(errs...)
}

// Line returns kubectl's line: "sim-network.sim.hykube.io/main created".
func Line(u *unstructured.Unstructured, verb string) string {
	gk := u.GroupVersionKind().GroupKind()
	return strings.ToLower(gk.String()) + "/" + u.GetName() + " " + verb
}

// inNamespace returns the end of kubectl's line for an object in a namespace, if the objects have several.
func (r *Recorder) inNamespace(namespace string) string {
	if namespace == "" || !r.several {
		return ""
	}
	return " in namespace " + namespace
}

// severalNamespaces reports whether objects have more than one namespace.
func (r *Recorder) severalNamespaces(ms []manifest.Manifest) bool {
	found := map[string]bool{}
	for _, m := range ms {
		namespace := m.Object.GetNamespace()
		if namespace == "" {
			// The kinds of a provider that is not installed yet are unknown, and have a namespace.
			if _, namespaced, err := r.Mapping(m.Object.GroupVersionKind()); err == nil && !namespaced {
				continue
			}
			namespace = r.Namespace
		}
		found[namespace] = true
	}
	return len(found) > 1
}

// Prepare finds the resource of an object and prepares the object for recording: it sets the namespace and removes the
// fields that the server sets.
func (r *Recorder) Prepare(ctx context.Context,
	m manifest.Manifest) (gvr schema.GroupVersionResource, namespace string, err error) {
	gvk := m.Object.GroupVersionKind()
	gvr, namespaced, err := r.Mapping(gvk)
	if err != nil && meta.IsNoMatchError(err) {
		gvr, namespaced, err = r.awaitKind(ctx, gvk)
	}
	if err != nil {
		return gvr, "", r.UnknownKind(ctx, m, err)
	}
	if namespaced {
		namespace = m.Object.GetNamespace()
		if namespace == "" {
			namespace = r.Namespace
			m.Object.SetNamespace(namespace)
		}
		if r.Enforce && namespace != r.Namespace {
			return gvr, "", fmt.Errorf("%s: %s %q has namespace %q, and -n is %q", m.Where(), gvk.Kind,
				m.Object.GetName(), namespace, r.Namespace)
		}
	} else {
		m.Object.SetNamespace("")
	}
	// A status in a file is a copy from `kubectl get -o yaml`, and must not replace the server's.
	for _, f := range [][]string{{"metadata", "managedFields"}, {"metadata", "resourceVersion"}, {"metadata", "uid"},
		{"metadata", "creationTimestamp"}, {"metadata", "generation"}, {"status"}} {
		unstructured.RemoveNestedField(m.Object.Object, f...)
	}
	encodeStringData(m.Object)
	return gvr, namespace, nil
}

// recordOne writes an object. It retries if another client changes the object concurrently, but not after a conflict of
// field managers, which the user must resolve.
func (r *Recorder) recordOne(ctx context.Context, m manifest.Manifest,
	existing existingObjects) (out Recorded, err error) {
	err = retry.OnError(retry.DefaultBackoff,
		func(err error) bool { return apierrors.IsConflict(err) && len(causes(err)) == 0 }, func() (err error) {
			out, err = r.recordOnce(ctx, m, existing)
			existing = nil // the list is outdated
			return err
		})
	return out, err
}

func (r *Recorder) recordOnce(ctx context.Context, m manifest.Manifest, existing existingObjects) (Recorded, error) {
	gvr, namespace, err := r.Prepare(ctx, m)
	if err != nil {
		return Recorded{}, err
	}
	gvk := m.Object.GroupVersionKind()
	out := Recorded{Manifest: m, Namespace: namespace}
	before, listed, err := r.before(ctx, gvr, namespace, m.Object.GetName(), existing)
	if m.Version != nil && err == nil && objectVersion(before) != *m.Version {
		return out, &exit.Error{Code: exit.Stale,
			Cause: &ChangedError{m.Object,
				fmt.Errorf("%s: record %s %q: it changed after the plan was shown; run the same command again to plan the new version", m.Where(), gvk.Kind, m.Object.GetName())}}
	}
	switch {
	case apierrors.IsForbidden(err):
		// A user without read access may have write access.
	case err != nil:
		return out, fmt.Errorf("%s: record %s %q: %w", m.Where(), gvk.Kind, m.Object.GetName(), r.Explain(err))
	case before == nil:
	case before.GetDeletionTimestamp() != nil && !r.Destroys:
		return out, BeingDeleted(ctx, r.Session, []manifest.Manifest{m})
	default:
		if err := r.adopt(ctx, gvr, out.Namespace, before); err != nil {
			return out, fmt.Errorf("%s: record %s %q: %w", m.Where(), gvk.Kind, m.Object.GetName(), r.Explain(err))
		}
	}
	if listed && before != nil {
		m.Object = m.Object.DeepCopy()
		m.Object.SetResourceVersion(before.GetResourceVersion()) // after another write, get the object and try again
	}
	body, err := json.Marshal(m.Object)
	if err != nil {
		return out, fmt.Errorf("%s: encode %s %q: %w", m.Where(), gvk.Kind, m.Object.GetName(), err)
	}
	opts := metav1.PatchOptions{FieldManager: objects.FieldManager, FieldValidation: metav1.FieldValidationStrict}
	if r.Force {
		opts.Force = new(true)
	}
	after, err := r.Resource(gvr, namespace).Patch(ctx, m.Object.GetName(), types.ApplyPatchType, body, opts)
	if err != nil {
		if apierrors.IsNotFound(err) && session.NotServed(err) {
			// The cached discovery has a kind that no longer exists.
			r.Mapper.Reset()
			if _, _, merr := r.Mapping(gvk); merr != nil {
				return out, r.UnknownKind(ctx, m, merr)
			}
		}
		if InDeletion(err) {
			return out, &exit.Error{Code: exit.Failed, Cause: BeingDeleted(ctx, r.Session, []manifest.Manifest{m})}
		}
		return out, r.Refused(m, out.Namespace, err)
	}
	out.Object = after
	switch {
	case before == nil && after.GetGeneration() <= 1:
		out.Verb = "created"
	case before == nil: // another client created it after the list
		out.Verb = "configured"
	case sameContent(before, after):
		out.Verb = "unchanged"
	default:
		out.Verb = "configured"
		out.leftSet = before.GetLabels()[PartOfLabel] != "" && after.GetLabels()[PartOfLabel] == ""
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
func (r *Recorder) adopt(ctx context.Context, gvr schema.GroupVersionResource, namespace string,
	u existingObject) error {
	if !appliedClientSide(u) {
		return nil
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(clientSideManager), objects.FieldManager)
	if err != nil || len(patch) == 0 {
		return err
	}
	_, err = r.Resource(gvr, namespace).Patch(ctx, u.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

// appliedClientSide reports whether kubectl applied an object without --server-side.
func appliedClientSide(obj metav1.Object) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == clientSideManager && e.Operation == metav1.ManagedFieldsOperationUpdate
	})
}

// Refused returns the error for an object that the server rejected.
func (r *Recorder) Refused(m manifest.Manifest, namespace string, err error) error {
	what := fmt.Sprintf("%s: record %s %q", m.Where(), m.Object.GetKind(), m.Object.GetName())
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%s: %w\n%s", what, err, TakeOver)
	case apierrors.IsNotFound(err) && namespace != "":
		return fmt.Errorf("%s: %w\nDoes the namespace exist? kubectl create namespace %s", what, err, namespace)
	case apierrors.IsInvalid(err) && len(causes(err)) > 0:
		return causeErrors(m, causes(err))
	case apierrors.IsRequestEntityTooLargeError(err):
		return fmt.Errorf("%s: %w\nAn object may have 2 MB, and each of its maps 10,000 keys; store large values elsewhere and refer to them", what, err)
	}
	return fmt.Errorf("%s: %w", what, r.Explain(err))
}

// causes returns the causes of an API error.
func causes(err error) []metav1.StatusCause {
	if s := session.APIStatus(err); s != nil && s.Details != nil {
		return s.Details.Causes
	}
	return nil
}

// causeErrors returns an error for each cause, with its position in the file.
func causeErrors(m manifest.Manifest, causes []metav1.StatusCause) error {
	var out []error
	for _, c := range causes {
		out = append(out, fmt.Errorf("%s: %s %q: %s: %s", m.At(c.Field), m.Object.GetKind(), m.Object.GetName(),
			c.Field, c.Message))
	}
	return errors.Join(out...)
}

// PartOfLabel is the label of the ApplySet specification that names the set of an object.
const PartOfLabel = "applyset.kubernetes.io/part-of"

// warnLeftSets warns about objects that are no longer members of an applyset, because they were recorded without
// --prune.
func (r *Recorder) warnLeftSets(done []Recorded) {
	n, example := 0, ""
	for _, d := range done {
		if d.leftSet {
			n++
			example = Line(d.Object, "")
		}
	}
	if n > 0 {
		fmt.Fprintf(r.ErrOut, "%s %s, such as %s, left an applyset, because this command has no --prune. A later --prune does not delete them. To add them again, apply the same files with --prune --applyset NAME.\n",
			r.Style.Yellow("Warning:"), diff.Plural(n, "object"), strings.TrimSpace(example))
	}
}

// TakeOver is the remedy for fields that other managers own.
const TakeOver = "Another manager owns these fields. Take them out of the file, or take them over with --force-conflicts"

// encodeStringData moves stringData of a Secret to data, where the server stores it. Server-side apply compares the
// fields of a file with their owners before the server moves them. So it would find no owner of stringData, and no
// conflict.
func encodeStringData(u *unstructured.Unstructured) {
	if u.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}
	text, found, err := unstructured.NestedStringMap(u.Object, "stringData")
	if !found || err != nil { // the server reports invalid data
		return
	}
	data, _, err := unstructured.NestedMap(u.Object, "data")
	if err != nil {
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range text {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	u.Object["data"] = data
	delete(u.Object, "stringData")
}
