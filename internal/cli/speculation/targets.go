package speculation

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// RecordedPlan returns the plan of the recorded objects of the namespace.
func RecordedPlan(s *session.Session, spec v1alpha1.PlanSpec, planning *operation.PlanFlags, all bool,
	base string) []operation.Wanted {
	if !all && planning.Selector == "" && len(spec.Invoke) > 0 {
		spec.Targets = union(spec.Targets, spec.Invoke)
	}
	return []operation.Wanted{{Namespace: s.Namespace, Base: base, Spec: spec}}
}

// PlansOf returns the plans for the objects of files: of only these, or of all objects in their namespaces.
func PlansOf(s *session.Session, rs []record.Recorded, planning *operation.PlanFlags, all bool, base string,
	spec v1alpha1.PlanSpec) []operation.Wanted {
	var out []operation.Wanted
	for _, sc := range Scopes(rs) {
		planned := sc.planned()
		if len(planned) == 0 && !all && planning.Empty() {
			continue
		}
		own := *spec.DeepCopy()
		if !all && planning.Empty() {
			own.Targets = union(planned, spec.Invoke)
		}
		out = append(out, operation.Wanted{Namespace: sc.Namespace, Base: base, Spec: own})
	}
	if len(out) == 0 && (all || !planning.Empty()) {
		out = append(out, operation.Wanted{Namespace: s.Namespace, Base: base, Spec: spec})
	}
	return out
}

// union returns a followed by the elements of b that a lacks.
func union(a, b []string) []string {
	for _, x := range b {
		if !slices.Contains(a, x) {
			a = append(a, x)
		}
	}
	return a
}

// scope holds the objects of the files in one namespace, in the order of the files.
type scope struct {
	Namespace string
	objects   []addrs.Target
}

// Of returns the addresses of the objects with one of the modes.
func (s scope) Of(modes ...v1alpha1.Mode) []string {
	var out []string
	for _, t := range s.objects {
		if slices.Contains(modes, t.Mode) {
			out = append(out, t.Address())
		}
	}
	return out
}

// planned returns the addresses of the objects for which a plan is made. Plans open ephemeral resources when they need
// them, so an ephemeral resource needs no plan.
func (s scope) planned() []string {
	return s.Of(v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeAction, addrs.ModeModule)
}

// Scopes groups recorded objects by the namespaces of their plans.
func Scopes(rs []record.Recorded) []scope {
	var out []scope
	for _, r := range rs {
		t, ok := r.Target()
		if !ok {
			continue
		}
		i := slices.IndexFunc(out, func(s scope) bool { return s.Namespace == r.Namespace })
		if i < 0 {
			i = len(out)
			out = append(out, scope{Namespace: r.Namespace})
		}
		out[i].objects = append(out[i].objects, t)
	}
	return out
}

// SelectTargets returns the objects of files that a plan with --target or -l needs: the named resources, the resources
// to which these refer, and every object that is no resource. Without these flags, it returns all objects.
func SelectTargets(s *session.Session, ms []manifest.Manifest, f *operation.PlanFlags) ([]manifest.Manifest, error) {
	if f.Empty() {
		return ms, nil
	}
	selector, err := objects.ParseSelector(f.Selector)
	if err != nil {
		return nil, err
	}
	named := map[string]bool{}
	for _, list := range [][]string{f.Targets, f.Invoke} {
		in, err := addrs.ParseAll("--target", list)
		if err != nil {
			return nil, err
		}
		for _, address := range in {
			set, _, _ := v1alpha1.ParseInstanceName(address) // the files have the set of an instance
			named[set] = true
			if path, _, ok := v1alpha1.CutModulePath(address); ok { // the files have the Module of a resource
				named[v1alpha1.ModulePath("", v1alpha1.RootModule(path), nil)] = true
			}
		}
	}
	t := &targeting{Session: s, ms: ms, at: map[string]int{}, kept: make([]bool, len(ms))}
	for i, m := range ms {
		if addrs.IsResource(m.Object) {
			t.at[fullAddress(s, m)] = i
		}
	}
	for i, m := range ms {
		if named[addrs.Of(addrs.TemplateOf(m.Object))] || f.Selector != "" &&
			selector.Matches(labels.Set(m.Object.GetLabels())) {
			t.keep(i)
		}
	}
	var out []manifest.Manifest
	for i, m := range ms {
		if t.kept[i] || !addrs.IsResource(m.Object) {
			out = append(out, m)
		}
	}
	if left := len(ms) - len(out); left > 0 {
		fmt.Fprintf(s.ErrOut, "Warning: --target and -l leave out %s of the files: the command neither plans nor records them.\n", diff.Plural(left, "object"))
	}
	return out, nil
}

// targeting finds the objects of files that named resources need.
type targeting struct {
	*session.Session
	ms []manifest.Manifest
	// at maps full addresses of resources to their indexes.
	at   map[string]int
	kept []bool
}

// keep marks an object, and all to which it refers. The ProviderConfigs of a resource may refer to other resources.
func (t *targeting) keep(i int) {
	if t.kept[i] {
		return
	}
	t.kept[i] = true
	m := t.ms[i]
	for _, r := range addrs.References(m.Object) {
		address, err := addrs.Parse(r.Address)
		if err != nil {
			continue
		}
		address.Namespace = cmp.Or(address.Namespace, m.Object.GetNamespace(), t.Namespace)
		if to, ok := t.at[address.Full()]; ok {
			t.keep(to)
		}
	}
	provider, ok := v1alpha1.ProviderOfGroup(addrs.TemplateOf(m.Object).GroupVersionKind().Group)
	if !ok {
		return
	}
	for k, config := range t.ms {
		spec, _ := config.Object.Object["spec"].(map[string]any)
		if config.Object.GroupVersionKind().GroupKind() == v1alpha1.Kind("ProviderConfig") &&
			spec["provider"] == provider {
			t.keep(k)
		}
	}
}

// fullAddress returns the address of a resource with its namespace.
func fullAddress(s *session.Session, m manifest.Manifest) string {
	t, _ := record.Recorded{Manifest: m, Namespace: cmp.Or(m.Object.GetNamespace(), s.Namespace)}.Target()
	return t.Full()
}
