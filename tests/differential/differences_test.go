package differential

import (
	"maps"
	"slices"
	"strings"
)

// This file removes the documented differences, as docs/differential.md numbers them. Each function removes one.

// settlePlans removes intended differences from plans.
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

// settleStates removes intended differences from states.
func settleStates(s *step, m *expectation, tf, hy *outcome) {
	left := m.leftAlone(s, tf, hy)
	tf.States, hy.States = closed(tf.States), closed(hy.States)
	m.dropStale(tf.States, hy.States)
	for at, b := range hy.States {
		a := tf.States[at]
		switch {
		case a == nil && left[at]:
			delete(hy.States, at) // it vanished, and no side created it again
		case a == nil && hy.ApplyError != "" && strings.HasPrefix(at, "data."):
			delete(hy.States, at) // D10
		case a == nil:
		case left[at]:
			delete(tf.States, at)
			delete(hy.States, at)
		case hy.ApplyError != "": // D4: for a change that was not tried, Terraform's state already has the new dependencies
			b.Dependencies = a.Dependencies
		}
	}
	if s.Destroy { // D10
		for _, states := range []map[string]*state{tf.States, hy.States} {
			maps.DeleteFunc(states, func(at string, _ *state) bool { return strings.HasPrefix(at, "data.") })
		}
	}
}

// maskPlan (D1) masks secrets in Terraform's plan. In the planned values of a replacement, Terraform loses the marks of
// secrets, but its changes have them.
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

// forgottenSecret (D2) reports whether a difference is about a secret whose mark Terraform loses and Hykube keeps.
// Terraform does not mark the secrets of a resource that will be replaced, and so neither the values that refer to
// them.
func forgottenSecret(tf *planDocument, d difference) bool {
	replaces := false
	for _, action := range tf.actions() {
		replaces = replaces || action == "delete create" || action == "create delete"
	}
	if strings.HasSuffix(d.path, "/change/actions/0") && d.terraform == "update" && d.hykube == "no-op" {
		return replaces && sameValues(tf, d.path) // the referenced value is temporarily not secret, and nothing else changes
	}
	return replaces && (strings.Contains(d.path, "/change/after") || strings.HasPrefix(d.path, "plan/Values/")) &&
		(d.hykube == mask || d.hykube == true && d.terraform != true)
}

// sameValues reports whether Terraform's change at a path changes only which values are secret.
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

// emptiedSecret (D13) reports whether a difference is about a set that held secrets and is now empty. Terraform masks
// the empty set, too.
func emptiedSecret(d difference) bool {
	empty := d.hykube == absent{} && strings.HasPrefix(d.path, "plan/Drift/")
	if l, ok := d.hykube.([]any); ok && len(l) == 0 {
		empty = true
	}
	return empty && (d.terraform == mask || d.terraform == true && strings.Contains(d.path, "_sensitive/"))
}

// unreadDeleted (D7) reports whether a difference is about a resource to be deleted. Terraform does not show its last
// read.
func unreadDeleted(tf *planDocument, d difference) bool {
	for at, action := range tf.actions() {
		if action == "delete" && strings.HasPrefix(d.path, "plan/Changes/"+at+"/change/before") {
			return true
		}
	}
	return false
}

// unreadNested (D12) reports whether a difference is about computed values within an argument of a data source that is
// read later. Within the elements of a set or a map, they are unknown. Terraform plans null instead, and orders the set
// by it.
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

// leftAlone (D6) returns the addresses that drifted and that a step did not change. Terraform's apply records their
// last read, even if there is nothing else to apply. Hykube then has nothing to apply, and a refresh-only plan records
// it.
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
		// A destroy plan reports no drift.
		for at := range tf.States {
			m.unrecorded[at] = true
		}
	}
	return m.unrecorded
}

// orderDestroys sorts the deletes that Terraform does not order. Its graph has no edge between the destroy of a current
// instance and that of an instance that an earlier replace left deposed (two destroyers of one address). The creates
// keep their positions.
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

// deposed returns the changes that destroy deposed instances.
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

// dropQuiet (D5) removes what Terraform leaves unchanged and Hykube does not visit. A plan without refresh visits only
// the changes and their dependants.
func dropQuiet(tf, hy *planDocument) {
	for at, action := range tf.actions() {
		if action == "no-op" && hy.Changes[at] == nil {
			delete(tf.Changes, at)
			delete(tf.Values, at)
		}
	}
}

// settleChange removes fields that only Terraform or OpenTofu writes, or only one version.
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

// bare (D8) omits null and empty values. Hykube finds drift in the status of the object, which has no nulls.
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

// mask is Hykube's text for a secret.
const mask = "(sensitive value)"

// masked replaces the values that the flags mark as sensitive. Null is not secret.
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

// dropStale (D4) removes those of Terraform's dependencies that an earlier step recorded and that Hykube no longer has.
// If a resource between two others no longer refers to one of them, Terraform's record of the other keeps that
// dependency for some time.
func (m *expectation) dropStale(tf, hy map[string]*state) {
	for at, a := range tf {
		recorded := a.Dependencies
		if b := hy[at]; b != nil {
			a.Dependencies = slices.DeleteFunc(slices.Clone(recorded), func(d string) bool {
				return slices.Contains(m.dependencies[at], d) && !slices.Contains(b.Dependencies, d)
			})
			if len(a.Dependencies) == 0 {
				a.Dependencies = nil
			}
		}
		m.dependencies[at] = recorded
	}
}

// closed (D4) adds the dependencies of the dependencies to the recorded ones. Terraform records all, and Hykube only
// the direct ones.
func closed(states map[string]*state) map[string]*state {
	out := map[string]*state{}
	behind := map[string][]string{} // by resource: a reference has no key of an instance
	for at, s := range states {
		behind[unkeyed(at)] = append(behind[unkeyed(at)], s.Dependencies...)
	}
	for at, s := range states {
		seen := map[string]bool{}
		var visit func(string)
		visit = func(at string) {
			if !seen[at] {
				seen[at] = true
				for _, d := range behind[at] {
					visit(d)
				}
			}
		}
		for _, d := range s.Dependencies {
			visit(d)
		}
		delete(seen, at)
		if strings.HasPrefix(at, "data.") {
			clear(seen) // Terraform records none for a data source
		}
		out[at] = &state{Attributes: s.Attributes, Tainted: s.Tainted, Dependencies: slices.Sorted(maps.Keys(seen))}
	}
	return out
}
