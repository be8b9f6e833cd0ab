package imports_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/tests/clitest"
)

// importsReplacing plans an import of each target that replaces it.
func importsReplacing(p *v1alpha1.Plan) []v1alpha1.PlanChange {
	out := clitest.Imports(p)
	for i := range out {
		out[i].Action, out[i].ActionReason = v1alpha1.ActionReplace, "replace_because_cannot_update"
		out[i].Before, out[i].After = clitest.JSON(`{"cidr":"10.9.0.0/16","zone":"a"}`), clitest.JSON(`{"cidr":"10.1.0.0/16","zone":"b"}`)
		out[i].ReplacePaths = clitest.JSON(`[["zone"],["cidr"]]`)
	}
	return out
}

// imported is the lifecycle that an import by an ID asks for.
func imported(id string) map[string]any {
	return map[string]any{"preventDestroy": true, "import": map[string]any{"id": id}}
}

// An import that would replace its resource is refused, and nothing of it stays recorded.
func TestImportRefusesToReplace(t *testing.T) {
	for reason, flags := range map[string][]string{"without a question": {"--auto-approve"}, "with one": nil} {
		t.Run(reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = importsReplacing
			clitest.Network(f, "main", func(o map[string]any) {
				delete(o, "status")
				o["lifecycle"] = map[string]any{"preventDestroy": true}
			})
			out, errOut, code := f.RunIn(clitest.OnTerminal, "yes\n", append([]string{"import", "sim-network/main", "net-9"}, flags...)...)
			for _, want := range []string{
				"# sim_network.main must be replaced",
				`plan "import-x7k2d" would destroy a resource that it imports`,
				"\n  sim_network.main: cidr, zone force the replacement\nMake the spec match the real resource",
				"set lifecycle.import in the file and run `kubectl hykube apply`",
				"sim-network.sim.hykube.io/main configured: its lifecycle is as it was before the import\n",
			} {
				if !strings.Contains(out+errOut, want) {
					t.Errorf("missing %q in:\n%s\n%s", want, out, errOut)
				}
			}
			if code != exit.Refused || strings.Contains(errOut, "Enter a value") {
				t.Errorf("code %d: %s", code, errOut)
			}
			if a := f.Plans["default/import-x7k2d"].Status.Approval; a == nil || a.Decision != v1alpha1.DecisionDiscarded {
				t.Errorf("approval %+v", a)
			}
			if d := cmp.Diff(map[string]any{"preventDestroy": true}, f.Object("main")["lifecycle"]); d != "" {
				t.Errorf("lifecycle (-want +got):\n%s", d)
			}
		})
	}
}

// An update in place is no reason to refuse an import.
func TestImportUpdatesInPlace(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := importsReplacing(p)
		out[0].Action, out[0].ActionReason, out[0].ReplacePaths = v1alpha1.ActionUpdate, "", nil
		return out
	}
	clitest.Network(f, "main", func(o map[string]any) { delete(o, "status") })
	out, errOut, code := f.Run("import", "sim-network/main", "net-9", "--auto-approve")
	if code != exit.Done || !strings.Contains(out, "Apply complete! 1 imported, 0 added, 1 changed") || !cmp.Equal(f.Object("main")["lifecycle"], any(imported("net-9"))) {
		t.Errorf("code %d: %s\n%s", code, errOut, out)
	}
}

func TestDeclinedImport(t *testing.T) {
	undo := "\n  kubectl patch sim-network.sim.hykube.io/main -n default --type merge -p '{\"lifecycle\":{\"import\":{\"id\":\"net-0\"}}}'\n"
	for _, tc := range []struct {
		reason    string
		lifecycle map[string]any
		// edited is true if the object is changed before the answer.
		edited bool
		want   map[string]any
		says   string
	}{
		{"the block goes", map[string]any{"preventDestroy": true}, false, map[string]any{"preventDestroy": true}, "its lifecycle is as it was before the import\n"},
		{"no empty block stays", nil, false, nil, "its lifecycle is as it was before the import\n"},
		{"another block comes back", imported("net-0"), false, imported("net-0"), "its lifecycle is as it was before the import\n"},
		{"an identity comes back", map[string]any{"import": map[string]any{"identity": map[string]any{"id": "net-0"}}}, false,
			map[string]any{"import": map[string]any{"identity": map[string]any{"id": "net-0"}}}, "its lifecycle is as it was before the import\n"},
		{"the same block stays", imported("net-9"), false, imported("net-9"), "This command changed no infrastructure; the objects stay recorded.\n"},
		{"a change of another person stays", imported("net-0"), true, imported("net-9"), undo},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				if tc.edited {
					f.Object("main")["metadata"].(map[string]any)["generation"] = int64(7)
				}
				return clitest.Imports(p)
			}
			clitest.Network(f, "main", func(o map[string]any) {
				delete(o, "status")
				delete(o, "lifecycle")
				if tc.lifecycle != nil {
					o["lifecycle"] = tc.lifecycle
				}
			})
			out, errOut, code := f.RunIn(clitest.OnTerminal, "no\n", "import", "sim-network/main", "net-9")
			if code != exit.Failed || !strings.Contains(out+errOut, tc.says) {
				t.Errorf("code %d, missing %q in:\n%s\n%s", code, tc.says, out, errOut)
			}
			if got, _, _ := unstructured.NestedMap(f.Object("main"), "lifecycle"); !cmp.Equal(tc.want, got) {
				d := cmp.Diff(tc.want, got)
				t.Errorf("lifecycle (-want +got):\n%s", d)
			}
		})
	}
}

func TestInterruptedImport(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Imports
	clitest.Network(f, "main", func(o map[string]any) { delete(o, "status"); o["lifecycle"] = map[string]any{"preventDestroy": true} })
	stop := make(chan struct{}, 1)
	stop <- struct{}{}
	silence, hang := io.Pipe()
	defer hang.Close()
	_, errOut, code := f.RunIn(func(s *session.Session) {
		s.Ask, s.Input = true, bufio.NewReader(silence)
		calls := 0
		s.Interrupts = func() (<-chan struct{}, func()) {
			if calls++; calls == 1 {
				return nil, func() {} // while the plan is made
			}
			return stop, func() {}
		}
	}, "", "import", "sim-network/main", "net-9")
	if d := cmp.Diff(any(map[string]any{"preventDestroy": true}), f.Object("main")["lifecycle"]); d != "" || code != exit.Failed {
		t.Errorf("code %d, %s, lifecycle (-want +got):\n%s", code, errOut, d)
	}
}

// An interrupt while the plan is made reverts the import, like a no, and cancels the plan.
func TestInterruptedPlanOfAnImport(t *testing.T) {
	f := clitest.New(t, cli.Command)
	pressed := make(chan struct{}, 1)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		pressed <- struct{}{}
		return nil // it is never made
	}
	clitest.Network(f, "main", func(o map[string]any) { delete(o, "status"); o["lifecycle"] = map[string]any{"preventDestroy": true} })
	out, errOut, code := f.RunIn(func(s *session.Session) {
		s.Ask = true
		s.Interrupts = func() (<-chan struct{}, func()) { return pressed, func() {} }
	}, "", "import", "sim-network/main", "net-9")
	if d := cmp.Diff(any(map[string]any{"preventDestroy": true}), f.Object("main")["lifecycle"]); d != "" || code != exit.Failed || !strings.Contains(errOut, "interrupted; no infrastructure was changed") {
		t.Errorf("code %d, %s%s, lifecycle (-want +got):\n%s", code, out, errOut, d)
	}
	if p := f.Plans["default/import-x7k2d"]; p == nil || p.Status.Cancel == nil {
		t.Errorf("the plan was not cancelled: %+v", p)
	}
}

// The object that a declined import generated is deleted, and stays when another person changed it.
func TestDeclinedImportOfAnUnknownObject(t *testing.T) {
	for reason, edited := range map[string]bool{"untouched": false, "changed meanwhile": true} {
		t.Run(reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Querying = func(q *v1alpha1.Query) {
				q.Status.Results = []v1alpha1.QueryResult{{ID: "net-9", Manifest: &runtime.RawExtension{Raw: []byte(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":"net-9"},"spec":{"mtu":1500}}`)}}}
			}
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				if edited {
					f.Object("main")["metadata"].(map[string]any)["generation"] = int64(7)
				}
				return clitest.Imports(p)
			}
			out, errOut, code := f.RunIn(clitest.OnTerminal, "no\n", "import", "sim-network/main", "net-9")
			want := "sim-network.sim.hykube.io/main deleted, because this command created it\n"
			if edited {
				want = "\n  kubectl delete sim-network.sim.hykube.io/main -n default --wait=false\n"
			}
			if code != exit.Failed || !strings.Contains(out+errOut, want) || (f.Object("main") != nil) != edited {
				t.Errorf("code %d, object %v, missing %q in:\n%s\n%s", code, f.Object("main"), want, out, errOut)
			}
		})
	}
}

// An import that fails takes its write back, whatever the reason. If it cannot, it prints what stays.
func TestFailedImport(t *testing.T) {
	const before, undo = "its lifecycle is as it was before the import\n", "\n  kubectl patch sim-network.sim.hykube.io/main -n default --type merge -p '{\"lifecycle\":{\"import\":null}}'\n"
	failed := func(f *clitest.Server) func(*v1alpha1.Plan) []v1alpha1.PlanChange {
		return func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			f.Set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "the provider finds no network net-9")
			f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "the provider finds no network net-9")
			return nil
		}
	}
	for _, tc := range []struct {
		reason string
		fails  func(f *clitest.Server)
		stays  bool
		says   []string
	}{
		{"the plan is refused", func(f *clitest.Server) {
			f.Refuse = func(r *http.Request) *metav1.Status {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/plans") {
					return clitest.Status(403, metav1.StatusReasonForbidden, "you may not create plans")
				}
				return nil
			}
		}, false, []string{before, "you may not create plans"}},
		{"the plan fails", func(f *clitest.Server) { f.Planning = failed(f) }, false, []string{before, "finds no network net-9", "\nNothing was changed."}},
		{"the apply fails", func(f *clitest.Server) {
			f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				f.Changes[p.Namespace+"/"+p.Name][0].State = v1alpha1.ChangeFailed
				f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "1 change failed")
			}
		}, false, []string{before, "Apply incomplete"}},
		{"another user approves", func(f *clitest.Server) { f.Denied = []string{"approve plans"} }, true,
			[]string{"keeps its lifecycle.import, because plan \"import-x7k2d\" needs it", "\n  kubectl hykube discard import-x7k2d -n default" + undo}},
		{"a policy refuses the plan", func(f *clitest.Server) {
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Status.Policies = []v1alpha1.PlanPolicyResult{{Rule: "no", Effect: v1alpha1.PolicyDeny}}
				return clitest.Imports(p)
			}
		}, true, []string{"keeps its lifecycle.import", undo, "No infrastructure was changed"}},
		{"the write cannot be taken back", func(f *clitest.Server) {
			f.Planning = failed(f)
			patches := 0
			f.Refuse = func(r *http.Request) *metav1.Status {
				if r.Method != http.MethodPatch {
					return nil
				}
				if patches++; patches == 1 {
					return nil
				}
				return clitest.Status(500, metav1.StatusReasonInternalError, "the disk is full")
			}
		}, true, []string{"the disk is full", "keeps its lifecycle.import: ", undo, "No infrastructure was changed"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = clitest.Imports
			tc.fails(f)
			clitest.Network(f, "main", func(o map[string]any) {
				delete(o, "status")
				o["lifecycle"] = map[string]any{"preventDestroy": true}
			})
			out, errOut, code := f.Run("import", "sim-network/main", "net-9", "--auto-approve")
			for _, want := range tc.says {
				if !strings.Contains(out+errOut, want) {
					t.Errorf("missing %q in:\n%s\n%s", want, out, errOut)
				}
			}
			if tc.stays && strings.Contains(errOut, "Nothing was changed") {
				t.Errorf("the import stays:\n%s", errOut)
			}
			want := map[string]any{"preventDestroy": true}
			if tc.stays {
				want = imported("net-9")
			}
			if d := cmp.Diff(any(want), f.Object("main")["lifecycle"]); d != "" || code == exit.Done {
				t.Errorf("code %d, lifecycle (-want +got):\n%s", code, d)
			}
		})
	}
}
