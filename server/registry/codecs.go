package registry

import (
	"fmt"
	"slices"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Codecs encodes and decodes the fixed kinds, including Kubernetes' own.
type Codecs struct {
	// Scheme has the types of hykube.io. There is only one version, so the same Go types also are the internal version,
	// without conversion.
	Scheme *runtime.Scheme
	// Factory creates codecs of Scheme.
	Factory serializer.CodecFactory
	// Parameters decodes query parameters.
	Parameters runtime.ParameterCodec
}

// NewCodecs returns the codecs of the fixed kinds.
func NewCodecs() Codecs {
	scheme := NewScheme()
	internal := schema.GroupVersion{Group: v1alpha1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal,
		&v1alpha1.Provider{}, &v1alpha1.ProviderList{},
		&v1alpha1.ProviderConfig{}, &v1alpha1.ProviderConfigList{},
		&v1alpha1.Plan{}, &v1alpha1.PlanList{}, &v1alpha1.PlanChangeList{},
		&v1alpha1.PlanObjects{},
		&v1alpha1.ResourceSet{}, &v1alpha1.ResourceSetList{}, &v1alpha1.ResourceSetInstanceList{},
		&v1alpha1.Module{}, &v1alpha1.ModuleList{},
		&v1alpha1.Stack{}, &v1alpha1.StackList{},
		&v1alpha1.Notification{}, &v1alpha1.NotificationList{},
		&v1alpha1.PlanRecord{}, &v1alpha1.PlanRecordList{},
		&v1alpha1.PlanPolicy{}, &v1alpha1.PlanPolicyList{},
		&v1alpha1.ClusterPlanPolicy{}, &v1alpha1.ClusterPlanPolicyList{},
		&v1alpha1.Query{},
		&v1alpha1.Validation{},
		&v1alpha1.Evaluation{},
		&v1alpha1.StatePush{}, &v1alpha1.StatePull{},
	)
	// The body of the subresource "scale" has this type, internally, too.
	utilruntime.Must(autoscalingv1.AddToScheme(scheme))
	scheme.AddKnownTypes(schema.GroupVersion{Group: autoscalingv1.GroupName, Version: runtime.APIVersionInternal},
		&autoscalingv1.Scale{})
	scheme.AddKnownTypeWithName(internal.WithKind("Resource"), &v1alpha1.ResourceSummary{})
	scheme.AddKnownTypeWithName(internal.WithKind("ResourceList"), &v1alpha1.ResourceSummaryList{})
	scheme.AddTypeDefaultingFunc(&v1alpha1.Plan{}, func(obj any) { setPlanDefaults(obj.(*v1alpha1.Plan)) })
	scheme.AddTypeDefaultingFunc(&v1alpha1.PlanList{}, func(obj any) {
		for i := range obj.(*v1alpha1.PlanList).Items {
			setPlanDefaults(&obj.(*v1alpha1.PlanList).Items[i])
		}
	})
	scheme.AddTypeDefaultingFunc(&v1alpha1.Stack{}, func(obj any) { setStackDefaults(obj.(*v1alpha1.Stack)) })
	scheme.AddTypeDefaultingFunc(&v1alpha1.StackList{}, func(obj any) {
		for i := range obj.(*v1alpha1.StackList).Items {
			setStackDefaults(&obj.(*v1alpha1.StackList).Items[i])
		}
	})
	scheme.AddTypeDefaultingFunc(&v1alpha1.Notification{},
		func(obj any) { setNotificationDefaults(obj.(*v1alpha1.Notification)) })
	scheme.AddTypeDefaultingFunc(&v1alpha1.NotificationList{}, func(obj any) {
		for i := range obj.(*v1alpha1.NotificationList).Items {
			setNotificationDefaults(&obj.(*v1alpha1.NotificationList).Items[i])
		}
	})
	utilruntime.Must(scheme.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind("PlanRecord"),
		fieldLabels(recordPlanField)))
	utilruntime.Must(scheme.AddFieldLabelConversionFunc(v1alpha1.SchemeGroupVersion.WithKind("Resource"), fieldLabels(
		v1alpha1.ResourceFieldKind, v1alpha1.ResourceFieldProvider, v1alpha1.ResourceFieldProviderConfig,
		v1alpha1.ResourceFieldReady, v1alpha1.ResourceFieldReason,
		v1alpha1.ResourceFieldID, v1alpha1.ResourceFieldSearch, v1alpha1.ResourceFieldAttribute,
		v1alpha1.ResourceFieldRecord)))
	return Codecs{Scheme: scheme, Factory: serializer.NewCodecFactory(scheme),
		Parameters: runtime.NewParameterCodec(scheme)}
}

// NewScheme returns a scheme with the external types of hykube.io.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	utilruntime.Must(scheme.SetVersionPriority(v1alpha1.SchemeGroupVersion))
	// The types that every API group needs in addition: Status, the options of requests, Table.
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(schema.GroupVersion{Version: "v1"},
		&metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}

// ForStorage returns the codec for stored objects of a resource: JSON of the group's preferred version.
func (c Codecs) ForStorage(gr schema.GroupResource) runtime.Codec {
	if gr.Group == v1alpha1.GroupName {
		return c.Factory.LegacyCodec(v1alpha1.SchemeGroupVersion)
	}
	return legacyscheme.Codecs.LegacyCodec(legacyscheme.Scheme.PrioritizedVersionsForGroup(gr.Group)...)
}

// negotiated supports JSON and YAML but not protobuf, which clients would prefer, because the types of hykube.io have
// no protobuf form.
type negotiated struct {
	runtime.NegotiatedSerializer
	scheme *runtime.Scheme
}

// DecoderToVersion returns a decoder for request bodies.
func (n negotiated) DecoderToVersion(decoder runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return copyMarker{hinting{n.NegotiatedSerializer.DecoderToVersion(decoder, gv), n.scheme}}
}

func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(n.NegotiatedSerializer.SupportedMediaTypes()),
		func(info runtime.SerializerInfo) bool {
			return info.MediaType == runtime.ContentTypeProtobuf
		})
}

// fieldLabels returns the check of the field selectors of a kind: its own fields, the name and the namespace. The error
// for another field lists them.
func fieldLabels(own ...string) runtime.FieldLabelConversionFunc {
	known := append([]string{"metadata.name", "metadata.namespace"}, own...)
	return func(label, value string) (string, string, error) {
		if !slices.Contains(known, label) {
			return "", "", fmt.Errorf("%q is not a known field selector: only %q", label, known)
		}
		return label, value, nil
	}
}
