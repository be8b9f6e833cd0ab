package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/versioning"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// codecs holds the parts of encoding and decoding that all kinds share.
type codecs struct {
	// scheme has the types of responses and options that are not kinds of a provider: Status, WatchEvent, options.
	scheme *runtime.Scheme
	// meta encodes errors and discovery documents.
	meta serializer.CodecFactory
	// media lists the supported encodings. Protobuf supports only Status, Table and metadata, because the providers'
	// kinds have no protobuf form.
	media []runtime.SerializerInfo
	// standard lists the encodings of the providers' kinds.
	standard []runtime.SerializerInfo
}

func newCodecs() codecs {
	scheme := runtime.NewScheme()
	v1 := kschema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})

	creater, typer := creater{}, typer{scheme}
	newJSON := func(o kjson.SerializerOptions) runtime.Serializer {
		return kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, creater, typer, o)
	}
	standard := []runtime.SerializerInfo{
		{
			MediaType: "application/json", MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
			Serializer:       newJSON(kjson.SerializerOptions{StreamingCollectionsEncoding: true}),
			PrettySerializer: newJSON(kjson.SerializerOptions{Pretty: true}),
			StrictSerializer: newJSON(kjson.SerializerOptions{Strict: true, StreamingCollectionsEncoding: true}),
			StreamSerializer: &runtime.StreamSerializerInfo{
				EncodesAsText: true, Serializer: newJSON(kjson.SerializerOptions{}), Framer: kjson.Framer,
			},
		},
		{
			MediaType: "application/yaml", MediaTypeType: "application", MediaTypeSubType: "yaml", EncodesAsText: true,
			Serializer:       newJSON(kjson.SerializerOptions{Yaml: true}),
			StrictSerializer: newJSON(kjson.SerializerOptions{Yaml: true, Strict: true}),
		},
	}
	pb := runtime.SerializerInfo{
		MediaType: "application/vnd.kubernetes.protobuf", MediaTypeType: "application",
		MediaTypeSubType: "vnd.kubernetes.protobuf",
		Serializer:       protobuf.NewSerializer(creater, typer),
		StreamSerializer: &runtime.StreamSerializerInfo{
			Serializer: protobuf.NewRawSerializer(creater, typer), Framer: protobuf.LengthDelimitedFramer,
		},
	}
	return codecs{
		scheme: scheme, meta: serializer.NewCodecFactory(scheme), standard: standard, media: append(standard[:2:2], pb),
	}
}

// creater creates empty objects.
type creater struct{}

func (creater) New(kind kschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// typer reads the kind of a provider's object from the object itself, and that of other objects from the scheme.
type typer struct{ scheme *runtime.Scheme }

func (t typer) ObjectKinds(obj runtime.Object) ([]kschema.GroupVersionKind, bool, error) {
	if _, ok := obj.(runtime.Unstructured); !ok {
		return t.scheme.ObjectKinds(obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	switch {
	case gvk.Kind == "":
		return nil, false, runtime.NewMissingKindErr("object has no kind field")
	case gvk.Version == "":
		return nil, false, runtime.NewMissingVersionErr("object has no apiVersion field")
	}
	return []kschema.GroupVersionKind{gvk}, false, nil
}

func (t typer) Recognizes(gvk kschema.GroupVersionKind) bool { return t.scheme.Recognizes(gvk) }

// converter converts between versions, of which there is only one. If copies is true, it returns copies, for callers
// that change the result.
type converter struct{ copies bool }

func (converter) ConvertFieldLabel(_ kschema.GroupVersionKind, label, value string) (string, string, error) {
	switch label {
	case "metadata.name", "metadata.namespace":
		return label, value, nil
	default:
		return "", "", fmt.Errorf("field label not supported: %s; objects can be selected by metadata.name, metadata.namespace and labels", label)
	}
}

func (converter) Convert(in, out, _ any) error {
	i, iok := in.(*unstructured.Unstructured)
	o, ook := out.(*unstructured.Unstructured)
	if !iok || !ook {
		return fmt.Errorf("convert %T to %T: not possible", in, out)
	}
	o.Object = i.DeepCopy().Object
	return nil
}

func (c converter) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if c.copies {
		return in.DeepCopyObject(), nil
	}
	return in, nil
}

// noDefaults is an empty defaulter: the provider sets the defaults.
type noDefaults struct{}

func (noDefaults) Default(runtime.Object) {}

// negotiated encodes responses and decodes requests of one kind.
type negotiated struct {
	kind *served
	// write is the request whose body is decoded; nil for requests that change nothing.
	write *write
}

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo { return n.kind.kinds.codecs.media }

func (n negotiated) EncoderForVersion(encoder runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	scheme := n.kind.kinds.codecs.scheme
	return versioning.NewCodec(encoder, nil, converter{}, scheme, scheme, scheme, gv, nil, "hykube")
}

func (n negotiated) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return requestDecoder{delegate: decoder, kind: n.kind, write: n.write, gv: gv}
}

// bodies lists the encodings that a request body may have.
type bodies struct{ negotiated }

func (b bodies) SupportedMediaTypes() []runtime.SerializerInfo { return b.kind.kinds.codecs.standard }

// storageCodec stores an object as JSON without conversion. Objects are validated when they are written, so decoding
// needs no schema, which would be the main cost of a list.
type storageCodec struct {
	kind     kschema.GroupVersionKind
	resource kschema.GroupResource
}

func (c storageCodec) Identifier() runtime.Identifier { return "hykube-storage" }

func (c storageCodec) Encode(obj runtime.Object, w io.Writer) error {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("encode object: %T is not an object of a provider's kind", obj)
	}
	var buf bytes.Buffer
	if err := json.NewEncoder(&buf).Encode(u.Object); err != nil {
		return fmt.Errorf("encode object: %w", err)
	}
	if size := int64(buf.Len()); size > MaxRequestBodyBytes {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"%s %q would be %d bytes, and the limit is %d: move large values out of the object, or split it",
			c.resource, u.GetName(), size, MaxRequestBodyBytes))
	}
	_, err := w.Write(buf.Bytes())
	return err
}

func (c storageCodec) Decode(data []byte, _ *kschema.GroupVersionKind,
	into runtime.Object) (runtime.Object, *kschema.GroupVersionKind, error) {
	u, ok := into.(*unstructured.Unstructured)
	if !ok {
		u = &unstructured.Unstructured{}
	}
	m := map[string]any{}
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return nil, nil, fmt.Errorf("decode stored object: %w", err)
	}
	u.Object = m
	return u, new(c.kind), nil
}
