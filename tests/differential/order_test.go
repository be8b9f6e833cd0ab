package differential

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file compares the order of calls about objects that refer to each other.

// madeCall is a call that changed an object of the cloud.
type madeCall struct{ object, op string }

// compareOrder compares the order of the calls about two objects of which one refers to the other by its recorded state.
// Terraform has no order for two creates or updates if the new configuration has no reference.
func (m *expectation) compareOrder(c config, tf, hy *outcome) (out []difference) {
	for _, o := range []*outcome{tf, hy} {
		for at, s := range o.States {
			if id, ok := s.Attributes["id"].(string); ok {
				m.owners[id] = strings.Fields(at)[0]
			}
		}
	}
	if tf.PlanError+hy.PlanError+tf.ApplyError+hy.ApplyError != "" {
		return nil // some calls are missing
	}
	needs := c.needs()
	ours := map[[2]madeCall]bool{}
	for i, first := range hy.Order {
		for _, then := range hy.Order[i+1:] {
			ours[[2]madeCall{first, then}] = true
		}
	}
	for i, first := range tf.Order {
		for _, then := range tf.Order[i+1:] {
			x, y := m.owners[first.object], m.owners[then.object]
			if x == y || !m.references[x][y] && !m.references[y][x] {
				continue
			}
			if first.op != "delete" && then.op != "delete" && !needs[x][y] && !needs[y][x] {
				continue
			}
			if ours[[2]madeCall{then, first}] && !ours[[2]madeCall{first, then}] {
				text := fmt.Sprintf("%s %s before %s %s", first.op, x, then.op, y)
				out = append(out, difference{"order of calls", text, "the opposite"})
			}
		}
	}
	return out
}

// recordedReferences returns the recorded references that both sides have, direct and indirect ones. Terraform's have no
// keys of instances, so references to instances are left out.
func recordedReferences(tf, hy map[string]*state) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for at, s := range tf {
		name := strings.Fields(at)[0]
		found := map[string]bool{}
		if other := hy[at]; other != nil {
			for queue := slices.Clone(other.Dependencies); len(queue) > 0; queue = queue[1:] {
				d := queue[0]
				if found[d] {
					continue
				}
				found[d] = true
				if behind := hy[d]; behind != nil {
					queue = append(queue, behind.Dependencies...)
				}
			}
		}
		for _, d := range s.Dependencies {
			if found[d] && hy[d] != nil {
				if out[name] == nil {
					out[name] = map[string]bool{}
				}
				out[name][d] = true
			}
		}
	}
	return out
}

// keptLonger removes the differences with one cause: Terraform has no order between the destroy of a replaced instance
// and the changes to which only its new instance refers. Hykube makes these changes first. If one of them fails, Terraform
// has destroyed the old instance, and Hykube has not changed it. keptLonger reports whether it removed any.
func (m *expectation) keptLonger(c config, tf, hy *outcome, differences []difference) (rest []difference, kept bool) {
	if tf.ApplyError == "" || hy.ApplyError == "" || tf.Plan == nil || hy.Plan == nil {
		return differences, false
	}
	d := replaced{needs: c.needs(), recorded: m.references, tf: tf, hy: hy}
	var places []string
	for at, action := range hy.Plan.actions() {
		if action == "delete create" && tf.Plan.actions()[at] == action && d.keptByHykubeAlone(at) {
			places = append(places, d.places(at)...)
		}
	}
	for _, diff := range differences {
		if !slices.ContainsFunc(places, func(p string) bool { return diff.path == p || strings.HasPrefix(diff.path, p+"/") }) {
			rest = append(rest, diff)
		}
	}
	return rest, len(rest) < len(differences)
}

type replaced struct {
	needs, recorded map[string]map[string]bool
	tf, hy          *outcome
}

// keptByHykubeAlone reports whether Terraform destroyed an instance without creating the new one, while Hykube has not
// changed it because a dependency of the new instance alone is not done.
func (d replaced) keptByHykubeAlone(at string) bool {
	key := d.key(at)
	if key == "" || len(d.tf.Calls[key]) != 1 || !strings.HasPrefix(d.tf.Calls[key][0], "delete ") || strings.Contains(d.tf.Calls[key][0], "refused") ||
		len(d.hy.Calls[key]) > 0 || d.hy.undone[at] != v1alpha1.ChangeSkipped {
		return false
	}
	for need := range d.needs[at] {
		if d.hy.undone[need] != "" && !d.recorded[at][need] {
			return true
		}
	}
	return false
}

// value returns an attribute of an address before or after the plan.
func (d replaced) value(at, side, attribute string) string {
	change, _ := d.hy.Plan.Changes[at]["change"].(map[string]any)
	values, _ := change[side].(map[string]any)
	text, _ := values[attribute].(string)
	return text
}

// key returns the key of the calls to the cloud about an address; "" for a type without calls.
func (d replaced) key(at string) string {
	typ, _, _ := strings.Cut(at, ".")
	name := d.value(at, "after", "name")
	if kind := vocabulary()[typ].kind; kind != "" && name != "" && (d.value(at, "before", "name") == "" || d.value(at, "before", "name") == name) {
		return kind + " " + name
	}
	return ""
}

// places returns all paths about an address.
func (d replaced) places(at string) []string {
	out := []string{"state/" + at, "state/" + at + " deposed 1"}
	key := d.key(at)
	if key == "" {
		return out
	}
	out = append(out, "calls/"+key)
	for _, o := range []*outcome{d.tf, d.hy} {
		for _, call := range o.Calls[key] {
			if words := strings.Fields(call); len(words) > 1 {
				out = append(out, "cloud/"+words[1])
			}
		}
	}
	return out
}

// needs returns the addresses that each address refers to, directly or through others.
func (c config) needs() map[string]map[string]bool {
	direct := map[string][]string{}
	for _, at := range c.addresses() {
		text := fmt.Sprint(c.Resources[at], c.Lifecycle[at]["dependsOn"])
		for _, other := range c.addresses() {
			if other != at && regexp.MustCompile(`(^|[^A-Za-z0-9_.])`+regexp.QuoteMeta(other)+`($|[^A-Za-z0-9_-])`).MatchString(text) {
				direct[at] = append(direct[at], other)
			}
		}
	}
	out := map[string]map[string]bool{}
	for at := range direct {
		out[at] = map[string]bool{}
		for queue := slices.Clone(direct[at]); len(queue) > 0; queue = queue[1:] {
			if !out[at][queue[0]] {
				out[at][queue[0]] = true
				queue = append(queue, direct[queue[0]]...)
			}
		}
	}
	return out
}

// TestKeptLonger expects the exception to cover its case, and nothing else. sim_subnet.s refers to sim_network.n, and is
// replaced.
func TestKeptLonger(t *testing.T) {
	c := config{Resources: map[string]map[string]any{"sim_network.n": {"name": "n"}, "sim_subnet.s": {"name": "s", "network_id": "${sim_network.n.id}"}}}
	destroyed := map[string][]string{"subnet s": {"delete sub-1"}}
	failed := map[string]v1alpha1.ChangeState{"sim_network.n": v1alpha1.ChangeFailed, "sim_subnet.s": v1alpha1.ChangeSkipped}
	behind := []string{"calls/subnet s", "cloud/sub-1", "state/sim_subnet.s"}
	for _, tt := range []struct {
		why      string
		tf, hy   map[string][]string
		undone   map[string]v1alpha1.ChangeState
		recorded bool
		success  bool
		paths    []string
		want     []string
	}{
		{why: "the network failed, and Hykube kept the old subnet", tf: destroyed, undone: failed, paths: behind},
		{why: "the old subnet refers to the network, too", tf: destroyed, undone: failed, recorded: true, paths: behind, want: behind},
		{why: "nothing failed", tf: destroyed, undone: failed, success: true, paths: behind, want: behind},
		{why: "the network did not fail", tf: destroyed, undone: map[string]v1alpha1.ChangeState{"sim_subnet.s": v1alpha1.ChangeSkipped}, paths: behind, want: behind},
		{why: "Hykube destroyed it and Terraform kept it", hy: destroyed, undone: failed, paths: behind, want: behind},
		{why: "Terraform made the new one", tf: map[string][]string{"subnet s": {"delete sub-1", "create sub-2"}}, undone: failed, paths: behind, want: behind},
		{why: "another object", tf: destroyed, undone: failed, paths: append(behind, "calls/bucket b"), want: []string{"calls/bucket b"}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			change := func(name string, actions ...any) map[string]any {
				return map[string]any{"change": map[string]any{"actions": actions, "after": map[string]any{"name": name}}}
			}
			p := &planDocument{Changes: map[string]map[string]any{"sim_network.n": change("n", "create"), "sim_subnet.s": change("s", "delete", "create")}}
			tf, hy := &outcome{Plan: p, ApplyError: "failed", Calls: tt.tf}, &outcome{Plan: p, ApplyError: "failed", Calls: tt.hy, undone: tt.undone}
			if tt.success {
				hy.ApplyError = ""
			}
			m := newMemory()
			if tt.recorded {
				m.references = map[string]map[string]bool{"sim_subnet.s": {"sim_network.n": true}}
			}
			var in []difference
			for _, path := range tt.paths {
				in = append(in, difference{path: path})
			}
			rest, kept := m.keptLonger(c, tf, hy, in)
			var got []string
			for _, d := range rest {
				got = append(got, d.path)
			}
			if !slices.Equal(got, tt.want) || kept != (len(tt.want) < len(tt.paths)) {
				t.Errorf("left over: %q, kept %t; want %q", got, kept, tt.want)
			}
		})
	}
}

// TestCompareOrder has a network and a subnet whose recorded state refers to it.
func TestCompareOrder(t *testing.T) {
	states := map[string]*state{
		"sim_network.n": {Attributes: map[string]any{"id": "net-1"}}, "sim_bucket.b": {Attributes: map[string]any{"id": "bkt-1"}},
		"sim_subnet.s": {Attributes: map[string]any{"id": "sub-1"}, Dependencies: []string{"sim_network.n"}},
	}
	destroy, update, bucket := madeCall{"sub-1", "delete"}, madeCall{"net-1", "update"}, madeCall{"bkt-1", "update"}
	for why, tc := range map[string]struct {
		tf, hy []madeCall
		want   int
	}{
		"the same order":                {[]madeCall{destroy, update}, []madeCall{destroy, update}, 0},
		"the update before the destroy": {[]madeCall{destroy, update}, []madeCall{update, destroy}, 1},
		"another object":                {[]madeCall{destroy, bucket}, []madeCall{bucket, destroy}, 0},
		"one object":                    {[]madeCall{destroy, {"sub-1", "create"}}, []madeCall{{"sub-1", "create"}, destroy}, 0},
		"updates without a reference":   {[]madeCall{{"sub-1", "update"}, update}, []madeCall{update, {"sub-1", "update"}}, 0},
	} {
		m := newMemory()
		m.references = recordedReferences(states, states)
		if got := m.compareOrder(config{}, &outcome{Order: tc.tf, States: states}, &outcome{Order: tc.hy, States: states}); len(got) != tc.want {
			t.Errorf("%s: %v", why, got)
		}
	}
}

// TestOrderDestroys expects one order for destroys without an order, and no other call to move.
func TestOrderDestroys(t *testing.T) {
	p := &planDocument{Changes: map[string]map[string]any{
		"sim_instance.a":         {"change": map[string]any{"actions": []any{"create", "delete"}}},
		"sim_instance.a deposed": {"change": map[string]any{"actions": []any{"delete"}, "before": map[string]any{"id": "ins-1"}}},
	}}
	tf := &outcome{Plan: p, Calls: map[string][]string{"instance a": {"create ins-3", "delete ins-2", "delete ins-1"}, "disk b": {"delete dsk-2", "delete dsk-1"}}}
	hy := &outcome{Plan: p, Calls: map[string][]string{"instance a": {"delete ins-1", "create ins-3", "delete ins-2"}}}
	orderDestroys(tf, hy)
	if got := tf.Calls["instance a"]; !slices.Equal(got, []string{"create ins-3", "delete ins-1", "delete ins-2"}) {
		t.Errorf("deletes beside one of what was left behind: %q", got)
	}
	if got := tf.Calls["disk b"]; !slices.Equal(got, []string{"delete dsk-2", "delete dsk-1"}) {
		t.Errorf("nothing was left behind: %q", got)
	}
	if got := hy.Calls["instance a"]; !slices.Equal(got, []string{"delete ins-1", "create ins-3", "delete ins-2"}) {
		t.Errorf("a create between deletes: %q", got)
	}
}
