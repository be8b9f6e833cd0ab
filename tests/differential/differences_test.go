package differential

import (
	"maps"
	"slices"
	"strings"
)

// The documented differences, as docs/differential.md numbers them. Each function takes one out.

// settlePlans takes out of plans what is different on purpose.
func settlePlans(s *step, m *expectation, tf, hy *planDocument) {
	if s.NoRefresh {
		dropQuiet(tf, hy)
	}
	if s.RefreshOnly && len(tf.Drift) == 0 {
		tf.Applyable = hy.Applyable // D9
	}
	for at := range m.unrecorded {
		delete(tf.Drift, at)
		delete(hy.Drift, at)
	}
	maskPlan(tf)
	for _, p := range []*planDocument{tf, hy} {
		for _, c := range p.Changes {
			settleChange(c)
		}
		for _, c := range p.Drift {
			settleChange(c)
			change, _ := c["change"].(map[string]any)
			for key, v := range change {
				change[key] = bare(v)
			}
		}
		for _, r := range p.Values { // D3
			delete(r, "schema_version")
			delete(r, "sensitive_values")
			if r["values"] == nil {
				delete(r, "values")
			}
		}
	}
}

// settleStates takes out of states what is different on purpose.
func settleStates(s *step, m *expectation, tf, hy *outcome) {
	left := m.leftAlone(s, tf, hy)
	tf.States, hy.States = closed(tf.States), closed(hy.States)
	m.dropStale(tf.States, hy.States)
	for at, b := range hy.States {
		a := tf.States[at]
		switch {
		case a == nil && left[at]:
			delete(hy.States, at) // it vanished, and nobody got as far as making it again
		case a == nil:
		case left[at]:
			delete(tf.States, at)
			delete(hy.States, at)
		case hy.ApplyError != "": // D4: what was not tried has the new dependencies in Terraform's state already
			b.Dependencies = a.Dependencies
		}
	}
	if s.Destroy { // D10
		for _, states := range []map[string]*state{tf.States, hy.States} {
			maps.DeleteFunc(states, func(at string, _ *state) bool { return strings.HasPrefix(at, "data.") })
		}
	}
}

// maskPlan (D1) masks in Terraform's plan what is secret. Terraform forgets in the planned values of a replacement what is
// secret; its changes say it.
func maskPlan(p *planDocument) {
	for _, list := range []map[string]map[string]any{p.Changes, p.Drift} {
		for at, c := range list {
			change, _ := c["change"].(map[string]any)
			if change == nil {
				continue
			}
			for _, side := range []string{"before", "after"} {
				change[side] = masked(change[side], change[side+"_sensitive"])
			}
			if r := p.Values[at]; r != nil {
				r["values"] = masked(r["values"], change["after_sensitive"])
			}
		}
	}
}

// forgottenSecret (D2) says that a difference is one of a secret that Terraform forgets and Hykube keeps: what a resource that
// is to be replaced will have for a secret is not marked in Terraform, so that what refers to it is not, either.
func forgottenSecret(tf *planDocument, d difference) bool {
	replaces := false
	for _, action := range tf.actions() {
		replaces = replaces || action == "delete create" || action == "create delete"
	}
	if strings.HasSuffix(d.path, "/change/actions/0") && d.terraform == "update" && d.hykube == "no-op" {
		return replaces && sameValues(tf, d.path) // what it refers to is no secret for a while, and that is all that changes
	}
	return replaces && (strings.Contains(d.path, "/change/after") || strings.HasPrefix(d.path, "plan/Values/")) &&
		(d.hykube == mask || d.hykube == true && d.terraform != true)
}

// sameValues says that Terraform's change at a path changes nothing but what is secret.
func sameValues(tf *planDocument, path string) bool {
	at := strings.TrimSuffix(strings.TrimPrefix(path, "plan/Changes/"), "/change/actions/0")
	change, _ := tf.Changes[at]["change"].(map[string]any)
	before, _ := change["before"].(map[string]any)
	after, _ := change["after"].(map[string]any)
	for name, v := range before {
		if v != mask && len(compare("", asJSON(v), asJSON(after[name]))) > 0 {
			return false
		}
	}
	return len(before) > 0
}

// emptiedSecret (D13) says that a difference is one of a set that held secrets and is empty now: Terraform masks that it is empty, too.
func emptiedSecret(d difference) bool {
	empty := d.hykube == absent{} && strings.HasPrefix(d.path, "plan/Drift/")
	if l, ok := d.hykube.([]any); ok && len(l) == 0 {
		empty = true
	}
	return empty && (d.terraform == mask || d.terraform == true && strings.Contains(d.path, "_sensitive/"))
}

// unreadDeleted (D7) says that a difference is one of what is to be deleted, whose last reading Terraform does not show.
func unreadDeleted(tf *planDocument, d difference) bool {
	for at, action := range tf.actions() {
		if action == "delete" && strings.HasPrefix(d.path, "plan/Changes/"+at+"/change/before") {
			return true
		}
	}
	return false
}

// unreadNested (D12) says that a difference is one of what a data source, which is to be read later, has within an argument. What it
// computes within the elements of a set or a map is unknown; Terraform plans null there, as if it knew, and orders the set by that.
func unreadNested(tf *planDocument, d difference) bool {
	for at, action := range tf.actions() {
		if action != "read" {
			continue
		}
		if rest, ok := strings.CutPrefix(d.path, "plan/Values/"+at+"/values/"); ok {
			return strings.Contains(rest, "/")
		}
		if rest, ok := strings.CutPrefix(d.path, "plan/Changes/"+at+"/change/after"); ok {
			_, rest, _ = strings.Cut(rest, "/")
			return strings.Contains(rest, "/")
		}
	}
	return false
}

// leftAlone (D6) are the addresses that a step did not change although they had drifted. Terraform's apply records what it read of
// them, also when there is nothing else to do; in Hykube there is nothing to apply then, and a refresh-only plan records it.
func (m *expectation) leftAlone(s *step, tf, hy *outcome) map[string]bool {
	if tf.Plan == nil || hy.Plan == nil {
		return m.unrecorded
	}
	empty := true
	for _, action := range tf.Plan.actions() {
		empty = empty && action == "no-op"
	}
	for at := range tf.Plan.actions() {
		switch {
		case hy.Plan.Drift[at] == nil && !m.unrecorded[at]:
		case empty || hy.ApplyError != "" || s.PlanOnly:
			m.unrecorded[at] = true
		default:
			delete(m.unrecorded, at)
		}
	}
	if s.RefreshOnly {
		clear(m.unrecorded)
	}
	if s.Destroy {
		// A destroy plan tells no drift.
		for at := range tf.States {
			m.unrecorded[at] = true
		}
	}
	return m.unrecorded
}

// orderDestroys gives the deletes one order where Terraform has none: its graph has no edge between the destroy of a current instance
// and that of one that an earlier replace left behind (two destroyers of one address). Their creates keep their place.
func orderDestroys(tf, hy *outcome) {
	left := map[string]bool{}
	for at, c := range tf.deposed() {
		change, _ := c["change"].(map[string]any)
		before, _ := change["before"].(map[string]any)
		if id, ok := before["id"].(string); ok && tf.Plan.actions()[strings.TrimSuffix(at, " deposed")] != "no-op" {
			left["delete "+id] = true
		}
	}
	for _, o := range []*outcome{tf, hy} {
		for _, calls := range o.Calls {
			for from := 0; from < len(calls); from++ {
				to := from
				for to < len(calls) && strings.HasPrefix(calls[to], "delete ") {
					to++
				}
				if slices.ContainsFunc(calls[from:to], func(call string) bool { return left[call] }) {
					slices.Sort(calls[from:to])
				}
				from = max(from, to)
			}
		}
	}
}

// deposed are the changes that destroy what earlier replaces left behind.
func (o *outcome) deposed() map[string]map[string]any {
	out := map[string]map[string]any{}
	if o.Plan != nil {
		for at, c := range o.Plan.Changes {
			if strings.HasSuffix(at, " deposed") {
				out[at] = c
			}
		}
	}
	return out
}

// dropQuiet (D5) takes out what Terraform leaves alone and Hykube does not even look at: a plan that reads nothing visits the
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
func settleChange(c map[string]any) {
	change, _ := c["change"].(map[string]any)
	for _, key := range []string{"before_identity", "after_identity"} {
		delete(change, key)
	}
	if paths, ok := change["replace_paths"].([]any); ok {
		// D11: they are a set.
		slices.SortFunc(paths, func(a, b any) int { return strings.Compare(shown(a), shown(b)) })
	}
	if importing, ok := change["importing"].(map[string]any); ok {
		delete(importing, "unknown")
	}
}

// bare (D8) leaves out what is null or empty: Hykube tells drift from the status of the object, which has no nulls.
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

// dropStale (D4) takes out of Terraform's dependencies those that were recorded before and that Hykube no longer has: when what stands
// between two resources no longer refers to the one, Terraform's record of the other keeps it for a while.
func (m *expectation) dropStale(tf, hy map[string]*state) {
	for at, a := range tf {
		recorded := a.Dependencies
		if b := hy[at]; b != nil {
			a.Dependencies = slices.DeleteFunc(slices.Clone(recorded), func(d string) bool {
				return slices.Contains(m.dependencies[at], d) && !slices.Contains(b.Dependencies, d)
			})
		}
		m.dependencies[at] = recorded
	}
}

// closed (D4) makes the recorded dependencies those of the dependencies, too: Terraform records all, Hykube the direct ones.
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
