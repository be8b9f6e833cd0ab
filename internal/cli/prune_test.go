package cli

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// webSet is the set that --applyset web names in the namespace default.
var webSet = &applySet{session: &session{}, kind: "Secret", namespace: "default", name: "web"}

// The identifier is the one that kubectl makes of the same parent; the value is from kubectl's own test.
func TestApplySetID(t *testing.T) {
	set := &applySet{kind: "Secret", namespace: "test", name: "my-set"}
	if got, want := set.id(), "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"; got != want {
		t.Errorf("id %q, not %q", got, want)
	}
}

// hasSet records the parent of a set with a network and a Secret, that are not in twoFiles.
func (f *fakeServer) hasSet(labels map[string]string) {
	put := func(apiVersion, kind, resource, name string, change func(*unstructured.Unstructured)) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetName(name)
		u.SetNamespace("default")
		u.SetUID(types.UID("u-" + name))
		u.SetLabels(labels)
		change(u)
		f.put(u, resource)
	}
	put("v1", "Secret", "secrets", "web", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{setIDLabel: webSet.id()})
		u.SetAnnotations(map[string]string{toolingAnnotation: setTool + "/v1", kindsAnnotation: "Secret,sim-network.sim.hykube.io"})
	})
	put("v1", "Secret", "secrets", "old", func(*unstructured.Unstructured) {})
	put("sim.hykube.io/v1", "sim-network", "sim-networks", "old", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{v1alpha1.FinalizerState}) })
	put("sim.hykube.io/v1", "sim-network", "sim-networks", "never", func(*unstructured.Unstructured) {})
}

// writes are the requests that changed anything but plans.
func (f *fakeServer) writes() []string {
	return slices.DeleteFunc(slices.Clone(f.calls), func(call string) bool {
		return strings.HasPrefix(call, http.MethodGet) || strings.Contains(call, "/plans") || strings.Contains(call, "/selfsubject")
	})
}

var ofWeb = map[string]string{partOfLabel: webSet.id()}

// Objects that left the files are planned as deleted. After a no, nothing is written. After a yes, only they are
// deleted.
func TestPrune(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		answer string
		code   int
		writes []string
	}{
		{"plan", []string{"plan"}, "", ExitDone, nil},
		{"no", []string{"apply"}, "no\n", ExitError, nil},
		{"yes", []string{"apply"}, "yes\n", ExitDone, []string{
			"PATCH secrets/web", "PATCH secrets/db", "PATCH sim-networks/main", "DELETE sim-networks/never", "DELETE sim-networks/old", "DELETE secrets/old", "PATCH secrets/web"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFakeServer(t)
			f.hasSet(ofWeb)
			f.applying = func(f *fakeServer, p *v1alpha1.Plan) {
				f.mu.Lock()
				delete(f.objects, "sim.hykube.io/v1/sim-networks/default/old")
				f.mu.Unlock()
				f.applying = nil
				f.apply(p)
			}
			out, errOut, code := f.runIn(asking, tc.answer, append(tc.args, "-f", write(t, twoFiles), "--prune", "--applyset", "web")...)
			var writes []string
			for _, call := range f.writes() {
				method, path, _ := strings.Cut(call, " ")
				parts := strings.Split(path, "/")
				writes = append(writes, method+" "+strings.Join(parts[len(parts)-2:], "/"))
			}
			if diff := cmp.Diff(tc.writes, writes); diff != "" || code != tc.code {
				t.Errorf("code %d, writes (-want +got):\n%s\n%s\n%s", code, diff, out, errOut)
			}
			for _, want := range []string{"- secret/old: deleted", "- sim-network.sim.hykube.io/never: deleted", "sim_network.old"} {
				if !strings.Contains(out, want) {
					t.Errorf("missing %q in:\n%s", want, out)
				}
			}
			var pruned []string
			for _, ref := range f.pruned {
				pruned = append(pruned, ref.Kind+"/"+ref.Name)
			}
			if diff := cmp.Diff([]string{"sim-network/never", "sim-network/old"}, slices.Sorted(slices.Values(pruned))); diff != "" {
				t.Errorf("uploaded as pruned: %s", diff)
			}
			for _, u := range f.uploaded {
				if u.GetLabels()[partOfLabel] != webSet.id() {
					t.Errorf("%s %q was uploaded without the label of the set", u.GetKind(), u.GetName())
				}
			}
		})
	}
}

// Files without any resource make no plan, and what left them goes all the same.
func TestPruneWithoutPlan(t *testing.T) {
	f := newFakeServer(t)
	f.hasSet(ofWeb)
	delete(f.objects, "sim.hykube.io/v1/sim-networks/default/old")
	_, secret, _ := strings.Cut(twoFiles, "---\n")
	out, errOut, code := f.runIn(asking, "yes\n", "apply", "-f", write(t, secret), "--prune", "--applyset", "web")
	if code != ExitDone || !strings.Contains(errOut, "delete the objects that you removed from them?") || !strings.Contains(out, "secret/old pruned") || len(f.plans) > 0 {
		t.Errorf("code %d, %d plans:\n%s\n%s", code, len(f.plans), out, errOut)
	}
	if got, want := slices.Sorted(maps.Keys(f.objects)), []string{"v1/secrets/default/db", "v1/secrets/default/web"}; !cmp.Equal(got, want) {
		t.Errorf("objects %v", got)
	}
}

// A path without any file may be a mistake; a file that holds no object says that all of the set is to go.
func TestPruneWithoutObjects(t *testing.T) {
	f := newFakeServer(t)
	f.hasSet(ofWeb)
	if _, errOut, code := f.run("apply", "-f", t.TempDir(), "--prune", "--applyset", "web", "--auto-approve"); code != ExitError ||
		!strings.Contains(errOut, `would delete all members of the applyset "web"`) || len(f.writes()) > 0 {
		t.Errorf("code %d, writes %v: %s", code, f.writes(), errOut)
	}
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := creates(p)
		for i := range out {
			out[i].Action, out[i].ActionReason, out[i].Before, out[i].After = v1alpha1.ActionDelete, "delete_because_no_resource_config", out[i].After, nil
		}
		return out
	}
	out, errOut, code := f.run("plan", "-f", write(t, "# nothing is left\n"), "--prune", "--applyset", "web")
	for _, want := range []string{"sim_network.old will be destroyed", "because its object is no longer in the files", "- secret/old: deleted"} {
		if !strings.Contains(out, want) {
			t.Errorf("code %d, missing %q in:\n%s\n%s", code, want, out, errOut)
		}
	}
}

// Objects outside of the set stay, and those of another set cannot be taken.
func TestPruneLeavesOthers(t *testing.T) {
	f := newFakeServer(t)
	f.hasSet(map[string]string{partOfLabel: "applyset-other-v1"})
	before := slices.Sorted(maps.Keys(f.objects))
	out, errOut, code := f.run("plan", "-f", write(t, twoFiles), "--prune", "--applyset", "web")
	if code != ExitDone || strings.Contains(out, "  - ") || len(f.pruned) > 0 || !cmp.Equal(before, slices.Sorted(maps.Keys(f.objects))) {
		t.Errorf("code %d:\n%s\n%s", code, out, errOut)
	}
	_, errOut, code = f.run("apply", "-f", write(t, strings.ReplaceAll(twoFiles, "name: main", "name: old")), "--prune", "--applyset", "web", "--auto-approve")
	if code != ExitError || !strings.Contains(errOut, `first.yaml:1: sim-network "old" belongs to another applyset`) || len(f.writes()) > 0 {
		t.Errorf("code %d: %s", code, errOut)
	}
}

func TestPruneRefuses(t *testing.T) {
	for _, tc := range []struct {
		reason, files string
		args, denied  []string
		code          int
		want          string
	}{
		{"no name", twoFiles, []string{"--prune"}, nil, ExitError, "add --applyset NAME"},
		{"a name alone", twoFiles, []string{"--applyset", "web"}, nil, ExitError, "--applyset is for --prune"},
		{"a part of the files", twoFiles, []string{"--prune", "--applyset", "web", "--target", "sim_network.main"}, nil, ExitError, "it excludes --target"},
		{"another kind of parent", twoFiles, []string{"--prune", "--applyset", "plan/web"}, nil, ExitError, "write NAME, secret/NAME or configmap/NAME"},
		{"no parent", twoFiles, []string{"--prune", "--applyset", "old"}, nil, ExitError, "it is not the parent of an applyset"},
		{"a label in the file", strings.Replace(twoFiles, "name: main", "name: main, labels: {"+partOfLabel+": x}", 1), []string{"--prune", "--applyset", "web"}, nil, ExitError, "take it out of the file"},
		{"no right", twoFiles, []string{"--prune", "--applyset", "web"}, []string{"delete sim-networks"}, ExitRefused, `that needs the verb "delete" on sim-networks.sim.hykube.io in namespace default`},
		{"a reference to what left", strings.Replace(twoFiles, "10.0.0.0/16", "'${secret.old.cidr}'", 1), []string{"--prune", "--applyset", "web"}, nil, ExitError, `refers to the Secret "old", which is no longer in the files`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFakeServer(t)
			f.hasSet(ofWeb)
			f.denied = tc.denied
			_, errOut, code := f.run(append([]string{"apply", "--auto-approve", "-f", write(t, tc.files)}, tc.args...)...)
			if code != tc.code || !strings.Contains(errOut, tc.want) || len(f.writes()) > 0 {
				t.Errorf("code %d, writes %v: %s", code, f.writes(), errOut)
			}
		})
	}
	f := newFakeServer(t)
	f.refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			return status(403, metav1.StatusReasonForbidden, `cannot list resource "secrets"`)
		}
		return nil
	}
	if _, errOut, code := f.run("plan", "-f", write(t, twoFiles), "--prune", "--applyset", "web"); code != ExitRefused || !strings.Contains(errOut, "find the members of applyset secret/web") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
