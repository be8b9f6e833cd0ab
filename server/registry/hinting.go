package registry

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/internal/fieldnames"
)

// WithHints returns a serializer whose errors about unknown fields also name the fields that may have been meant.
func WithHints(s runtime.NegotiatedSerializer, scheme *runtime.Scheme) runtime.NegotiatedSerializer {
	return hintingSerializer{s, scheme}
}

type hintingSerializer struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// DecoderToVersion returns a decoder of what clients send.
func (s hintingSerializer) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return hinting{s.NegotiatedSerializer.DecoderToVersion(decoder, gv), s.scheme}
}

// hinting is a decoder that adds to strict errors which fields may have been meant.
type hinting struct {
	runtime.Decoder
	scheme *runtime.Scheme
}

func (d hinting) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	strict, ok := runtime.AsStrictDecodingError(err)
	if !ok || gvk == nil {
		return obj, gvk, err
	}
	typed, terr := d.scheme.New(*gvk)
	var object map[string]any
	if terr != nil || yaml.Unmarshal(data, &object) != nil {
		return obj, gvk, err
	}
	hints := map[string]error{} // by the decoder's own error
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
