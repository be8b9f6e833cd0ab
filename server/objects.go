package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/util/responsewriter"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
	"github.com/hykube/hykube/server/speculation"
)

// maxConcurrentChecks is the maximum number of objects of one upload that are checked at once.
const maxConcurrentChecks = 8

// objects checks a chunk of the objects of a speculative plan as if its author recorded them. It stores them for the
// plan.
func (s *Server) objects(ctx context.Context, p *v1alpha1.Plan,
	chunk v1alpha1.PlanObjectsSpec) ([]v1alpha1.PlanObjectResult, int, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, 0, errors.New("check objects of plan: the request has no user")
	}
	ns, err := s.config.client.CoreV1().Namespaces().Get(ctx, p.Namespace, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, 0, err
	}
	c := &uploadChecker{handler: registry.WithPatchHints(s.generic.Handler.Director, s.config.codecs,
		kinds.MaxRequestBodyBytes), authorizer: s.config.generic.Authorization.Authorizer, resource: s.resourceOf,
		who: who, plan: p, chunk: &chunk,
		terminating: err == nil && ns.DeletionTimestamp != nil}
	n := len(chunk.Objects)
	results := make([]v1alpha1.PlanObjectResult, n+len(chunk.Prune))
	docs := make([]*ledger.Document, len(results))
	var work sync.WaitGroup
	slots := make(chan struct{}, maxConcurrentChecks)
	for i := range results {
		slots <- struct{}{}
		work.Go(func() {
			defer func() { <-slots }()
			err := bug.Guard(s.log, "check the objects of a plan", func() (err error) {
				if i < n {
					results[i], docs[i], err = c.apply(ctx, chunk.Objects[i].Raw)
				} else {
					results[i], docs[i], err = c.remove(ctx, chunk.Prune[i-n])
				}
				return err
			})
			if err != nil {
				results[i], docs[i] = v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectRefused, Error: statusOf(err)},
					nil
			}
		})
	}
	work.Wait()
	kept := make([]ledger.Document, 0, len(docs))
	for _, d := range docs {
		if d != nil {
			kept = append(kept, *d)
		}
	}
	uploaded, err := s.wiring.SaveObjects(ctx, p.UID, chunk.Chunk, kept, chunk.Complete)
	return results, uploaded, err
}

func statusOf(err error) *metav1.Status {
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok {
		return new(s.Status())
	}
	return new(apierrors.NewInternalError(err).Status())
}

// resourceOf returns the resource of a kind for RBAC and URLs.
func (s *Server) resourceOf(gvk kschema.GroupVersionKind) (gvr kschema.GroupVersionResource, namespaced, ok bool) {
	if kind, ok := s.kinds.Kind(gvk); ok {
		return kind.GVR, true, true
	}
	for _, r := range fixedResources {
		if r.kind == gvk {
			return gvk.GroupVersion().WithResource(r.resource), r.namespaced, true
		}
	}
	return kschema.GroupVersionResource{}, false, false
}

// fixedResources lists the kinds that files may contain in addition to the providers' kinds.
var fixedResources = []struct {
	kind       kschema.GroupVersionKind
	resource   string
	namespaced bool
}{
	{kschema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, "namespaces", false},
	{kschema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", true},
	{kschema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, "configmaps", true},
	{kschema.GroupVersionKind{Version: "v1", Kind: "ResourceQuota"}, "resourcequotas", true},
	{v1alpha1.SchemeGroupVersion.WithKind("Provider"), "providers", false},
	{v1alpha1.SchemeGroupVersion.WithKind("ProviderConfig"), "providerconfigs", true},
	{v1alpha1.SchemeGroupVersion.WithKind("Plan"), "plans", true},
	{v1alpha1.SchemeGroupVersion.WithKind("ResourceSet"), "resourcesets", true},
	{v1alpha1.SchemeGroupVersion.WithKind("Module"), "modules", true},
	{v1alpha1.SchemeGroupVersion.WithKind("Stack"), "stacks", true},
	{v1alpha1.SchemeGroupVersion.WithKind("Notification"), "notifications", true},
	{v1alpha1.SchemeGroupVersion.WithKind("PlanPolicy"), "planpolicies", true},
	{v1alpha1.SchemeGroupVersion.WithKind("ClusterPlanPolicy"), "clusterplanpolicies", false},
	{kschema.GroupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "FlowSchema"}, "flowschemas",
		false},
	{kschema.GroupVersionKind{Group: "flowcontrol.apiserver.k8s.io", Version: "v1", Kind: "PriorityLevelConfiguration"},
		"prioritylevelconfigurations", false},
	{kschema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "clusterroles",
		false},
	{kschema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
		"clusterrolebindings", false},
	{kschema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, "roles", true},
	{kschema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"}, "rolebindings",
		true},
}

// uploadChecker checks the objects of one upload with dry-run requests.
type uploadChecker struct {
	// handler serves requests that are already authenticated and authorized.
	handler    http.Handler
	authorizer authorizer.Authorizer
	resource   func(kschema.GroupVersionKind) (gvr kschema.GroupVersionResource, namespaced, ok bool)
	who        user.Info
	plan       *v1alpha1.Plan
	chunk      *v1alpha1.PlanObjectsSpec
	// terminating is true if the plan's namespace is being deleted, which deletes all its objects.
	terminating bool
}

// objectPath is the resource, namespace and name of an object, which need not exist.
type objectPath struct {
	gvr             kschema.GroupVersionResource
	namespace, name string
}

func (p objectPath) path() string {
	root := "/apis/" + p.gvr.Group
	if p.gvr.Group == "" {
		root = "/api"
	}
	if p.namespace != "" {
		return fmt.Sprintf("%s/%s/namespaces/%s/%s/%s", root, p.gvr.Version, p.namespace, p.gvr.Resource, p.name)
	}
	return fmt.Sprintf("%s/%s/%s/%s", root, p.gvr.Version, p.gvr.Resource, p.name)
}

func (c *uploadChecker) objectPath(gvk kschema.GroupVersionKind, namespace, name string) (objectPath, error) {
	gvr, namespaced, ok := c.resource(gvk)
	switch {
	case !ok:
		return objectPath{}, apierrors.NewBadRequest(fmt.Sprintf("this server serves no kind %q in %q", gvk.Kind,
			gvk.GroupVersion()))
	case namespaced && namespace == "":
		return objectPath{}, apierrors.NewBadRequest(fmt.Sprintf("%s %q has no namespace", gvk.Kind, name))
	case name == "" || strings.ContainsAny(name+namespace, "/?#%"):
		return objectPath{}, apierrors.NewBadRequest(fmt.Sprintf("%s %q in the namespace %q: the name is not valid",
			gvk.Kind, name, namespace))
	case !namespaced:
		namespace = ""
	}
	return objectPath{gvr, namespace, name}, nil
}

// apply returns the result that a server-side apply of an object would have.
func (c *uploadChecker) apply(ctx context.Context,
	raw []byte) (result v1alpha1.PlanObjectResult, doc *ledger.Document, err error) {
	sent := &unstructured.Unstructured{}
	if err := sent.UnmarshalJSON(raw); err != nil {
		return result, nil, apierrors.NewBadRequest(err.Error())
	}
	at, err := c.objectPath(sent.GroupVersionKind(), sent.GetNamespace(), sent.GetName())
	if err != nil {
		return result, nil, err
	}
	if mode, _ := v1alpha1.ParseKind(sent.GetKind()); mode != v1alpha1.ModeEphemeral &&
		at.namespace != c.plan.Namespace && isResource(at) {
		return result, nil, apierrors.NewBadRequest(
			fmt.Sprintf("%s %q is in the namespace %q, but plan %q is in the namespace %q: make a plan in the object's namespace",
				sent.GetKind(), at.name, at.namespace, c.plan.Name, c.plan.Namespace))
	}
	writable, err := c.mayWrite(ctx, at, "patch")
	if err != nil {
		return result, nil, err
	}
	before, err := c.get(ctx, at)
	if err != nil {
		return result, nil, err
	}
	if before != nil && (c.terminating && at.namespace == c.plan.Namespace || before.GetDeletionTimestamp() != nil) &&
		!c.plan.Spec.Destroy && !c.plan.Spec.RefreshOnly {
		return result, nil, beingDeleted(at)
	}
	if before == nil && writable {
		// An apply that creates an object needs both verbs.
		if writable, err = c.may(ctx, at, "create"); err != nil {
			return result, nil, err
		}
	}
	after, texts, owned, err := c.patch(ctx, at, raw)
	if err != nil {
		return result, nil, err
	}
	result = v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectCreated, Warnings: texts, Conflicts: owned}
	if before != nil {
		result.Version = v1alpha1.ObjectVersion(before)
		result.Outcome = v1alpha1.ObjectConfigured
		if reflect.DeepEqual(content(before), content(after)) {
			result.Outcome = v1alpha1.ObjectUnchanged
		}
	}
	if !isResource(at) && result.Outcome != v1alpha1.ObjectUnchanged {
		result.Keys = changedKeys(before, after)
	}
	foreign := !writable && result.Outcome != v1alpha1.ObjectUnchanged
	if foreign && at.gvr.Group == v1alpha1.GroupName && at.gvr.Resource == "providerconfigs" {
		return result, nil, apierrors.NewForbidden(at.gvr.GroupResource(), at.name, fmt.Errorf(
			"user %q may not write it, and planning sends the changed configuration to the provider: ask for the verb \"patch\" on it, or do not change it", c.who.GetName()))
	}
	after.SetManagedFields(nil)
	object, err := after.MarshalJSON()
	if err != nil {
		return result, nil, err
	}
	return result, &ledger.Document{Object: object, Foreign: foreign}, nil
}

// patch applies an object in a dry run. It returns the object, warnings, and the fields that other managers own: the
// plan treats them as taken over, but recording them needs forceConflicts.
func (c *uploadChecker) patch(ctx context.Context, at objectPath,
	raw []byte) (after *unstructured.Unstructured, texts []string, owned []metav1.StatusCause, err error) {
	query := url.Values{"dryRun": {metav1.DryRunAll}, "fieldManager": {c.chunk.FieldManager},
		"fieldValidation": {metav1.FieldValidationStrict}}
	if c.chunk.ForceConflicts {
		query.Set("force", "true")
	}
	try := func() {
		recorder := &warnings{}
		after, err = c.request(warning.WithWarningRecorder(kinds.FollowedByPlan(ctx), recorder), http.MethodPatch, at,
			query, string(types.ApplyYAMLPatchType), raw)
		texts = recorder.texts
	}
	try()
	if owned = fieldConflicts(err); len(owned) > 0 {
		query.Set("force", "true")
		try()
	}
	return after, texts, owned, err
}

// beingDeleted returns the error for an object that is declared but marked for deletion: recording it would not keep
// it.
func beingDeleted(at objectPath) error {
	err := apierrors.NewConflict(at.gvr.GroupResource(), at.name,
		errors.New("it is being deleted, and recording it does not prevent that"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1alpha1.CauseBeingDeleted,
		Field: "metadata.deletionTimestamp", Message: "it is being deleted"}}
	return err
}

// isResource reports whether an object is of a provider's kind.
func isResource(at objectPath) bool {
	_, ok := v1alpha1.ProviderOfGroup(at.gvr.Group)
	return ok
}

// fieldConflicts returns the fields of an apply that other managers own. It returns nil if the error has another
// reason.
func fieldConflicts(err error) []metav1.StatusCause {
	refused, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsConflict(err) || refused.ErrStatus.Details == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(refused.ErrStatus.Details.Causes), func(c metav1.StatusCause) bool {
		return c.Type != metav1.CauseTypeFieldManagerConflict
	})
}

// remove returns the result that the deletion of an object would have.
func (c *uploadChecker) remove(ctx context.Context,
	ref v1alpha1.ObjectReference) (result v1alpha1.PlanObjectResult, doc *ledger.Document, err error) {
	at, err := c.objectPath(kschema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Namespace, ref.Name)
	if err != nil {
		return result, nil, err
	}
	writable, err := c.mayWrite(ctx, at, "delete")
	if err != nil {
		return result, nil, err
	}
	before, err := c.get(ctx, at)
	if err != nil {
		return result, nil, err
	}
	if before == nil || before.GetUID() != ref.UID {
		return result, nil, apierrors.NewConflict(at.gvr.GroupResource(), at.name,
			errors.New("it is gone, or another object has its name"))
	}
	object, err := before.MarshalJSON()
	if err != nil {
		return result, nil, err
	}
	return v1alpha1.PlanObjectResult{Outcome: v1alpha1.ObjectPruned, Version: v1alpha1.ObjectVersion(before)},
		&ledger.Document{Object: object, Pruned: true, Foreign: !writable}, nil
}

// mayWrite reports whether the user has the right to write an object. It returns an error if the user may not read it
// either.
func (c *uploadChecker) mayWrite(ctx context.Context, at objectPath, verb string) (bool, error) {
	if ok, err := c.may(ctx, at, verb); ok || err != nil {
		return ok, err
	}
	ok, err := c.may(ctx, at, "get")
	if err == nil && !ok {
		err = apierrors.NewForbidden(at.gvr.GroupResource(), at.name,
			fmt.Errorf("user %q has neither the verb %q nor \"get\" on it", c.who.GetName(), verb))
	}
	return false, err
}

func (c *uploadChecker) may(ctx context.Context, at objectPath, verb string) (bool, error) {
	decision, _, err := c.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: c.who, Verb: verb, Namespace: at.namespace, APIGroup: at.gvr.Group, APIVersion: at.gvr.Version,
		Resource: at.gvr.Resource, Name: at.name, ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	return false, err
}

// get returns an object, or nil if it does not exist.
func (c *uploadChecker) get(ctx context.Context, at objectPath) (*unstructured.Unstructured, error) {
	obj, err := c.request(ctx, http.MethodGet, at, nil, "", nil)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return obj, err
}

// request sends a request to the server's own handlers on behalf of the user.
func (c *uploadChecker) request(ctx context.Context, method string, at objectPath, query url.Values, contentType string,
	body []byte) (*unstructured.Unstructured, error) {
	ctx = speculation.With(ctx, c.chunk.FieldManager)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Path: at.path(), Verb: strings.ToLower(method),
		APIPrefix: strings.Split(at.path(), "/")[1],
		APIGroup:  at.gvr.Group, APIVersion: at.gvr.Version, Namespace: at.namespace, Resource: at.gvr.Resource,
		Name: at.name,
	})
	ctx = request.WithUser(ctx, c.who)
	r, err := http.NewRequestWithContext(ctx, method, at.path()+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("check %s %q: %w", at.gvr.Resource, at.name, err)
	}
	r.RequestURI = r.URL.RequestURI()
	r.Header.Set("Accept", runtime.ContentTypeJSON)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	w := responsewriter.NewInMemoryResponseWriter()
	c.handler.ServeHTTP(w, r)
	if w.RespCode() >= http.StatusBadRequest {
		status := metav1.Status{}
		if err := json.Unmarshal(w.Data(), &status); err != nil || status.Code == 0 {
			return nil, fmt.Errorf("check %s %q: the server responds with status %d", at.gvr.Resource, at.name,
				w.RespCode())
		}
		return nil, &apierrors.StatusError{ErrStatus: status}
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(w.Data()); err != nil {
		return nil, fmt.Errorf("check %s %q: %w", at.gvr.Resource, at.name, err)
	}
	return obj, nil
}

// warnings records the warnings of a handler.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// AddWarning implements warning.Recorder.
func (w *warnings) AddWarning(_, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// content returns the parts of an object that users write, without the fields that the server sets.
func content(u *unstructured.Unstructured) map[string]any {
	c := u.DeepCopy()
	c.SetManagedFields(nil)
	c.SetResourceVersion("")
	c.SetGeneration(0)
	unstructured.RemoveNestedField(c.Object, "status")
	annotations := c.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation) // kubectl apply's copy of its file
	delete(annotations, v1alpha1.AnnotationWriters)         // the server writes it
	c.SetAnnotations(annotations)
	if len(annotations) == 0 {
		c.SetAnnotations(nil)
	}
	return c.Object
}

// changedKeys returns the differences between two versions of an object: keys of data, or fields. before may be nil.
func changedKeys(before, after *unstructured.Unstructured) []string {
	old := map[string]any{}
	if before != nil {
		old = content(before)
	}
	var out []string
	var walk func(path string, depth int, a, b map[string]any)
	walk = func(path string, depth int, a, b map[string]any) {
		names := map[string]bool{}
		for k := range a {
			names[k] = true
		}
		for k := range b {
			names[k] = true
		}
		for _, k := range slices.Sorted(maps.Keys(names)) {
			x, xok := a[k].(map[string]any)
			y, yok := b[k].(map[string]any)
			switch {
			case reflect.DeepEqual(a[k], b[k]):
			case depth > 0 && (xok || a[k] == nil) && (yok || b[k] == nil):
				walk(path+k+".", depth-1, x, y)
			default:
				out = append(out, path+k)
			}
		}
	}
	next := content(after)
	if before == nil {
		delete(next, "type") // the type of a Secret, which its keys imply
	}
	for _, m := range []map[string]any{old, next} {
		delete(m, "apiVersion")
		delete(m, "kind")
		meta, _ := m["metadata"].(map[string]any)
		m["metadata"] = map[string]any{"labels": meta["labels"], "annotations": meta["annotations"]}
	}
	for _, data := range []string{"data", "binaryData"} {
		a, _ := old[data].(map[string]any)
		b, _ := next[data].(map[string]any)
		walk("", 0, a, b)
		delete(old, data)
		delete(next, data)
	}
	walk("", 2, old, next)
	return out
}

// adopting makes speculative updates of Secrets and ConfigMaps see the field ownership that `kubectl hykube apply`
// would set.
type adopting struct{ *registry.Held }

// Update implements rest.Updater.
func (r adopting) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, force bool, opts *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return r.Held.Update(ctx, name, speculation.Adopt(ctx, info), create, update, force, opts)
}

// adoptingConfigMaps serves ConfigMaps with their short name.
type adoptingConfigMaps struct{ adopting }

// ShortNames implements rest.ShortNamesProvider.
func (adoptingConfigMaps) ShortNames() []string { return []string{"cm"} }
