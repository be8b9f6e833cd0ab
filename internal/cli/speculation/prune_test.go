package speculation_test

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
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/tests/clitest"
)

const (
	// webSetID is the identifier of the set that --applyset web names in the namespace default.
	webSetID  = "applyset-zN5gMMt3uHLO5pHDCETR-9uiGqcPRNY0X24Hk0Rzcgo-v1"
	partOfSet = "applyset.kubernetes.io/part-of"
)

// hasSet records the parent of a set with a network and a Secret, that are not in twoFiles.
func hasSet(f *clitest.Server, labels map[string]string) {
	put := func(apiVersion, kind, resource, name string, change func(*unstructured.Unstructured)) {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
		u.SetName(name)
		u.SetNamespace("default")
		u.SetUID(types.UID("u-" + name))
		u.SetLabels(labels)
		change(u)
		f.Put(u, resource)
	}
	put("v1", "Secret", "secrets", "web", func(u *unstructured.Unstructured) {
		u.SetLabels(map[string]string{"applyset.kubernetes.io/id": webSetID})
		u.SetAnnotations(map[string]string{"applyset.kubernetes.io/tooling": "kubectl-hykube/v1", "applyset.kubernetes.io/contains-group-kinds": "Secret,sim-network.sim.hykube.io"})
	})
	put("v1", "Secret", "secrets", "old", func(*unstructured.Unstructured) {})
	put("sim.hykube.io/v1", "sim-network", "sim-networks", "old", func(u *unstructured.Unstructured) { u.SetFinalizers([]string{v1alpha1.FinalizerState}) })
	put("sim.hykube.io/v1", "sim-network", "sim-networks", "never", func(*unstructured.Unstructured) {})
}

var ofWeb = map[string]string{partOfSet: webSetID}

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
		{"plan", []string{"plan"}, "", exit.Done, nil},
		{"no", []string{"apply"}, "no\n", exit.Failed, nil},
		{"yes", []string{"apply"}, "yes\n", exit.Done, []string{
			"PATCH secrets/web", "PATCH secrets/db", "PATCH sim-networks/main", "DELETE sim-networks/never", "DELETE sim-networks/old", "DELETE secrets/old", "PATCH secrets/web"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			hasSet(f, ofWeb)
			f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
				f.Mu.Lock()
				delete(f.Objects, "sim.hykube.io/v1/sim-networks/default/old")
				f.Mu.Unlock()
				f.Applying = nil
				f.Apply(p)
			}
			out, errOut, code := f.RunIn(clitest.OnTerminal, tc.answer, append(tc.args, "-f", clitest.Write(t, clitest.TwoFiles), "--prune", "--applyset", "web")...)
			var writes []string
			for _, call := range f.Writes() {
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
			for _, ref := range f.Pruned {
				pruned = append(pruned, ref.Kind+"/"+ref.Name)
			}
			if diff := cmp.Diff([]string{"sim-network/never", "sim-network/old"}, slices.Sorted(slices.Values(pruned))); diff != "" {
				t.Errorf("uploaded as pruned: %s", diff)
			}
			for _, u := range f.Uploaded {
				if u.GetLabels()[partOfSet] != webSetID {
					t.Errorf("%s %q was uploaded without the label of the set", u.GetKind(), u.GetName())
				}
			}
		})
	}
}

// Files without any resource make no plan, and what left them goes all the same.
func TestPruneWithoutPlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	hasSet(f, ofWeb)
	delete(f.Objects, "sim.hykube.io/v1/sim-networks/default/old")
	_, secret, _ := strings.Cut(clitest.TwoFiles, "---\n")
	out, errOut, code := f.RunIn(clitest.OnTerminal, "yes\n", "apply", "-f", clitest.Write(t, secret), "--prune", "--applyset", "web")
	if code != exit.Done || !strings.Contains(errOut, "delete the objects that you removed from them?") || !strings.Contains(out, "secret/old pruned") || len(f.Plans) > 0 {
		t.Errorf("code %d, %d plans:\n%s\n%s", code, len(f.Plans), out, errOut)
	}
	if got, want := slices.Sorted(maps.Keys(f.Objects)), []string{"v1/secrets/default/db", "v1/secrets/default/web"}; !cmp.Equal(got, want) {
		t.Errorf("objects %v", got)
	}
}

// A path without any file may be a mistake; a file that holds no object says that all of the set is to go.
func TestPruneWithoutObjects(t *testing.T) {
	f := clitest.New(t, cli.Command)
	hasSet(f, ofWeb)
	if _, errOut, code := f.Run("apply", "-f", t.TempDir(), "--prune", "--applyset", "web", "--auto-approve"); code != exit.Failed ||
		!strings.Contains(errOut, `would delete all members of the applyset "web"`) || len(f.Writes()) > 0 {
		t.Errorf("code %d, writes %v: %s", code, f.Writes(), errOut)
	}
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := clitest.Creates(p)
		for i := range out {
			out[i].Action, out[i].ActionReason, out[i].Before, out[i].After = v1alpha1.ActionDelete, "delete_because_no_resource_config", out[i].After, nil
		}
		return out
	}
	out, errOut, code := f.Run("plan", "-f", clitest.Write(t, "# nothing is left\n"), "--prune", "--applyset", "web")
	for _, want := range []string{"sim_network.old will be destroyed", "because its object is no longer in the files", "- secret/old: deleted"} {
		if !strings.Contains(out, want) {
			t.Errorf("code %d, missing %q in:\n%s\n%s", code, want, out, errOut)
		}
	}
}

// Objects outside of the set stay, and those of another set cannot be taken.
func TestPruneLeavesOthers(t *testing.T) {
	f := clitest.New(t, cli.Command)
	hasSet(f, map[string]string{partOfSet: "applyset-other-v1"})
	before := slices.Sorted(maps.Keys(f.Objects))
	out, errOut, code := f.Run("plan", "-f", clitest.Write(t, clitest.TwoFiles), "--prune", "--applyset", "web")
	if code != exit.Done || strings.Contains(out, "  - ") || len(f.Pruned) > 0 || !cmp.Equal(before, slices.Sorted(maps.Keys(f.Objects))) {
		t.Errorf("code %d:\n%s\n%s", code, out, errOut)
	}
	_, errOut, code = f.Run("apply", "-f", clitest.Write(t, strings.ReplaceAll(clitest.TwoFiles, "name: main", "name: old")), "--prune", "--applyset", "web", "--auto-approve")
	if code != exit.Failed || !strings.Contains(errOut, `first.yaml:1: sim-network "old" belongs to another applyset`) || len(f.Writes()) > 0 {
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
		{"no name", clitest.TwoFiles, []string{"--prune"}, nil, exit.Failed, "add --applyset NAME"},
		{"a name alone", clitest.TwoFiles, []string{"--applyset", "web"}, nil, exit.Failed, "--applyset is for --prune"},
		{"a part of the files", clitest.TwoFiles, []string{"--prune", "--applyset", "web", "--target", "sim_network.main"}, nil, exit.Failed, "it excludes --target"},
		{"another kind of parent", clitest.TwoFiles, []string{"--prune", "--applyset", "plan/web"}, nil, exit.Failed, "write NAME, secret/NAME or configmap/NAME"},
		{"no parent", clitest.TwoFiles, []string{"--prune", "--applyset", "old"}, nil, exit.Failed, "it is not the parent of an applyset"},
		{"a label in the file", strings.Replace(clitest.TwoFiles, "name: main", "name: main, labels: {"+partOfSet+": x}", 1), []string{"--prune", "--applyset", "web"}, nil, exit.Failed, "take it out of the file"},
		{"no right", clitest.TwoFiles, []string{"--prune", "--applyset", "web"}, []string{"delete sim-networks"}, exit.Refused, `that needs the verb "delete" on sim-networks.sim.hykube.io in namespace default`},
		{"a reference to what left", strings.Replace(clitest.TwoFiles, "10.0.0.0/16", "'${secret.old.cidr}'", 1), []string{"--prune", "--applyset", "web"}, nil, exit.Failed, `refers to the Secret "old", which is no longer in the files`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			hasSet(f, ofWeb)
			f.Denied = tc.denied
			_, errOut, code := f.Run(append([]string{"apply", "--auto-approve", "-f", clitest.Write(t, tc.files)}, tc.args...)...)
			if code != tc.code || !strings.Contains(errOut, tc.want) || len(f.Writes()) > 0 {
				t.Errorf("code %d, writes %v: %s", code, f.Writes(), errOut)
			}
		})
	}
	f := clitest.New(t, cli.Command)
	f.Refuse = func(r *http.Request) *metav1.Status {
		if strings.HasSuffix(r.URL.Path, "/secrets") {
			return clitest.Status(403, metav1.StatusReasonForbidden, `cannot list resource "secrets"`)
		}
		return nil
	}
	if _, errOut, code := f.Run("plan", "-f", clitest.Write(t, clitest.TwoFiles), "--prune", "--applyset", "web"); code != exit.Refused || !strings.Contains(errOut, "find the members of applyset secret/web") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
