package differential

import (
	"maps"
	"slices"
	"strings"
)

// judge compares what two sides made of a step. What stands in docs/differential.md as a documented difference is taken
// out first, by the functions in differences_test.go, and nothing else is.
func judge(s *step, c config, m *expectation, tf, hy *outcome) []difference {
	if (tf.PlanError != "") != (hy.PlanError != "") {
		// All that follows differs, too.
		return []difference{{"plan error", shorten(tf.PlanError), shorten(hy.PlanError)}}
	}
	var out []difference
	if (tf.ApplyError != "") != (hy.ApplyError != "") {
		out = append(out, difference{"apply error", shorten(tf.ApplyError), shorten(hy.ApplyError)})
	}
	if tf.Plan != nil && hy.Plan != nil {
		settlePlans(s, m, tf.Plan, hy.Plan)
		found := m.compare("plan", tf.Plan, hy.Plan)
		out = append(out, slices.DeleteFunc(found, func(d difference) bool {
			return forgottenSecret(tf.Plan, d) || unreadDeleted(tf.Plan, d) || unreadNested(tf.Plan, d) || emptiedSecret(d)
		})...)
	}
	m.terraform.learn(tf.States)
	m.hykube.learn(hy.States)
	settleStates(s, m, tf, hy)
	out = append(out, m.compare("state", tf.States, hy.States)...)
	if s.Destroy {
		// What goes with a resource, and what that left behind, have no order.
		for _, o := range []*outcome{tf, hy} {
			for _, calls := range o.Calls {
				slices.Sort(calls)
			}
		}
	}
	if tf.PlanError+tf.ApplyError != "" || s.Destroy {
		// How much was still planned before it failed is nobody's business, nor that Terraform plans what there is before it
		// plans to destroy it.
		for _, o := range []*outcome{tf, hy} {
			maps.DeleteFunc(o.Calls, func(key string, _ []string) bool { return strings.HasPrefix(key, "plans ") })
		}
	}
	orderDestroys(tf, hy)
	out = append(out, m.compare("calls", tf.Calls, hy.Calls)...)
	out = append(out, m.compare("cloud", tf.Objects, hy.Objects)...)
	out, m.diverged = destroyedLate(c, tf, hy, out)
	if !s.Anyway {
		out = append(out, expected(s, "terraform", tf)...)
		out = append(out, expected(s, "hykube", hy)...)
	}
	return out
}

// expected compares what a side made of a step with what its author says.
func expected(s *step, side string, o *outcome) []difference {
	var out []difference
	failed := ""
	if o.ApplyError != "" {
		failed = "apply"
	}
	if o.PlanError != "" {
		failed = "plan"
	}
	if failed != s.Fails {
		out = append(out, difference{side + " should fail at", s.Fails, failed + ": " + shorten(o.PlanError+o.ApplyError)})
	}
	if o.Plan == nil {
		return out
	}
	actions := o.Plan.actions()
	for _, at := range slices.Sorted(maps.Keys(s.Expect)) {
		if actions[at] != s.Expect[at] {
			out = append(out, difference{side + ": action of " + at + " should be", s.Expect[at], actions[at]})
		}
	}
	return out
}
