package differential

import (
	"maps"
	"slices"
	"strings"
)

// judge compares the results of two sides. The functions in differences_test.go first remove the differences that
// docs/differential.md documents, and no others.
func judge(s *step, c config, m *expectation, tf, hy *outcome) []difference {
	if (tf.PlanError != "") != (hy.PlanError != "") {
		// All that follows differs, too.
		return []difference{{"plan error", shorten(tf.PlanError), shorten(hy.PlanError)}}
	}
	var out []difference
	for _, text := range hy.unexplained {
		out = append(out, difference{"a replace names no cause", absent{}, text})
	}
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
	out = append(out, m.compareOrder(c, tf, hy)...)
	m.terraform.learn(tf.States)
	m.hykube.learn(hy.States)
	settleStates(s, m, tf, hy)
	out = append(out, m.compare("state", tf.States, hy.States)...)
	if s.Destroy {
		// The destroys of a resource and of its deposed instances have no order.
		for _, o := range []*outcome{tf, hy} {
			for _, calls := range o.Calls {
				slices.Sort(calls)
			}
		}
	}
	if tf.PlanError+tf.ApplyError != "" || s.Destroy {
		// The number of resources that were planned before the failure does not matter. Nor does it matter that
		// Terraform plans existing resources before it plans their destroy.
		for _, o := range []*outcome{tf, hy} {
			maps.DeleteFunc(o.Calls, func(key string, _ []string) bool { return strings.HasPrefix(key, "plans ") })
		}
	}
	orderDestroys(tf, hy)
	out = append(out, m.compare("calls", tf.Calls, hy.Calls)...)
	out = append(out, m.compare("cloud", tf.Objects, hy.Objects)...)
	out, m.diverged = m.keptLonger(c, tf, hy, out)
	m.references = recordedReferences(tf.States, hy.States)
	if !s.Anyway {
		out = append(out, expected(s, "terraform", tf)...)
		out = append(out, expected(s, "hykube", hy)...)
	}
	return out
}

// expected compares the result of a side with the expectation of the story.
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
