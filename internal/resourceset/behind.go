package resourceset

import (
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// Behind returns what the values of outputs of Modules in a namespace depend on: resources, data sources and whole sets
// of the namespace. It follows outputs of other Modules. module finds a Module; nil is none.
func Behind(output lang.Address, module func(name string) *Module) (out []lang.Address) {
	seen := map[lang.Address]bool{output: true}
	for queue := []lang.Address{output}; len(queue) > 0; queue = queue[1:] {
		a := queue[0]
		if !a.IsModuleOutput() {
			out = append(out, a)
			continue
		}
		m := module(v1alpha1.RootModule(a.Module))
		if m == nil || m.Outputs[a.Name] == nil {
			continue
		}
		for _, next := range m.Outputs[a.Name].Behind {
			if next.Namespace == "" && !next.Stored() && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	slices.SortFunc(out, lang.Address.Compare)
	return out
}

// WaitsFor returns why the value of an output of a Module is not known before another plan; "" if it can be. It follows
// outputs of other Modules. module finds a Module; nil is none.
func WaitsFor(output lang.Address, module func(name string) *Module) string {
	seen := map[lang.Address]bool{output: true}
	for queue := []lang.Address{output}; len(queue) > 0; queue = queue[1:] {
		m := module(v1alpha1.RootModule(queue[0].Module))
		if m == nil || m.Outputs[queue[0].Name] == nil {
			continue
		}
		if why := m.Outputs[queue[0].Name].Waits; why != "" {
			return fmt.Sprintf("it depends on %s: %s", queue[0], why)
		}
		for _, next := range m.Outputs[queue[0].Name].Behind {
			if next.Namespace == "" && next.IsModuleOutput() && !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return ""
}
