package operation_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/tests/clitest"
)

var timing = regexp.MustCompile(`in [0-9.]+m?s\.`)

func TestApply(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Installed, f.Planning = false, clitest.Creates
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	want := `namespace/default created
provider.hykube.io/sim created

Other objects that the files create or change:
  + providerconfig.hykube.io/default

Symbols: + create

  # sim_subnet.a will be created
  + resource "sim_subnet" "a" {
      + id   = (known after apply)
      + name = "a"
    }

  # sim_network.main will be created
  + resource "sim_network" "main" {
      + id   = (known after apply)
      + name = "main"
    }

Plan: 2 to add, 0 to change, 0 to destroy.

namespace/default unchanged
provider.hykube.io/sim unchanged
providerconfig.hykube.io/default created
sim-subnet.sim.hykube.io/a created
sim-network.sim.hykube.io/main created

sim_subnet.a: Creating...
sim_subnet.a: Creation complete after 1s
sim_network.main: Creating...
sim_network.main: Creation complete after 1s

Apply complete! 2 added, 0 changed, 0 destroyed, in TIME.
Plan apply-x7k2d: kubectl hykube status apply-x7k2d -n default, or kubectl hykube ui for the run itself.
Other recorded objects: providerconfig.hykube.io/default created.
`
	if d := cmp.Diff(want, timing.ReplaceAllString(out, "in TIME.")); d != "" || code != exit.Done {
		t.Errorf("code %d, stderr %q, stdout (-want +got):\n%s", code, errOut, d)
	}
	if p := f.Plans["default/apply-x7k2d"]; p == nil || !cmp.Equal(p.Spec.Targets, []string{"sim_subnet.a", "sim_network.main"}) || p.Status.Approval.Digest != "sha256:abc" {
		t.Errorf("plan is %+v", p)
	}
}

func TestApplyAgain(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	file := clitest.Write(t, clitest.FirstFiles)
	f.Run("plan", "--record", "-f", file)
	f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange { return []v1alpha1.PlanChange{} }
	out, _, code := f.Run("apply", "-f", file, "--auto-approve")
	if code != exit.Done || strings.Contains(out, "created") || !strings.Contains(out, "No changes.") || len(f.Plans) != 1 {
		t.Errorf("code %d:\n%s", code, out)
	}
}

func TestApplyAsksForApproval(t *testing.T) {
	asking := func(s *session.Session) { s.Ask = true }
	for _, tc := range []struct {
		reason, answer  string
		code            int
		objects, plans  int
		want, questions string
	}{
		{"yes records and applies", "yes\nyes\n", exit.Done, 5, 1, "Apply complete!", "perform these actions"},
		{"no to the plan keeps the prerequisites, and says so", "yes\nno\n", exit.Failed, 2, 0, "nothing was recorded", "kubectl delete provider/sim"},
		{"no to the prerequisites leaves nothing", "no\n", exit.Failed, 0, 0, "nothing was recorded", `Namespace "default"`},
		{"anything but yes is no", "y\n", exit.Failed, 0, 0, "nothing was recorded", "Record them now?"},
		{"end of input is no", "", exit.Failed, 0, 0, "nothing was recorded", "Record them now?"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = clitest.Creates
			out, errOut, code := f.RunIn(asking, tc.answer, "apply", "-f", clitest.Write(t, clitest.FirstFiles))
			if code != tc.code || !strings.Contains(out, tc.want) || !strings.Contains(errOut, "Only 'yes' will be accepted") {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			if len(f.Objects) != tc.objects || len(f.Plans) != tc.plans || !strings.Contains(errOut, tc.questions) {
				t.Errorf("%d objects, %d plans: %s", len(f.Objects), len(f.Plans), errOut)
			}
		})
	}
	t.Run("without an input nothing is even recorded", func(t *testing.T) {
		f := clitest.New(t, cli.Command)
		_, errOut, code := f.RunIn(clitest.WithoutAnswer, "", "apply", "-f", clitest.Write(t, clitest.FirstFiles))
		if code != exit.Failed || !strings.Contains(errOut, "--auto-approve") || len(f.Calls) > 0 {
			t.Errorf("code %d, calls %v: %s", code, f.Calls, errOut)
		}
	})
}

func TestExitCodes(t *testing.T) {
	condition := func(typ, reason, message string) func(*clitest.Server, *v1alpha1.Plan) {
		return func(f *clitest.Server, p *v1alpha1.Plan) {
			f.Mu.Lock()
			defer f.Mu.Unlock()
			cs := f.Changes[p.Namespace+"/"+p.Name]
			cs[0].State, cs[0].Message = v1alpha1.ChangeStale, "its object has moved to generation 3"
			if typ == v1alpha1.ConditionApplied {
				cs[0].State, cs[0].Diagnostics = v1alpha1.ChangeFailed, []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Quota exceeded", Detail: "Ask for more.", Attribute: "spec.cidr"}}
			}
			cs[1].State, cs[1].Message = v1alpha1.ChangeSkipped, "needs "+cs[0].Address
			p.Status.Progress = &v1alpha1.PlanProgress{Total: 2, Failed: 1, Skipped: 1}
			f.Set(p, typ, typ == v1alpha1.ConditionStale, reason, message)
			f.Set(p, v1alpha1.ConditionStalled, true, reason, message)
		}
	}
	for _, tc := range []struct {
		reason string
		args   []string
		setup  func(*clitest.Server)
		code   int
		want   []string
	}{
		{"a plan with changes", []string{"plan", "--record"}, nil, exit.Done, []string{"kubectl hykube approve plan-x7k2d -n default --digest sha256:abc"}},
		{"a plan with changes, asked for", []string{"plan", "--record", "--detailed-exitcode"}, nil, exit.Changes, nil},
		{"no changes, asked for", []string{"plan", "--record", "--detailed-exitcode"}, func(f *clitest.Server) {
			f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange { return []v1alpha1.PlanChange{} }
		}, exit.Done, []string{"No changes."}},
		{"deferred by a provider", []string{"plan", "--record", "--detailed-exitcode"}, deferring(), exit.Changes, []string{"No change can be applied now. Providers deferred the changes; make"}},
		{"deferred, as an object", []string{"plan", "--record", "--detailed-exitcode", "-o", "name"}, deferring(), exit.Changes, nil},
		{"deferred, not asked for", []string{"plan", "--record"}, deferring(v1alpha1.PlanReference{}), exit.Done, []string{"No change can be applied now. Another plan is changing"}},
		{"deferred by a plan", []string{"plan", "--record", "--detailed-exitcode"}, deferring(v1alpha1.PlanReference{Name: "other"}), exit.Changes, []string{"No change can be applied now. Plan other is changing the resources; make"}},
		{"a provider failed", []string{"apply", "--auto-approve"}, func(f *clitest.Server) {
			f.Applying = condition(v1alpha1.ConditionApplied, v1alpha1.ReasonApplyFailed, "1 change failed")
		}, exit.Failed, []string{"Error: Quota exceeded", "on sim_subnet.a, spec.cidr", "Ask for more.", "sim_network.main: needs sim_subnet.a", "Apply incomplete: 0 of 2"}},
		{"it was stale", []string{"apply", "--auto-approve"}, func(f *clitest.Server) {
			f.Applying = condition(v1alpha1.ConditionStale, v1alpha1.ReasonStale, "sim_subnet.a moved")
		}, exit.Stale, []string{"sim_subnet.a: its object has moved to generation 3", "The plan is stale", "destroyed), 1 stale, 1 not tried"}},
		{"planning failed", []string{"apply", "--auto-approve"}, func(f *clitest.Server) {
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				p.Status.Diagnostics = []v1alpha1.Diagnostic{{Severity: v1alpha1.SeverityError, Summary: "Dependency cycle"}}
				f.Set(p, v1alpha1.ConditionPlanned, false, v1alpha1.ReasonPlanFailed, "a cycle")
				f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonPlanFailed, "a cycle")
				return nil
			}
		}, exit.Failed, []string{"Error: Dependency cycle", "could not be made\nNothing was changed."}},
		{"approval is refused", []string{"apply", "--auto-approve"}, func(f *clitest.Server) {
			f.Refuse = func(r *http.Request) *metav1.Status {
				if strings.HasSuffix(r.URL.Path, "/approval") {
					return clitest.Status(403, metav1.StatusReasonForbidden, `plans.hykube.io "x" is forbidden: user "u" cannot approve`)
				}
				return nil
			}
		}, exit.Refused, []string{`forbidden: user "u" cannot approve`}},
		{"the server doesn't know the user", []string{"plan"}, func(f *clitest.Server) {
			f.Refuse = func(*http.Request) *metav1.Status {
				return clitest.Status(401, metav1.StatusReasonUnauthorized, "Unauthorized")
			}
		}, exit.Failed, []string{"doesn't know who you are"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = clitest.Creates
			if tc.setup != nil {
				tc.setup(f)
			}
			out, errOut, code := f.Run(append(tc.args, "-f", clitest.Write(t, clitest.FirstFiles))...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d", code, tc.code)
			}
			for _, w := range tc.want {
				if !strings.Contains(out+errOut, w) {
					t.Errorf("missing %q in:\n%s\n%s", w, out, errOut)
				}
			}
		})
	}
}

// deferring returns a setup in which no change of a plan can be applied now, because of other plans or providers.
func deferring(waitsFor ...v1alpha1.PlanReference) func(*clitest.Server) {
	return func(f *clitest.Server) {
		f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
			p.Status.WaitsFor, p.Status.Summary = waitsFor, &v1alpha1.PlanSummary{Resources: 1}
			// The server writes both together.
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlanned})
			f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonDeferred, "No change can be applied now.")
			return nil
		}
	}
}

// For a replace that ended between its halves, the output counts the first half, and describes the current state.
func TestApplyInHalves(t *testing.T) {
	for _, tc := range []struct {
		reason string
		change v1alpha1.PlanChange
		want   []string
		not    []string
	}{
		{"created first, and the destroy was skipped",
			v1alpha1.PlanChange{CreateBeforeDestroy: true, HalfDone: true, State: v1alpha1.ChangeSkipped, Message: "it depends on sim_network.x, whose change did not succeed"},
			[]string{"sim_subnet.a: replaced; the old instance still exists until the next plan: it depends on sim_network.x", "Replaced, but the old instance still exists:\n  sim_subnet.a: it depends on", "0 of 1 changes made (1 added, 0 changed, 0 destroyed), 1 replaced, but the old instance still exists"},
			[]string{"Not tried", "the new instance was created"}},
		{"created first, and the destroy failed",
			v1alpha1.PlanChange{CreateBeforeDestroy: true, HalfDone: true, State: v1alpha1.ChangeFailed, Message: "it is in use"},
			[]string{"sim_subnet.a: replaced; the old instance still exists until the next plan: it is in use", "(1 added, 0 changed, 0 destroyed), 1 replaced, but the old instance still exists"}, nil},
		{"destroyed, and the create failed",
			v1alpha1.PlanChange{HalfDone: true, State: v1alpha1.ChangeFailed, Message: "quota exceeded"},
			[]string{"sim_subnet.a: destroyed and not created again: quota exceeded", "Destroyed and not created again:\n  sim_subnet.a: quota exceeded; the next plan creates it", "(0 added, 0 changed, 1 destroyed), 1 destroyed and not created again"}, nil},
		{"destroyed, and the create left a tainted instance",
			v1alpha1.PlanChange{HalfDone: true, Left: v1alpha1.LeftTainted, State: v1alpha1.ChangeFailed, Message: "it failed to start"},
			[]string{"sim_subnet.a: destroyed; the new instance exists and is tainted: it failed to start", "Destroyed, and the new instance is tainted:\n  sim_subnet.a: it failed to start; the next plan replaces it", "(1 added, 0 changed, 1 destroyed), 1 destroyed, and the new instance is tainted"},
			[]string{"not created again", "1 failed"}},
		{"replaced, and a postcondition failed",
			v1alpha1.PlanChange{HalfDone: true, Left: v1alpha1.LeftUnchecked, State: v1alpha1.ChangeFailed, Message: "not healthy"},
			[]string{"sim_subnet.a: replaced; a postcondition of the new instance failed: not healthy", "sim_subnet.a: not healthy; the next plan checks it again", "(1 added, 0 changed, 1 destroyed), 1 replaced, but a postcondition failed"},
			[]string{"not created again", "1 failed"}},
		{"neither half", v1alpha1.PlanChange{State: v1alpha1.ChangeFailed, Message: "quota exceeded"},
			[]string{"sim_subnet.a: Replacement failed: quota exceeded", "(0 added, 0 changed, 0 destroyed), 1 failed"}, []string{"not created again"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				cs := clitest.Creates(p)[:1]
				cs[0].Action, cs[0].CreateBeforeDestroy = v1alpha1.ActionReplace, tc.change.CreateBeforeDestroy
				return cs
			}
			f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				c := &f.Changes[p.Namespace+"/"+p.Name][0]
				c.HalfDone, c.Left, c.State, c.Message = tc.change.HalfDone, tc.change.Left, tc.change.State, tc.change.Message
				p.Status.Progress = &v1alpha1.PlanProgress{Total: 1, Failed: 1}
				f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "1 change failed")
			}
			out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
			if code != exit.Failed {
				t.Errorf("code %d", code)
			}
			for _, w := range tc.want {
				if !strings.Contains(out+errOut, w) {
					t.Errorf("missing %q in:\n%s\n%s", w, out, errOut)
				}
			}
			for _, w := range tc.not {
				if strings.Contains(out+errOut, w) {
					t.Errorf("%q in:\n%s\n%s", w, out, errOut)
				}
			}
		})
	}
}

// The error of a failed create does not tell whether the cloud made the resource: the hint says what to check. A create whose state is
// recorded needs no check.
func TestHintAfterAFailedCreate(t *testing.T) {
	const check = "Before you apply again, check with the cloud whether sim_network.main exists; if so, import it: kubectl hykube import sim-network/main ID -n default\n"
	const second = "Before you apply again, check with the cloud whether sim_network.main has a second instance, which Hykube did not record; if so, delete it there\n"
	for _, tc := range []struct {
		reason string
		change v1alpha1.PlanChange
		want   string
	}{
		{"a create", v1alpha1.PlanChange{Action: v1alpha1.ActionCreate, MayExist: true}, check},
		{"a create that was not called, or left a state", v1alpha1.PlanChange{Action: v1alpha1.ActionCreate}, ""},
		{"an update", v1alpha1.PlanChange{Action: v1alpha1.ActionUpdate}, ""},
		{"the create of a replacement", v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, HalfDone: true, MayExist: true}, check},
		{"the destroy of a replacement", v1alpha1.PlanChange{Action: v1alpha1.ActionReplace}, ""},
		{"the create before the destroy", v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, CreateBeforeDestroy: true, MayExist: true}, second},
		{"the destroy after the create", v1alpha1.PlanChange{Action: v1alpha1.ActionReplace, CreateBeforeDestroy: true, HalfDone: true}, ""},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			clitest.Network(f, "main", func(o map[string]any) { delete(o, "status") })
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				named := p.DeepCopy()
				named.Spec.Targets = []string{"sim_network.main"}
				cs := clitest.Creates(named)[:1]
				cs[0].Action, cs[0].CreateBeforeDestroy = tc.change.Action, tc.change.CreateBeforeDestroy
				return cs
			}
			f.Applying = func(f *clitest.Server, p *v1alpha1.Plan) {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				c := &f.Changes[p.Namespace+"/"+p.Name][0]
				c.HalfDone, c.MayExist, c.State, c.Message = tc.change.HalfDone, tc.change.MayExist, v1alpha1.ChangeFailed, "EOF"
				p.Status.Progress = &v1alpha1.PlanProgress{Total: 1, Failed: 1}
				f.Set(p, v1alpha1.ConditionStalled, true, v1alpha1.ReasonApplyFailed, "1 change failed")
			}
			_, errOut, code := f.Run("apply", "--all", "--auto-approve")
			if code != exit.Failed || !strings.Contains(errOut, "run the same command again.\n"+tc.want) || strings.Contains(errOut, "check with the cloud") != (tc.want != "") {
				t.Errorf("code %d:\n%s", code, errOut)
			}
		})
	}
}

// A replace that forgets destroys nothing, and is never said to.
func TestApplyForgettingReplace(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		cs := clitest.Creates(p)[:1]
		cs[0].Action, cs[0].Forget, cs[0].Before = v1alpha1.ActionReplace, true, clitest.JSON(`{"name":"a","id":"old"}`)
		return cs
	}
	out, errOut, code := f.Run("apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	for _, w := range []string{"Plan: 1 to add, 0 to change, 0 to destroy. (1 forgotten)", "Apply complete! 1 added, 0 changed, 0 destroyed, 1 forgotten"} {
		if !strings.Contains(out, w) || code != 0 {
			t.Errorf("code %d %s: missing %q in:\n%s", code, errOut, w, out)
		}
	}
}

func TestDestroy(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	file := clitest.Write(t, clitest.FirstFiles)
	if _, errOut, code := f.Run("destroy", "--auto-approve"); code != exit.Failed || !strings.Contains(errOut, "use exactly one of") {
		t.Errorf("code %d: %s", code, errOut)
	}
	f.Run("destroy", "-f", file, "--auto-approve")
	p := f.Plans["default/destroy-x7k2d"]
	if p == nil || !p.Spec.Destroy || len(p.Spec.Targets) != 2 {
		t.Errorf("plan: %+v", p)
	}
	for _, c := range f.Calls {
		if strings.HasPrefix(c, "PATCH") {
			t.Errorf("destroy recorded something: %s", c)
		}
	}
	f.Run("destroy", "sim-network/main", "sim_subnet.a", "--auto-approve")
	if got := f.Plans["default/destroy-x7k2d"].Spec.Targets; !cmp.Equal(got, []string{"sim_network.main", "sim_subnet.a"}) {
		t.Errorf("targets %v", got)
	}
}

func TestProgressOnATerminal(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	live := func(s *session.Session) {
		s.Live, s.Size = true, func() (int, int) { return 60, 24 }
		s.Style.Color, s.Style.Width = true, 60
	}
	out, errOut, code := f.RunIn(live, "", "apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	if code != 0 || !strings.Contains(out, "Applying apply-x7k2d") || !strings.HasSuffix(strings.TrimSpace(out), "\x1b[0m") {
		t.Errorf("code %d: %s\n%q", code, errOut, out)
	}
	if i, j := strings.LastIndex(out, "\x1b[?25l"), strings.LastIndex(out, "\x1b[?25h"); i > j {
		t.Error("the cursor stays hidden")
	}
}

func TestInterruptedWhileApplying(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = clitest.Creates
	c := make(chan struct{}, 1)
	f.Applying = func(*clitest.Server, *v1alpha1.Plan) { c <- struct{}{} }
	_, errOut, code := f.RunIn(func(s *session.Session) {
		s.Interrupts = func() (<-chan struct{}, func()) { return c, func() {} }
	}, "", "apply", "-f", clitest.Write(t, clitest.FirstFiles), "--auto-approve")
	if code != exit.Failed || !strings.Contains(errOut, "Detached. The server continues") || !strings.Contains(errOut, "kubectl hykube cancel apply-x7k2d -n default") {
		t.Errorf("code %d: %s", code, errOut)
	}
}
