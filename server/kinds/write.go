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

	"github.com/hykube/hykube/internal/fieldnames"
	"github.com/hykube/hykube/internal/lang"
)

// write is a request with an object, or a part of one, in its body. As for custom resources, it handles unknown fields
// by fieldValidation: Strict rejects them, Warn drops them with a warning, Ignore drops them.
//
// It never drops two kinds of unknown fields, which validation rejects in every mode. The first are those of lifecycle,
// and Terraform's meta-arguments in spec, because they are safeguards: with a misspelled preventDestroy, a plan might
// destroy. The second are arguments that the stored object already has, because another version of the provider knows
// them. A user who changes another argument does not mean to unset them.
type write struct {
	kind *served
	// ctx is the context of the request, and namespace is the namespace in its path.
	ctx       context.Context //nolint:containedctx // a decoder gets none
	namespace string
	// validation is the query parameter fieldValidation.
	validation string
	// stored returns the stored object; nil if the request creates one.
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

// pruneSpec removes unknown arguments and returns those that it removed.
func (w *write) pruneSpec(u *unstructured.Unstructured) ([]fieldnames.Unknown, error) {
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
	var dropped []fieldnames.Unknown
	for _, f := range unknown {
		steps, ok := pathSteps(f.Path)
		if !ok || len(steps) == 0 {
			continue
		}
		if _, exists := valueAt(before, steps); exists {
			continue
		}
		// The result of an expression is not part of the object, so there is nothing to drop.
		last := len(steps) - 1
		name, named := steps[last].(string)
		if last == 0 && lang.IsMetaArgument(name) {
			continue
		}
		within, _ := valueAt(u.Object["spec"], steps[:last])
		object, ok := within.(map[string]any)
		if _, exists := object[name]; ok && named && exists {
			delete(object, name)
			dropped = append(dropped, f)
		}
	}
	return dropped, nil
}

// requestDecoder decodes a request body. It drops unknown fields, and returns them in an error if the client uses
// Strict or Warn.
type requestDecoder struct {
	delegate runtime.Decoder
	kind     *served
	write    *write
	gv       runtime.GroupVersioner
}

func (d requestDecoder) Decode(data []byte, defaults *kschema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *kschema.GroupVersionKind, error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		return metainternalversionscheme.Codecs.DecoderToVersion(d.delegate, d.gv).Decode(data, defaults, into)
	}
	// A missing kind and version must be distinguishable from a wrong one.
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

// unknown returns the unknown fields of spec and lifecycle. Unless the client uses Strict, it removes those of spec.
func (d requestDecoder) unknown(u *unstructured.Unstructured, patched bool) ([]fieldnames.Unknown, error) {
	if d.write.validation != metav1.FieldValidationStrict {
		return d.write.pruneSpec(u)
	}
	// The handler would put the whole patched object into an error about a patch. Validation reports the same fields
	// without it.
	if patched {
		return nil, nil
	}
	return append(d.kind.unknownSpec(d.write.ctx, d.write.namespace, u), d.kind.unknownLifecycle(u)...), nil
}
