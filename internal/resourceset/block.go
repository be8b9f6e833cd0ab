package resourceset

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// This file makes the parts of an object that only blocks of Modules have.

// inModule adds the module and the dependencies of the i-th instance of a block.
func (s *Set) inModule(instance map[string]any, i int) {
	instance[fieldSource] = s.source
	instance[fieldModule] = s.block.Module.Config.StaticPath()
	var list []any
	for _, a := range s.through[i] {
		list = append(list, map[string]any{"namespace": a.Namespace, "module": a.Module, "mode": string(a.Mode),
			"type": a.Type, "name": a.Name,
			"repeats": slices.Contains(s.repeatsBy, a)})
	}
	if len(list) > 0 {
		instance[fieldThrough] = list
	}
}

// withDependsOn returns the lifecycle with the addresses in depends_on.
func (s *Set) withDependsOn() map[string]any {
	if len(s.dependsOn) == 0 {
		return s.lifecycle
	}
	list := make([]any, len(s.dependsOn))
	for i, a := range s.dependsOn {
		list[i] = a.String()
	}
	return withField(s.lifecycle, "dependsOn", list)
}

// Through returns the addresses of the objects on which an instance of a block depends through named values of its
// module. repeats lists those to which count or for_each of the block refers itself. Both are nil for other objects.
func Through(u *unstructured.Unstructured) (all, repeats []lang.Address) {
	list, _, _ := unstructured.NestedSlice(u.Object, v1alpha1.FieldInstance, fieldThrough)
	for _, item := range list {
		m, _ := item.(map[string]any)
		text := func(name string) string { t, _ := m[name].(string); return t }
		a := lang.Address{Namespace: text("namespace"), Module: text("module"), Mode: v1alpha1.Mode(text("mode")),
			Type: text("type"), Name: text("name")}
		if all = append(all, a); m["repeats"] == true {
			repeats = append(repeats, a)
		}
	}
	return all, repeats
}

// forgets reports whether a removed block of the module says that the infrastructure of an instance stays.
func (s *Set) forgets(ref v1alpha1.ObjectReference) bool {
	if s.expansion == nil {
		return false
	}
	mode, terraformType := v1alpha1.ParseKind(ref.Kind)
	return s.expansion.Forgets(lang.AddressOf(mode, terraformType, ref.Name))
}
