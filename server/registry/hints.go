package registry

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fieldnames"
)

// WithPatchHints rejects a server-side apply or a merge patch of a fixed kind with unknown fields or values of another
// type. Its error is that of a create: the path of each field, and the name of a similar field. Without it, the error
// of the merge of managed fields has neither, and that of a patch prints the whole patch as a Go map. A patch may have
// unknown fields unless its field validation is Strict. WithPatchHints does not check a body of more than maxBytes
// bytes.
func WithPatchHints(next http.Handler, codecs Codecs, maxBytes int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, ok := genericapirequest.RequestInfoFrom(r.Context())
		if !ok || info.Verb != "patch" || info.APIGroup != v1alpha1.GroupName {
			next.ServeHTTP(w, r)
			return
		}
		media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		var check func(body []byte) error
		switch types.PatchType(media) {
		case types.ApplyYAMLPatchType:
			check = func(body []byte) error { return decodingError(codecs.Scheme, body) }
		case types.MergePatchType, types.StrategicMergePatchType:
			strict := r.URL.Query().Get("fieldValidation") == metav1.FieldValidationStrict
			check = func(body []byte) error { return patchError(codecs.Scheme, info, body, strict) }
		default:
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBytes))
		r.Body = partlyRead{io.MultiReader(bytes.NewReader(body), &failing{err}, r.Body), r.Body}
		if refused := check(body); refused != nil && err == nil {
			responsewriters.ErrorNegotiated(refused, codecs.Factory,
				schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}, w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// partlyRead is a body with the bytes that were already read in front of it.
type partlyRead struct {
	io.Reader
	io.Closer
}

// failing returns the error with which the first read of a body ended; io.EOF for nil.
type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	return 0, io.EOF
}

// decodingError returns an error if an object has fields that its Go type lacks, or values of another type. It returns
// nil if the body is not such an object.
func decodingError(scheme *runtime.Scheme, body []byte) error {
	var object map[string]any
	raw, err := yaml.YAMLToJSON(body)
	if err != nil || json.Unmarshal(raw, &object) != nil {
		return nil
	}
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	gvk := schema.FromAPIVersionAndKind(version, kind)
	typed, err := scheme.New(gvk)
	if err != nil {
		return nil
	}
	var errs []error
	for _, u := range fieldnames.Check(object, reflect.TypeOf(typed)) {
		errs = append(errs, u)
	}
	refused := valuesError(object, reflect.TypeOf(typed))
	if refused == nil {
		refused = json.Unmarshal(raw, typed)
	}
	if len(errs) > 0 {
		refused = runtime.NewStrictDecodingError(errs)
	}
	return cannotBeHandled(gvk, refused)
}

// patchError returns an error if a merge patch has values of another type or, if strict is true, unknown fields. The
// error is Invalid, as that of Kubernetes' own servers. It returns nil if the body is no object.
func patchError(scheme *runtime.Scheme, info *genericapirequest.RequestInfo, body []byte, strict bool) error {
	gvk, typed := typeOf(scheme, info)
	var patch map[string]any
	if typed == nil || yaml.Unmarshal(body, &patch) != nil {
		return nil
	}
	refused, errs := valuesError(patch, typed), []error(nil)
	for _, u := range fieldnames.Check(patch, typed) {
		// no directive, such as $patch
		if name := u.Path[strings.LastIndexByte(u.Path, '.')+1:]; strict && !strings.HasPrefix(name, "$") {
			errs = append(errs, u)
		}
	}
	if len(errs) > 0 {
		refused = runtime.NewStrictDecodingError(errs)
	}
	if refused == nil {
		return nil
	}
	return apierrors.NewInvalid(gvk.GroupKind(), info.Name,
		field.ErrorList{field.Invalid(field.NewPath("patch"), field.OmitValueType{}, refused.Error())})
}

// typeOf returns the Go type of the objects of a resource; nil if the version does not have it.
func typeOf(scheme *runtime.Scheme, info *genericapirequest.RequestInfo) (schema.GroupVersionKind, reflect.Type) {
	if info.Subresource == scaleSubresource {
		return scaleKind, reflect.TypeFor[autoscalingv1.Scale]()
	}
	gv := schema.GroupVersion{Group: info.APIGroup, Version: info.APIVersion}
	for kind, t := range scheme.KnownTypes(gv) {
		if plural, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind)); plural.Resource == info.Resource {
			return gv.WithKind(kind), t
		}
	}
	return schema.GroupVersionKind{}, nil
}

// valuesError returns an error that names the fields whose values a type cannot have; nil if there are none.
func valuesError(object map[string]any, t reflect.Type) error {
	var texts []string
	for _, m := range fieldnames.CheckValues(object, t) {
		texts = append(texts, m.Error())
	}
	if len(texts) == 0 {
		return nil
	}
	return errors.New(strings.Join(texts, ", "))
}

// cannotBeHandled returns the error of a create that cannot decode its object; nil for a nil cause.
func cannotBeHandled(gvk schema.GroupVersionKind, cause error) error {
	if cause == nil {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", gvk.Kind, gvk.Version,
		gvk.Kind, cause))
}

// WithHints returns a serializer whose errors about unknown fields suggest similar fields, and whose errors about
// values name the field and the expected form.
func WithHints(s runtime.NegotiatedSerializer, scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	return hintingSerializer{s, scheme}
}

type hintingSerializer struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// DecoderToVersion returns a decoder for request bodies.
func (s hintingSerializer) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return hinting{s.NegotiatedSerializer.DecoderToVersion(decoder, gv), s.scheme}
}

// hinting is a decoder that adds suggestions to errors about unknown fields, and replaces errors about values, which
// have the names of Go types.
type hinting struct {
	runtime.Decoder
	scheme *runtime.Scheme
}

func (d hinting) Decode(data []byte, defaults *schema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if err == nil || gvk == nil {
		return obj, gvk, err
	}
	typed, terr := d.scheme.New(*gvk)
	var object map[string]any
	if terr != nil || yaml.Unmarshal(data, &object) != nil {
		return obj, gvk, err
	}
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok {
		return obj, gvk, cmp.Or(valuesError(object, reflect.TypeOf(typed)), err)
	}
	hints := map[string]error{} // by the text of the decoder's error, which has no type
	for _, u := range fieldnames.Check(object, reflect.TypeOf(typed)) {
		hints[fieldnames.Unknown{Path: u.Path}.Error()] = u
	}
	errs := strict.Errors()
	for i, e := range errs {
		if hint := hints[e.Error()]; hint != nil {
			errs[i] = hint
		}
	}
	return obj, gvk, runtime.NewStrictDecodingError(errs)
}
