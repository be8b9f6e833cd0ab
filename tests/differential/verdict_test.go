package differential

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// judge compares what two sides made of a step. What stands in docs/differential.md as a documented difference is taken
// out first, by the functions below, and nothing else is.
func judge(s *step, names *aliases, tf, hy *outcome) []difference {
	var out []difference
	if (tf.PlanError != "") != (hy.PlanError != "") {
		// All that follows differs, too.
		return append(out, difference{"plan error", shorten(tf.PlanError), shorten(hy.PlanError)})
	}
	if (tf.ApplyError != "") != (hy.ApplyError != "") && tf.PlanError == "" && hy.PlanError == "" {
		out = append(out, difference{"apply error", tf.ApplyError, hy.ApplyError})
	}
	if tf.Plan != nil && hy.Plan != nil {
		if s.NoRefresh {
			dropQuiet(tf.Plan, hy.Plan)
		}
		if s.RefreshOnly && len(tf.Plan.Drift) == 0 {
			// Terraform would apply a refresh that found nothing.
			tf.Plan.Applyable = hy.Plan.Applyable
		}
		for at := range names.unrecorded {
			delete(tf.Plan.Drift, at)
			delete(hy.Plan.Drift, at)
		}
		a, b := asJSON(settleTerraform(tf.Plan)), asJSON(settleHykube(hy.Plan))
		found := compare("plan", names.terraform.scrub(a), names.hykube.scrub(b))
		if slices.Contains(slices.Collect(maps.Values(tf.Plan.actions())), "delete create") || slices.Contains(slices.Collect(maps.Values(tf.Plan.actions())), "create delete") {
			found = slices.DeleteFunc(found, keptSecret)
		}
		if s.Destroy && len(s.Target) > 0 {
			// Terraform destroys what depends on a target without reading it first.
			found = slices.DeleteFunc(found, func(d difference) bool { return strings.Contains(d.path, "/change/before") })
		}
		out = append(out, found...)
	}
	names.terraform.learn(tf.States)
	names.hykube.learn(hy.States)
	left := names.leftAlone(s, tf, hy)
	a, b := closed(tf.States), closed(hy.States)
	for at := range left {
		if a[at] != nil && b[at] != nil {
			b[at] = a[at]
		}
	}
	for at := range b {
		// What was not tried keeps its record at Hykube; Terraform has written the new dependencies down while planning.
		if a[at] != nil && hy.ApplyError != "" {
			b[at].Dependencies = a[at].Dependencies
		}
	}
	out = append(out, compare("state", names.terraform.scrub(asJSON(a)), names.hykube.scrub(asJSON(b)))...)
	if s.Destroy {
		// What goes with a resource and what it left behind has no order.
		for _, o := range []*outcome{tf, hy} {
			for _, calls := range o.Calls {
				slices.Sort(calls)
			}
		}
	}
	out = append(out, compare("calls", names.terraform.scrub(asJSON(tf.Calls)), names.hykube.scrub(asJSON(hy.Calls)))...)
	out = append(out, compare("cloud", names.terraform.scrub(asJSON(tf.Objects)), names.hykube.scrub(asJSON(hy.Objects)))...)

	for side, o := range map[string]*outcome{"terraform": tf, "hykube": hy} {
		if s.Anyway {
			break
		}
		failed := ""
		if o.ApplyError != "" {
			failed = "apply"
		}
		if o.PlanError != "" {
			failed = "plan"
		}
		if failed != s.Fails {
			out = append(out, difference{side + " should fail at", s.Fails, failed + ": " + o.PlanError + o.ApplyError})
		}
		actions := o.Plan.actions()
		for _, at := range slices.Sorted(maps.Keys(s.Expect)) {
			if o.Plan != nil && actions[at] != s.Expect[at] {
				out = append(out, difference{side + ": action of " + at, s.Expect[at], actions[at]})
			}
		}
	}
	return out
}

// keptSecret says that a difference is one of a secret that Terraform forgets and Hykube keeps: what a resource that is to be
// replaced will have for a secret is not marked in Terraform, so that what refers to it is not, either.
func keptSecret(d difference) bool {
	if !strings.Contains(d.path, "/change/after") && !strings.HasPrefix(d.path, "plan/Values/") {
		return false
	}
	return d.hykube == mask || d.hykube == true && d.terraform != true
}

// settleTerraform takes out of a plan of Terraform what is different on purpose.
func settleTerraform(p *planDocument) *planDocument {
	for _, list := range []map[string]map[string]any{p.Changes, p.Drift} {
		for at, c := range list {
			list[at] = settleChange(c)
			change, _ := c["change"].(map[string]any)
			if change == nil {
				continue
			}
			// Hykube masks what is secret.
			for _, side := range []string{"before", "after"} {
				change[side] = masked(change[side], change[side+"_sensitive"])
			}
		}
	}
	// Terraform forgets in the planned values of a replacement what is secret; its changes say it.
	for at, r := range p.Values {
		if c := p.Changes[at]; c != nil {
			r["values"] = masked(r["values"], c["change"].(map[string]any)["after_sensitive"])
		}
	}
	return settle(p)
}

func settleHykube(p *planDocument) *planDocument {
	for _, list := range []map[string]map[string]any{p.Changes, p.Drift} {
		for at, c := range list {
			list[at] = settleChange(c)
		}
	}
	return settle(p)
}

func settle(p *planDocument) *planDocument {
	for _, c := range p.Drift {
		change := c["change"].(map[string]any)
		for key, v := range change {
			change[key] = bare(v)
		}
	}
	for _, r := range p.Values {
		delete(r, "schema_version")
		delete(r, "sensitive_values")
		if r["values"] == nil {
			delete(r, "values")
		}
	}
	return p
}

// dropQuiet takes out what Terraform leaves alone and Hykube does not even look at: a plan that reads nothing visits the
// changes and what depends on them.
func dropQuiet(tf, hy *planDocument) {
	for at, action := range tf.actions() {
		if action == "no-op" && hy.Changes[at] == nil {
			delete(tf.Changes, at)
			delete(tf.Values, at)
		}
	}
}

// settleChange takes out what only one of Terraform and OpenTofu, or only one version, writes.
func settleChange(c map[string]any) map[string]any {
	change, _ := c["change"].(map[string]any)
	for _, key := range []string{"before_identity", "after_identity"} {
		delete(change, key)
	}
	if paths, ok := change["replace_paths"].([]any); ok {
		// They are a set.
		slices.SortFunc(paths, func(a, b any) int { return strings.Compare(shown(a), shown(b)) })
	}
	if importing, ok := change["importing"].(map[string]any); ok {
		delete(importing, "unknown")
	}
	return c
}

// bare leaves out what is null or empty: Hykube tells drift from the status of the object, which has no nulls.
func bare(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			if e = bare(e); e != nil {
				out[k] = e
			}
		}
		if len(out) > 0 {
			return out
		}
		return nil
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, bare(e))
		}
		if slices.ContainsFunc(out, func(e any) bool { return e != nil && e != false }) {
			return out
		}
		return nil
	case bool:
		if !v {
			return nil
		}
	}
	return v
}

// mask is what Hykube writes for a secret.
const mask = "(sensitive value)"

// masked replaces what flags call sensitive. Null is no secret.
func masked(v, flags any) any {
	if flags == true {
		if v == nil {
			return nil
		}
		return mask
	}
	switch f := flags.(type) {
	case map[string]any:
		m, ok := v.(map[string]any)
		if !ok {
			return v
		}
		for k, flag := range f {
			if e, ok := m[k]; ok {
				m[k] = masked(e, flag)
			}
		}
	case []any:
		l, ok := v.([]any)
		if !ok || len(l) != len(f) {
			return v
		}
		for i, flag := range f {
			l[i] = masked(l[i], flag)
		}
	}
	return v
}

// closed makes the recorded dependencies those of the dependencies, too: Terraform records all, Hykube the direct ones.
func closed(states map[string]*state) map[string]*state {
	out := map[string]*state{}
	for at, s := range states {
		seen := map[string]bool{}
		var visit func(string)
		visit = func(at string) {
			if !seen[at] {
				seen[at] = true
				if s := states[at]; s != nil {
					for _, d := range s.Dependencies {
						visit(d)
					}
				}
			}
		}
		for _, d := range s.Dependencies {
			visit(d)
		}
		delete(seen, at)
		if strings.HasPrefix(at, "data.") {
			clear(seen) // Terraform records none of a data source
		}
		out[at] = &state{Attributes: s.Attributes, Tainted: s.Tainted, Dependencies: slices.Sorted(maps.Keys(seen))}
	}
	return out
}

// aliases are what is remembered of a story from step to step: the names of what is made at random, on both sides, and
// the addresses whose drift Terraform has recorded and Hykube has not.
type aliases struct {
	terraform, hykube *alias
	unrecorded        map[string]bool
}

func newAliases() *aliases {
	return &aliases{&alias{by: map[string]string{}}, &alias{by: map[string]string{}}, map[string]bool{}}
}

// leftAlone are the addresses that a step did not change although they had drifted. Terraform's apply records what it read of
// them; Hykube's records what the plan changes, and the rest with a refresh-only plan.
func (n *aliases) leftAlone(s *step, tf, hy *outcome) map[string]bool {
	if tf.Plan == nil || hy.Plan == nil {
		return n.unrecorded
	}
	for at, action := range tf.Plan.actions() {
		switch {
		case hy.Plan.Drift[at] == nil && !n.unrecorded[at]:
		case action == "no-op" || hy.ApplyError != "" || s.PlanOnly:
			n.unrecorded[at] = true
		default:
			delete(n.unrecorded, at)
		}
	}
	if s.RefreshOnly {
		clear(n.unrecorded)
	}
	return n.unrecorded
}

// alias are the names of what was made at random on one side, by value.
type alias struct {
	by    map[string]string
	count map[string]int
}

// random are the attributes that a provider rolls dice for.
var random = map[string][]string{
	"sim_password": {"id", "result"},
	"time_sleep":   {"id"},
	"time_static":  {"id"},
}

// learn names the random values of states.
func (a *alias) learn(states map[string]*state) {
	if a.count == nil {
		a.count = map[string]int{}
	}
	for _, at := range slices.Sorted(maps.Keys(states)) {
		typ, _, _ := strings.Cut(at, ".")
		for _, name := range random[typ] {
			value, ok := states[at].Attributes[name].(string)
			if !ok || value == "" || a.by[value] != "" || value == "none" {
				continue
			}
			key := strings.Fields(at)[0] + "." + name
			a.count[key]++
			a.by[value] = fmt.Sprintf("<%s #%d>", key, a.count[key])
		}
	}
}

// recent are times of the clock, which no two sides read at the same moment.
var recent = regexp.MustCompile(`20(2[6-9]|[3-9][0-9])-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)

// scrub replaces what was made at random by its name.
func (a *alias) scrub(v any) any {
	return mapStrings(v, func(s string) string {
		for value, name := range a.by {
			s = strings.ReplaceAll(s, value, name)
		}
		return s
	})
}
