package kinds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
)

// patchTypes returns the patch types that a kind without Go types supports: as for custom resources, no strategic
// merge.
func patchTypes() []string {
	return []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
}

// ServeHTTP serves all requests below /apis/PROVIDER.hykube.io, after authentication and authorization. It returns 404
// for other paths.
func (k *Kinds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	if len(parts) < 2 || parts[0] != "apis" || !isProviderGroup(parts[1]) {
		http.NotFound(w, r)
		return
	}
	info, ok := request.RequestInfoFrom(r.Context())
	switch {
	case !ok:
		k.fail(w, r, apierrors.NewInternalError(
			fmt.Errorf("no RequestInfo in the context: the server's filters did not run")))
	case !info.IsResourceRequest:
		k.serveDiscovery(w, r, parts)
	default:
		k.serveResource(w, r, info)
	}
}

// isProviderGroup reports whether a group is a provider's, installed or not.
func isProviderGroup(group string) bool {
	p, ok := v1alpha1.ProviderOfGroup(group)
	return ok && p != "" && !strings.Contains(p, ".")
}

func (k *Kinds) serveResource(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) {
	s, serving, done, err := k.acquire(info)
	if err != nil {
		k.fail(w, r, err)
		return
	}
	defer done()
	if info.Verb == "watch" {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		r = r.WithContext(ctx)
	}
	if writes(info.Verb) {
		if err := limitKeys(r); err != nil {
			k.fail(w, r, err)
			return
		}
		r = r.WithContext(withParsedSpec(r.Context()))
	}
	h, err := k.handler(s, serving, info, r)
	if err != nil {
		k.fail(w, r, err)
		return
	}
	if h == nil {
		k.fail(w, r, apierrors.NewMethodNotSupported(s.GVR.GroupResource(), info.Verb))
		return
	}
	metrics.InstrumentHandlerFunc(strings.ToUpper(info.Verb), s.GVR.Group, s.GVR.Version, metricsResource,
		info.Subresource,
		metrics.CleanScope(info), metrics.APIServerComponent, false, "", h)(w, r)
}

// acquire returns the kind of a request and its handlers. If the kind was just replaced, it finds the new one, which is
// served before the old one ends.
func (k *Kinds) acquire(info *request.RequestInfo) (*served, *serving, func(), error) {
	for {
		s, err := k.find(info)
		if err != nil {
			return nil, nil, nil, err
		}
		serving, done, err := s.acquire(info.Verb == "watch")
		switch {
		case errors.Is(err, errEnded):
			continue
		case err != nil:
			k.log.Error("kind cannot be served", "kind", s.GVK.Kind, "error", err)
			return nil, nil, nil, apierrors.NewInternalError(err)
		}
		return s, serving, done, nil
	}
}

// find returns the kind of a request.
func (k *Kinds) find(info *request.RequestInfo) (*served, error) {
	g := k.snapshot.Load().groups[info.APIGroup]
	if g == nil {
		provider, _ := v1alpha1.ProviderOfGroup(info.APIGroup)
		return nil, k.notInstalled(provider)
	}
	s := g.byResource[info.Resource]
	if s == nil || info.APIVersion != g.version.Version {
		return nil, notFound(info.APIGroup, info.Resource,
			fmt.Sprintf("provider %q %s has no resource %q in version %s of its group; see `kubectl api-resources --api-group=%s`",
				g.provider.Name, g.provider.Version, info.Resource, info.APIVersion, info.APIGroup))
	}
	if info.Subresource != "" && !slices.Contains(subresources(s.Mode), info.Subresource) {
		return nil, notFound(info.APIGroup, info.Resource,
			fmt.Sprintf("%s have no subresource %q", info.Resource, info.Subresource))
	}
	if v1alpha1.IsVirtualName(info.Name) && (writes(info.Verb) || info.Verb == "delete") &&
		info.Subresource != taintSubresource && info.Subresource != resolveSubresource {
		err := apierrors.NewMethodNotSupported(s.GVR.GroupResource(), info.Verb)
		err.ErrStatus.Message = fmt.Sprintf(
			"%s %q is an instance of a ResourceSet: change the template, the count or the keys of the set instead",
			s.GVK.Kind, info.Name)
		if v1alpha1.OwnerKind(info.Name) == "Module" {
			err.ErrStatus.Message = fmt.Sprintf(
				"%s %q is a resource of a Module: change the files or the inputs of the Module instead", s.GVK.Kind,
				info.Name)
		}
		return nil, err
	}
	// As for Kubernetes' own kinds, this combination of path and verb does not exist.
	if onCollection := info.Name == ""; info.Subresource == "" &&
		(info.Verb == "create" && !onCollection || (info.Verb == "update" || info.Verb == "patch") && onCollection) {
		return nil, apierrors.NewMethodNotSupported(s.GVR.GroupResource(), info.Verb)
	}
	if info.Namespace == "" && info.Verb != "list" && info.Verb != "watch" {
		message := fmt.Sprintf("%s are namespaced, and the request has no namespace", info.Resource)
		if info.Name != "" {
			return nil, notFound(info.APIGroup, info.Resource, message)
		}
		// As for Kubernetes' own kinds, the path exists only for list and watch.
		err := apierrors.NewMethodNotSupported(s.GVR.GroupResource(), info.Verb)
		err.ErrStatus.Message = message
		return nil, err
	}
	return s, nil
}

func (k *Kinds) notInstalled(provider string) error {
	if _, expected := k.expected.Load(provider); expected {
		return apierrors.NewServiceUnavailable(
			fmt.Sprintf("the kinds of provider %q are not served now; `kubectl describe provider %s` says why",
				provider, provider))
	}
	group := v1alpha1.ProviderGroup(provider)
	return notFound(group, "", fmt.Sprintf(
		"no provider %q is installed, so the server has no group %q; see `kubectl get providers`", provider, group))
}

func notFound(group, resource, message string) error {
	err := apierrors.NewNotFound(kschema.GroupResource{Group: group, Resource: resource}, "")
	err.ErrStatus.Message = message
	return err
}

// handler returns the handler of a request, or nil if the verb is not supported.
func (k *Kinds) handler(s *served, serving *serving, info *request.RequestInfo,
	r *http.Request) (http.HandlerFunc, error) {
	switch info.Subresource {
	case resolveSubresource, stateSubresource, taintSubresource:
		return k.verbHandler(s, serving, info), nil
	}
	if !writes(info.Verb) {
		return k.verbHandler(s, serving, info), nil
	}
	if info.Verb != "patch" {
		if _, err := negotiation.NegotiateInputSerializer(r, false, bodies{negotiated{kind: s}}); err != nil {
			return nil, err
		}
	}
	if info.Subresource == "" {
		if err := refuseTooLarge(s, info, r); err != nil {
			return nil, err
		}
	}
	// The decoder of a body depends on the request but does not receive it. So make one for this request.
	own := *serving
	own.decodeFor(s, newWrite(s, serving.object, info, r))
	return k.verbHandler(s, &own, info), nil
}

// writes reports whether requests of a verb have an object, or a part of one, in the body.
func writes(verb string) bool { return verb == "create" || verb == "update" || verb == "patch" }

// verbHandler returns the handler of a verb, or nil if the verb is not supported.
func (k *Kinds) verbHandler(s *served, serving *serving, info *request.RequestInfo) http.HandlerFunc {
	admit := k.config.Admission
	switch info.Subresource {
	case stateSubresource:
		if info.Verb != "get" {
			return nil
		}
		return k.serveState(s, serving, info.Name)
	case resolveSubresource:
		if info.Verb != "create" {
			return nil
		}
		return k.serveRecord(s, serving, info, k.resolve, k.forgetRecord)
	case taintSubresource:
		if info.Verb != "create" && info.Verb != "delete" {
			return nil
		}
		return k.serveRecord(s, serving, info, k.taint(info.Verb == "create"), nil)
	case undeleteSubresource:
		if info.Verb != "create" {
			return nil
		}
		return k.serveUndelete(s, serving, info)
	case statusSubresource:
		switch info.Verb {
		case "get":
			return handlers.GetResource(serving.status, serving.statusScope)
		case "update":
			return handlers.UpdateResource(serving.status, serving.statusScope, admit)
		case "patch":
			return handlers.PatchResource(serving.status, serving.statusScope, admit, patchTypes())
		}
		return nil
	}
	switch info.Verb {
	case "get":
		return handlers.GetResource(serving.object, serving.objectScope)
	case "list":
		return handlers.ListResource(serving.object, serving.object, serving.objectScope, false, minRequestTimeout)
	case "watch":
		return handlers.ListResource(serving.object, serving.object, serving.objectScope, true, minRequestTimeout)
	case "create":
		return handlers.CreateResource(serving.object, serving.objectScope, admit)
	case "update":
		return handlers.UpdateResource(serving.object, serving.objectScope, admit)
	case "patch":
		return handlers.PatchResource(serving.object, serving.objectScope, admit, patchTypes())
	case "delete":
		return handlers.DeleteResource(serving.object, true, serving.objectScope, admit)
	case "deletecollection":
		return handlers.DeleteCollection(serving.object, true, serving.objectScope, admit)
	}
	return nil
}

// serveState returns the raw provider state, including secrets. The permission for the subresource protects it.
func (k *Kinds) serveState(s *served, serving *serving, name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		info, _ := request.RequestInfoFrom(r.Context())
		obj, err := serving.object.Get(request.WithNamespace(r.Context(), info.Namespace), name, &metav1.GetOptions{})
		if err != nil {
			k.fail(w, r, err)
			return
		}
		var state []byte
		if k.config.Infrastructure.State != nil {
			if state, err = k.config.Infrastructure.State(r.Context(), obj.(metav1.Object), s.Kind); err != nil {
				k.fail(w, r, err)
				return
			}
		}
		if state == nil {
			k.fail(w, r, notFound(s.GVR.Group, s.GVR.Resource+"/"+stateSubresource,
				fmt.Sprintf("%s %q has no state: %s", s.GVK.Kind, name, map[v1alpha1.Mode]string{
					v1alpha1.ModeManaged: "nothing was created for it yet; make a Plan and apply it",
					v1alpha1.ModeData:    "it was not read yet; make a Plan to read it",
				}[s.Mode])))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(state)
	}
}

// fail writes an error response in the format that the client accepts.
func (k *Kinds) fail(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, k.codecs.meta, kschema.GroupVersion{}, w, r)
}
