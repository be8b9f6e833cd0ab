package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of the fixed kinds. A provider's own kinds are in "<provider>.hykube.io".
const GroupName = "hykube.io"

// SchemeGroupVersion is the group and version of the types in this package.
var SchemeGroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

var (
	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme registers the types of this package.
	AddToScheme = schemeBuilder.AddToScheme
)

// Kind returns the kind qualified with this group.
func Kind(kind string) schema.GroupKind { return SchemeGroupVersion.WithKind(kind).GroupKind() }

// Resource returns the resource qualified with this group.
func Resource(resource string) schema.GroupResource {
	return SchemeGroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&Provider{}, &ProviderList{},
		&ProviderConfig{}, &ProviderConfigList{},
		&Plan{}, &PlanList{}, &PlanChangeList{},
		&PlanObjects{},
		&ResourceSet{}, &ResourceSetList{}, &ResourceSetInstanceList{},
		&Module{}, &ModuleList{},
		&Stack{}, &StackList{},
		&Notification{}, &NotificationList{},
		&PlanRecord{}, &PlanRecordList{},
		&PlanPolicy{}, &PlanPolicyList{},
		&ClusterPlanPolicy{}, &ClusterPlanPolicyList{},
		&Query{},
		&Validation{},
		&Evaluation{},
		&StatePush{}, &StatePull{},
	)
	scheme.AddKnownTypeWithName(SchemeGroupVersion.WithKind("Resource"), &ResourceSummary{})
	scheme.AddKnownTypeWithName(SchemeGroupVersion.WithKind("ResourceList"), &ResourceSummaryList{})
	metav1.AddToGroupVersion(scheme, SchemeGroupVersion)
	return nil
}
