package differential

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

// destroyedLate (D16) removes the differences with one cause: Hykube destroys an instance that is replaced after all
// dependencies of its new instance are done, and Terraform before. Only a failed apply shows that. It reports whether
// it removed any. There are two cases:
//   - The destroy failed on both sides. Terraform has changed neither the dependencies of the new instance nor their
//     dependants. Hykube has.
//   - A dependency of the new instance failed, or waits for one that failed. Terraform has destroyed the old instance and
//     created no new one. Hykube has not changed it.
func destroyedLate(c config, tf, hy *outcome, differences []difference) (rest []difference, late bool) {
	if tf.ApplyError == "" || hy.ApplyError == "" || tf.Plan == nil || hy.Plan == nil {
		return differences, false
	}
	d := lateDestroys{needs: c.needs(), actions: hy.Plan.actions(), tf: tf, hy: hy}
	excused := map[string]bool{}
	for at, action := range d.actions {
		if action != "delete create" || tf.Plan.actions()[at] != action {
			continue
		}
		if d.refusedDestroy(at) {
			d.ahead(at, excused)
		}
		if d.keptByHykubeAlone(at) {
			excused[at] = true
		}
	}
	var places []string
	for at := range excused {
		places = append(places, d.places(at)...)
	}
	for _, diff := range differences {
		if !slices.ContainsFunc(places, func(p string) bool { return diff.path == p || strings.HasPrefix(diff.path, p+"/") }) {
			rest = append(rest, diff)
		}
	}
	return rest, len(rest) < len(differences)
}

type lateDestroys struct {
	needs   map[string]map[string]bool
	actions map[string]string
	tf, hy  *outcome
}

// changes reports whether the plan changes an address.
func (d lateDestroys) changes(at string) bool { return d.actions[at] != "" && d.actions[at] != "no-op" }

// refusedDestroy reports whether the destroy of the instance failed on both sides.
func (d lateDestroys) refusedDestroy(at string) bool {
	key := d.key(at)
	refused := func(o *outcome) bool {
		calls := o.Calls[key]
		return len(calls) > 0 && strings.HasPrefix(calls[len(calls)-1], "delete ") && strings.Contains(calls[len(calls)-1], " refused with ")
	}
	return key != "" && refused(d.tf) && refused(d.hy) && slices.Equal(d.tf.Calls[key], d.hy.Calls[key])
}

// ahead adds the changes that Hykube made before a failed destroy, and that Terraform did not try.
func (d lateDestroys) ahead(failed string, excused map[string]bool) {
	held := maps.Clone(d.needs[failed])
	for at, needs := range d.needs {
		for need := range d.needs[failed] {
			if at != failed && needs[need] && d.changes(need) {
				held[at] = true
			}
		}
	}
	for at := range held {
		if key := d.key(at); d.changes(at) && !d.needs[at][failed] && (key == "" || len(d.tf.Calls[key]) == 0) {
			excused[at] = true
		}
	}
}

// keptByHykubeAlone reports whether Terraform destroyed an instance without creating the new one, while Hykube has not
// changed it because a dependency of the new instance is not done.
func (d lateDestroys) keptByHykubeAlone(at string) bool {
	key := d.key(at)
	if key == "" || len(d.tf.Calls[key]) != 1 || !strings.HasPrefix(d.tf.Calls[key][0], "delete ") || strings.Contains(d.tf.Calls[key][0], "refused") ||
		len(d.hy.Calls[key]) > 0 || d.hy.undone[at] != v1alpha1.ChangeSkipped {
		return false
	}
	for need := range d.needs[at] {
		if d.hy.undone[need] != "" {
			return true
		}
	}
	return false
}

// value returns an attribute of an address before or after the plan.
func (d lateDestroys) value(at, side, attribute string) string {
	change, _ := d.hy.Plan.Changes[at]["change"].(map[string]any)
	values, _ := change[side].(map[string]any)
	text, _ := values[attribute].(string)
	return text
}

// key returns the key of the calls to the cloud about an address; "" for a type without calls.
func (d lateDestroys) key(at string) string {
	typ, _, _ := strings.Cut(at, ".")
	name := d.value(at, "after", "name")
	if kind := vocabulary()[typ].kind; kind != "" && name != "" && (d.value(at, "before", "name") == "" || d.value(at, "before", "name") == name) {
		return kind + " " + name
	}
	return ""
}

// places returns all paths about an address.
func (d lateDestroys) places(at string) []string {
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

// TestDestroyedLate expects the exception to cover its case, and nothing else. sim_subnet.s refers to sim_network.n,
// and is replaced. sim_bucket.b is independent of both.
func TestDestroyedLate(t *testing.T) {
	c := config{Resources: map[string]map[string]any{
		"sim_network.n": {"name": "n"}, "sim_subnet.s": {"name": "s", "network_id": "${sim_network.n.id}"},
		"sim_disk.d": {"name": "d", "tags": map[string]any{"net": "${sim_network.n.id}"}}, "sim_bucket.b": {"name": "b"},
	}}
	refused := map[string][]string{"subnet s": {"delete sub-1 refused with 409"}}
	destroyed := map[string][]string{"subnet s": {"delete sub-1"}}
	failed := map[string]v1alpha1.ChangeState{"sim_network.n": v1alpha1.ChangeFailed, "sim_subnet.s": v1alpha1.ChangeSkipped}
	with := func(calls map[string][]string, more ...string) map[string][]string {
		calls = maps.Clone(calls)
		if len(more) > 0 {
			calls[more[0]] = more[1:]
		}
		return calls
	}
	ahead := []string{"calls/network n", "cloud/net-1", "state/sim_network.n/Attributes/id"}
	behind := []string{"calls/subnet s", "cloud/sub-1", "state/sim_subnet.s"}
	for _, tt := range []struct {
		why     string
		action  string
		tf, hy  map[string][]string
		undone  map[string]v1alpha1.ChangeState
		success bool
		paths   []string
		want    []string
	}{
		{why: "the destroy failed, and Hykube made the network before", tf: refused, hy: with(refused, "network n", "create net-1"), paths: ahead},
		{why: "and what refers to the network", tf: refused, hy: with(refused, "disk d", "create dsk-1"), paths: []string{"calls/disk d", "cloud/dsk-1"}},
		{why: "both tried the network", tf: with(refused, "network n", "create net-1 refused with 400"), hy: with(refused, "network n", "create net-1"), paths: ahead, want: ahead},
		{why: "the destroy failed for Hykube alone", tf: destroyed, hy: with(refused, "network n", "create net-1"), paths: ahead, want: ahead},
		{why: "nothing failed", tf: refused, hy: with(refused, "network n", "create net-1"), success: true, paths: ahead, want: ahead},
		{why: "the subnet is deleted, not replaced", action: "delete", tf: refused, hy: with(refused, "network n", "create net-1"), paths: ahead, want: ahead},
		{why: "a bucket has nothing to do with it", tf: refused, hy: with(refused, "bucket b", "create bkt-1"), paths: []string{"calls/bucket b", "state/sim_bucket.b"}, want: []string{"calls/bucket b", "state/sim_bucket.b"}},
		{why: "the network failed, and Hykube kept the old subnet", tf: destroyed, undone: failed, paths: behind},
		{why: "the network did not fail", tf: destroyed, undone: map[string]v1alpha1.ChangeState{"sim_subnet.s": v1alpha1.ChangeSkipped}, paths: behind, want: behind},
		{why: "Hykube destroyed it and Terraform kept it", hy: destroyed, undone: failed, paths: behind, want: behind},
		{why: "Terraform made the new one", tf: map[string][]string{"subnet s": {"delete sub-1", "create sub-2"}}, undone: failed, paths: behind, want: behind},
		{why: "Terraform updated a bucket, too", tf: with(destroyed, "bucket b", "update bkt-1"), undone: failed, paths: append(behind, "calls/bucket b"), want: []string{"calls/bucket b"}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			change := func(action, name string) map[string]any {
				var actions []any
				for _, a := range strings.Fields(action) {
					actions = append(actions, a)
				}
				return map[string]any{"change": map[string]any{"actions": actions, "after": map[string]any{"name": name}}}
			}
			p := &planDocument{Changes: map[string]map[string]any{
				"sim_network.n": change("create", "n"), "sim_subnet.s": change("delete create", "s"), "sim_disk.d": change("create", "d"), "sim_bucket.b": change("update", "b"),
			}}
			if tt.action != "" {
				p.Changes["sim_subnet.s"] = change(tt.action, "s")
			}
			tf, hy := &outcome{Plan: p, ApplyError: "failed", Calls: tt.tf}, &outcome{Plan: p, ApplyError: "failed", Calls: tt.hy, undone: tt.undone}
			if tt.success {
				hy.ApplyError = ""
			}
			var in []difference
			for _, path := range tt.paths {
				in = append(in, difference{path: path})
			}
			rest, late := destroyedLate(c, tf, hy, in)
			var got []string
			for _, d := range rest {
				got = append(got, d.path)
			}
			if !slices.Equal(got, tt.want) || late != (len(tt.want) < len(tt.paths)) {
				t.Errorf("left over: %q, late %t; want %q", got, late, tt.want)
			}
		})
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
