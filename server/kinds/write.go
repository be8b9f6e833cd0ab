package kinds

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/internal/lang"
)

// write is a request that brings an object, or a part of one. It decides about fields that the object's kind does not have, as
// Kubernetes does for custom resources: Strict refuses them, Warn drops them and says so, Ignore drops them.
//
// Two kinds of unknown fields are never dropped, and validation refuses them in every mode. Those of lifecycle, and Terraform's
// meta-arguments in spec, because they are guards: without a misspelled preventDestroy, a plan may destroy. And arguments that
// the stored object has already, because another version of the provider knows them: who changes another argument did not ask to
// unset them.
type write struct {
	kind *served
	// ctx is that of the request, and namespace the one that its path names.
	ctx       context.Context //nolint:containedctx // a decoder gets none
	namespace string
	// validation is the query parameter fieldValidation.
	validation string
	// stored reads the object as it is; nil when the request creates one.
	stored func() (*unstructured.Unstructured, error)
}

func newWrite(s *served, objects *objectREST, info *request.RequestInfo, r *http.Request) *write {
	w := &write{kind: s, ctx: r.Context(), namespace: info.Namespace, validation: r.URL.Query().Get("fieldValidation")}
	if w.validation == "" {
		w.validation = metav1.FieldValidationWarn
	}
	if info.Verb == "create" {
		return w
	}
	ctx := request.WithNamespace(r.Context(), info.Namespace)
	w.stored = func() (*unstructured.Unstructured, error) {
		obj, err := objects.Get(ctx, info.Name, &metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return obj.(*unstructured.Unstructured), nil
	}
	return w
}

// pruneSpec drops unknown arguments, and names those that it dropped.
func (w *write) pruneSpec(u *unstructured.Unstructured) ([]unknownField, error) {
	unknown := w.kind.unknownSpec(w.ctx, w.namespace, u)
	if len(unknown) == 0 {
		return nil, nil
	}
	var before any
	if w.stored != nil {
		old, err := w.stored()
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil {
			before = old.Object["spec"]
		}
	}
	var dropped []unknownField
	for _, f := range unknown {
		steps, ok := pathSteps(f.path)
		if !ok || len(steps) == 0 {
			continue
		}
		if _, there := at(before, steps); there {
			continue
		}
		// What an expression gives is nowhere in the object, so that it cannot be dropped.
		last := len(steps) - 1
		name, named := steps[last].(string)
		if last == 0 && lang.IsMetaArgument(name) {
			continue
		}
		within, _ := at(u.Object["spec"], steps[:last])
		object, ok := within.(map[string]any)
		if _, there := object[name]; ok && named && there {
			delete(object, name)
			dropped = append(dropped, f)
		}
	}
	return dropped, nil
}

// requestDecoder decodes what a client sent. It drops the fields that no object has, and names them in an error when the client
// asked to be strict or to be warned.
type requestDecoder struct {
	delegate runtime.Decoder
	kind     *served
	write    *write
	gv       runtime.GroupVersioner
}

func (d requestDecoder) Decode(data []byte, defaults *kschema.GroupVersionKind, into runtime.Object) (runtime.Object, *kschema.GroupVersionKind, error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return metainternalversionscheme.Codecs.DecoderToVersion(d.delegate, d.gv).Decode(data, defaults, into)
	}
	// The kind and version that a client left out must be told from those it got wrong.
	decoded := &unstructured.Unstructured{}
	obj, gvk, err := d.delegate.Decode(data, defaults, decoded)
	var problems []error
	if err != nil {
		s, ok := runtime.AsStrictDecodingError(err)
		if !ok || obj == nil {
			return nil, gvk, err
		}
		problems = s.Errors()
	}
	u.Object = decoded.Object
	unknown, err := d.kind.prune(u)
	if err != nil {
		return nil, gvk, err
	}
	if d.write != nil {
		more, err := d.unknown(u, defaults == nil)
		if err != nil {
			return nil, gvk, err
		}
		unknown = append(unknown, more...)
	}
	for _, f := range unknown {
		problems = append(problems, f)
	}
	if d.write == nil || d.write.validation == metav1.FieldValidationIgnore || len(problems) == 0 {
		return u, gvk, nil
	}
	return u, gvk, runtime.NewStrictDecodingError(problems)
}

// unknown names the unknown fields of spec and lifecycle, and drops those of spec unless the client asked to be strict.
func (d requestDecoder) unknown(u *unstructured.Unstructured, patched bool) ([]unknownField, error) {
	if d.write.validation != metav1.FieldValidationStrict {
		return d.write.pruneSpec(u)
	}
	// The handler would wrap an error about a patch in the whole patched object; what validation says of the same fields is
	// clear by itself.
	if patched {
		return nil, nil
	}
	return append(d.kind.unknownSpec(d.write.ctx, d.write.namespace, u), d.kind.unknownLifecycle(u)...), nil
}
