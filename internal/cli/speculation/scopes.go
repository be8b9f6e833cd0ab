package speculation

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
)

// RecordedPlan returns the plan of the recorded objects of the namespace.
func RecordedPlan(s *session.Session, spec v1alpha1.PlanSpec, planning *operation.PlanFlags, all bool, base string) []operation.Wanted {
	if !all && planning.Selector == "" && len(spec.Invoke) > 0 {
		spec.Targets = union(spec.Targets, spec.Invoke)
	}
	return []operation.Wanted{{Namespace: s.Namespace, Base: base, Spec: spec}}
}

// PlansOf returns the plans for the objects of files: of only these, or of all objects in their namespaces.
func PlansOf(s *session.Session, rs []record.Recorded, planning *operation.PlanFlags, all bool, base string, spec v1alpha1.PlanSpec) []operation.Wanted {
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

// planned returns the addresses of the objects for which a plan is made. Plans open ephemeral resources when they need them, so an
// ephemeral resource needs no plan.
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
