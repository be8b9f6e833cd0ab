package cli

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Many creates whose outcome is unknown print their text once, in a plan and at the end of an apply.
func TestTextThatManyResourcesShare(t *testing.T) {
	const after = "; the resource may exist. If it exists: kubectl hykube resolve"
	var targets []string
	for i := range 16 {
		targets = append(targets, "--target", fmt.Sprintf("sim_network.n%d", i))
	}
	lost := func(i int) v1alpha1.Diagnostic {
		return v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Outcome of a create is unknown", Address: fmt.Sprintf("sim_network.n%d", i),
			Detail: fmt.Sprintf("At 2026-11-23T09:00:%02dZ a create of sim_network.n%d started%s sim-network/n%d -n default --adopt ID. Or: kubectl hykube plan --exclude sim_network.n%d -n default", i, i, after, i, i)}
	}
	for reason, prepare := range map[string]func(f *fakeServer){
		"plan": func(f *fakeServer) {
			f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				for i := range 16 {
					p.Status.Diagnostics = append(p.Status.Diagnostics, lost(i))
				}
				f.set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "errors")
				f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "errors")
				return nil
			}
		},
		"apply": func(f *fakeServer) {
			f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
				f.mu.Lock()
				defer f.mu.Unlock()
				for i := range f.changes[p.Namespace+"/"+p.Name] {
					c := &f.changes[p.Namespace+"/"+p.Name][i]
					c.State, c.Diagnostics = v1alpha1.ChangeUnknown, []v1alpha1.Diagnostic{lost(i)}
				}
				f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "errors")
			}
		},
	} {
		f := newFakeServer(t)
		prepare(f)
		_, errOut, code := f.run(append([]string{"apply", "--auto-approve"}, targets...)...)
		if code != ExitError || strings.Count(errOut, after) != 1 || !strings.Contains(errOut, "The same holds for 15 other resources: sim_network.n1, sim_network.n2, ") {
			t.Errorf("%s: code %d:\n%s", reason, code, errOut)
		}
	}
}

// Of many failures with texts of their own, the first ones are printed in full, errors before warnings, and then the number of
// the others with the command that lists them. The counts of the plan come last.
func TestManyDifferentFailures(t *testing.T) {
	f := newFakeServer(t)
	f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		out := make([]v1alpha1.PlanChange, 300)
		for i := range out {
			out[i] = v1alpha1.PlanChange{Index: int32(i), Address: fmt.Sprintf("sim_network.net[%d]", i), Type: "sim_network", Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending,
				Object: v1alpha1.ObjectReference{APIVersion: "sim.hykube.io/v1", Kind: "sim-network", Namespace: "default", Name: fmt.Sprintf("net[%d]", i), Set: "fleet"}}
		}
		return out
	}
	if _, errOut, code := f.run("plan"); code != ExitDone {
		t.Fatal(errOut)
	}
	f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
		f.mu.Lock()
		defer f.mu.Unlock()
		changes := f.changes["default/plan-x7k2d"]
		for i := range changes {
			c := &changes[i]
			c.State, c.Diagnostics = v1alpha1.ChangeFailed, []v1alpha1.Diagnostic{
				{Severity: v1alpha1.SeverityWarning, Summary: "Slow region", Detail: fmt.Sprintf("The region of n%d is slow.", i)},
				{Severity: v1alpha1.SeverityError, Summary: fmt.Sprintf("Network net-%04x exists", i), Detail: fmt.Sprintf("The name n%d is taken.", i)},
			}
		}
		p.Status.Progress = &v1alpha1.PlanProgress{Total: 300, Failed: 300}
		f.set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "300 changes failed")
	}
	out, errOut, code := f.run("approve", "plan-x7k2d", "--digest", "sha256:abc")
	if code != ExitError {
		t.Fatalf("code %d: %s%s", code, out, errOut)
	}
	rest := errOut
	for _, text := range []string{
		"Error: Network net-0000 exists", "Error: Network net-0002 exists", "Warning: Slow region",
		"… and 297 more like it (Network net-0003 exists): kubectl hykube instances fleet --reason ApplyFailed -o wide -n default\n",
		"… and 297 more like it (Slow region): sim_network.net[3], ", "0 of 300 changes made",
	} {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Fatalf("%q is missing, or not after the texts before it:\n%s", text, errOut)
		}
		rest = after
	}
	if n := strings.Count(errOut, "\n"); n > 60 {
		t.Errorf("%d lines:\n%s", n, errOut)
	}
	out, _, _ = f.run("status", "plan-x7k2d")
	if n := strings.Count(out, "Error: "); n != inFullAlike || !strings.Contains(out, "… and 297 more like it") {
		t.Errorf("status prints %d errors in full:\n%s", n, out)
	}
}

// Of many unchanged objects, only the first ones have a line.
func TestManyUnchangedObjects(t *testing.T) {
	f := newFakeServer(t)
	text := ""
	for i := range 30 {
		name := fmt.Sprintf("n%d", i)
		f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name}, "spec": map[string]any{"zone": "a"}}}, "sim-networks")
		text += "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: " + name + "}\nspec: {zone: a}\n---\n"
	}
	out, errOut, code := f.run("plan", "--record", "-f", write(t, text))
	if code != ExitDone || strings.Count(out, " unchanged\n") != listedChanges+1 || !strings.Contains(out, "\n20 more objects unchanged\n") {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}

// A long list may outlive the revision of its first page. The plugin then lists the rest at the current revision.
func TestALongListOutlivesItsRevision(t *testing.T) {
	f := newFakeServer(t)
	text := ""
	for i := range listInstead {
		name := fmt.Sprintf("n%d", i)
		f.put(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "sim.hykube.io/v1", "kind": "sim-network",
			"metadata": map[string]any{"name": name, "namespace": "default", "uid": "u-" + name}, "spec": map[string]any{"zone": "a"}}}, "sim-networks")
		text += "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: " + name + "}\nspec: {zone: a}\n---\n"
	}
	var pages atomic.Int64
	f.refuse = func(r *http.Request) *metav1.Status {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "/sim-networks") {
			return nil
		}
		if n := pages.Add(1); n > 1 {
			if got := r.URL.Query().Get("continue"); got != "rest" {
				t.Errorf("list %d continues with %q", n, got)
			}
			return nil
		}
		expired := status(http.StatusGone, metav1.StatusReasonExpired, "the continue parameter is too old")
		expired.Continue = "rest"
		return expired
	}
	out, errOut, code := f.run("plan", "--record", "-f", write(t, text))
	if code != ExitDone || pages.Load() != 2 || !strings.Contains(out, "\n40 more objects unchanged\n") {
		t.Errorf("code %d after %d lists: %s\n%s", code, pages.Load(), errOut, out)
	}
}

// The metadata of an object show each change of it.
func TestMetadataShowAChange(t *testing.T) {
	for field, value := range map[string]any{
		"": nil, "generation": int64(2), "labels": map[string]any{"a": "b"}, "annotations": map[string]any{"a": "b"}, "finalizers": []any{"example.com/held"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "u"}},
	} {
		before := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1"}}
		after := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"generation": int64(1), "resourceVersion": "2"}}}
		if field != "" {
			after.Object["metadata"].(map[string]any)[field] = value
		}
		if got := sameContent(before, after); got != (field == "") {
			t.Errorf("with another %q: the same content is %t", field, got)
		}
	}
}

// A speculative plan cannot be approved, so it need not be discarded.
func TestDiscardSpeculativePlan(t *testing.T) {
	f := newFakeServer(t)
	f.plans["default/p"] = &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: v1alpha1.PlanSpec{Speculative: true}}
	_, errOut, code := f.run("discard", "p")
	if code != ExitError || !strings.Contains(errOut, `plan "p" is speculative and cannot be approved, so there is nothing to discard. To remove it: kubectl delete plan p -n default`) || strings.Contains(errOut, "after you read it") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// Many changes that were skipped for the same reason share a line. Others have one each.
func TestSkippedChangesShareALine(t *testing.T) {
	var all []skipped
	for i := range 30 {
		all = append(all, skipped{fmt.Sprintf("sim_network.n%d", i), "the rollout stopped"})
	}
	all = append(all, skipped{"sim_subnet.a", "it depends on sim_network.n1"})
	want := []string{"30 resources, such as sim_network.n0: the rollout stopped", "sim_subnet.a: it depends on sim_network.n1"}
	if got := skippedLines(all); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := skippedLines(all[:maxSkipped]); len(got) != maxSkipped || got[0] != "sim_network.n0: the rollout stopped" {
		t.Errorf("%q", got)
	}
}
