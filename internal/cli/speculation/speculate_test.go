package speculation_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/clitest"
)

// A plan of files records nothing and cannot be approved. It names the objects that the files change in addition to
// resources.
func TestPlanOfFiles(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.RecordSecret("7")
	out, errOut, code := f.Run("plan", "-f", clitest.Write(t, clitest.TwoFiles), "--detailed-exitcode")
	for _, want := range []string{"~ secret/db: changes password", "Plan: 1 to add", "it cannot be approved", "kubectl hykube apply -f "} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	p := f.Plans["default/plan-guess"]
	if code != exit.Changes || len(f.Objects) != 1 || len(f.Plans) != 1 || p == nil || !p.Spec.Speculative || !cmp.Equal(p.Spec.Targets, []string{"sim_network.main"}) {
		t.Errorf("code %d, %d objects, plans %v: %s", code, len(f.Objects), f.Plans, errOut)
	}
	if strings.Contains(out, "c3RhbGU") || len(f.Uploaded) != 2 {
		t.Errorf("%d objects uploaded:\n%s", len(f.Uploaded), out)
	}
	for _, call := range f.Calls {
		if strings.HasPrefix(call, http.MethodPatch) {
			t.Errorf("%s writes", call)
		}
	}
	if _, errOut, code := f.Run("approve", "plan-guess"); code != exit.Refused || !strings.Contains(errOut, "never recorded") {
		t.Errorf("approve: code %d: %s", code, errOut)
	}
}

// A plan of files prints all mistakes at once, with file and line, and records nothing.
func TestPlanOfFilesWithMistakes(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Refusing["main"] = clitest.Status(422, metav1.StatusReasonInvalid, "spec.cdir: unknown field")
	f.Refusing["db"] = clitest.Status(403, metav1.StatusReasonForbidden, "neither the verb")
	for _, args := range [][]string{{"plan"}, {"apply", "--auto-approve"}} {
		_, errOut, code := f.Run(append(args, "-f", clitest.Write(t, clitest.TwoFiles))...)
		for _, want := range []string{`first.yaml:1: record sim-network "main": spec.cdir`, `first.yaml:6: record Secret "db": neither`, "Nothing was recorded"} {
			if !strings.Contains(errOut, want) {
				t.Errorf("%v: missing %q in:\n%s", args, want, errOut)
			}
		}
		if code != exit.Failed || len(f.Objects)+len(f.Plans) > 0 {
			t.Errorf("%v: code %d, %d objects, %d plans", args, code, len(f.Objects), len(f.Plans))
		}
	}
}

// The output names the objects that must be recorded before a plan can be made, with the commands.
func TestPlanOfFilesNeedsProviders(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Installed = false
	_, errOut, code := f.Run("plan", "-f", clitest.Write(t, clitest.FirstFiles))
	for _, want := range []string{`Provider "sim" does not exist`, `first.yaml:22: Namespace "default"`, "kubectl create namespace default", `"source":"hykube/sim"`, "condition=Ready --timeout=5m provider/sim"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if code != exit.Failed || len(f.Objects)+len(f.Plans) > 0 {
		t.Errorf("code %d, %d objects, %d plans", code, len(f.Objects), len(f.Plans))
	}
}

// After a yes, the command applies exactly the shown plan. If the new plan differs, it shows that one first.
func TestApplyWhatWasShown(t *testing.T) {
	moving := func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := clitest.Creates(p)
		if !p.Spec.Speculative {
			out[0].After = &runtime.RawExtension{Raw: []byte(`{"name":"other"}`)}
		}
		return out
	}
	for _, tc := range []struct {
		reason, answers string
		args            []string
		planning        func(*v1alpha1.Plan) []v1alpha1.PlanChange
		code            int
		want, not       string
		applied         bool
	}{
		{"equal", "yes\n", nil, clitest.Creates, exit.Done, "Apply complete!", "Something changed", true},
		{"other, and yes again", "yes\nyes\n", nil, moving, exit.Done, "Something changed after the plan was shown", "", true},
		{"other, and which attribute", "", []string{"--auto-approve"}, moving, exit.Stale, "sim_network.main: name\nEither another user changed something, or the provider plans other values each time.", "Apply complete!", false},
		{"other, and no", "yes\nno\n", nil, moving, exit.Failed, "the objects stay recorded", "Apply complete!", false},
		{"other, without a terminal", "", []string{"--auto-approve"}, moving, exit.Stale, "kubectl hykube approve apply-x7k2d", "Apply complete!", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			f.Planning = tc.planning
			out, errOut, code := f.RunIn(clitest.OnTerminal, tc.answers, append([]string{"apply", "-f", clitest.Write(t, clitest.TwoFiles)}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) || tc.not != "" && strings.Contains(out, tc.not) {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			p := f.Plans["default/apply-x7k2d"]
			if p == nil || len(f.Plans) != 1 || p.Spec.Speculative || p.Spec.Timestamp == nil {
				t.Fatalf("plans %+v", f.Plans)
			}
			if applied := p.Status.Approval != nil && p.Status.Approval.Decision == v1alpha1.DecisionApproved; applied != tc.applied {
				t.Errorf("applied: %t", applied)
			}
		})
	}
}

// asked is an output that calls a function once, when the second question is there.
type asked struct {
	bytes.Buffer
	once sync.Once
	do   func()
}

func (a *asked) Write(p []byte) (int, error) {
	n, err := a.Buffer.Write(p)
	if bytes.Count(a.Bytes(), []byte("Enter a value:")) == 2 {
		a.once.Do(a.do)
	}
	return n, err
}

// TestASecondQuestionNamesTheStack asks again about files that a stack with spec.approval Automatic applies by itself. It says so
// before the answer, and afterwards it tells what the stack does. Without such a stack, it says how to take the files back.
func TestASecondQuestionNamesTheStack(t *testing.T) {
	const applies = "Plan rest-1 of the stack rest applies the recorded files without an answer. To see its result: kubectl hykube status rest-1 -n default"
	const question = "The stack rest selects resources of the files, and spec.approval is Automatic: it applies them as soon as it may.\nDo you want to perform these actions?"
	for name, tc := range map[string]struct {
		answers string
		plan    func(*v1alpha1.Plan) // nil: the stack made none
		over    bool                 // the plan of the command is superseded
		manual  bool
		code    int
		want    []string
	}{
		"superseded before the answer": {"yes\n", func(*v1alpha1.Plan) {}, true, false, exit.Stale, []string{question, "Superseded by plan rest-1, which was approved.\n" + applies}},
		"no, and the stack applies": {"yes\nno\n", func(*v1alpha1.Plan) {}, false, false, exit.Failed,
			[]string{question, "This command changed no infrastructure; the objects stay recorded.\n" + applies}},
		"no, and the stack applied": {"yes\nno\n", func(p *v1alpha1.Plan) { condition.Ready(&p.Status.Conditions, 1, v1alpha1.ReasonApplied, "") }, false, false, exit.Failed,
			[]string{question, "Plan rest-1 of the stack rest applied the recorded files. To see its result: kubectl hykube status rest-1 -n default"}},
		"no, and the stack waits for more edits": {"yes\nno\n", nil, false, false, exit.Failed,
			[]string{question, "The stack rest plans the recorded files by itself. To see its plan: kubectl hykube stack status rest -n default"}},
		"no, and the plan of the stack waits": {"yes\nno\n", func(p *v1alpha1.Plan) { p.Status.AutomaticApproval.Granted = false }, false, false, exit.Failed,
			[]string{question, "To take them back, apply the files as they were before."}},
		"no, beside a Manual stack": {"yes\nno\n", nil, false, true, exit.Failed,
			[]string{"To see what the recorded files change: kubectl hykube plan -n default\nTo take them back, apply the files as they were before."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "rest", Namespace: "default"}}
			s.Status.Plan = &v1alpha1.StackPlan{Name: "rest-1"}
			if !tc.manual {
				s.Spec.Approval = v1alpha1.ApprovalAutomatic
			}
			f.PutStack(s)
			f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				out := clitest.Creates(p)
				if !p.Spec.Speculative {
					out[0].After = &runtime.RawExtension{Raw: []byte(`{"name":"other"}`)}
				}
				return out
			}
			errOut := &asked{do: func() {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				if tc.plan != nil {
					p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "rest-1", Namespace: "default", UID: "uid-rest-1", CreationTimestamp: metav1.NewTime(time.Now().Add(time.Second))},
						Status: v1alpha1.PlanStatus{AutomaticApproval: &v1alpha1.AutomaticApproval{Granted: true}}}
					p.Spec.Approval = v1alpha1.ApprovalAutomatic
					tc.plan(p)
					f.Plans["default/rest-1"] = p
				}
				if tc.over {
					f.Set(f.Plans["default/apply-x7k2d"], v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan rest-1, which was approved.")
				}
			}}
			in := io.Reader(strings.NewReader(tc.answers))
			if tc.over {
				in = io.MultiReader(in, &clitest.Meanwhile{End: t.Context().Done(), Do: func() {}})
			}
			out, printed, code := f.RunIn(func(s *session.Session) { s.Ask, s.Input, s.ErrOut = true, bufio.NewReader(in), errOut }, "", "apply", "-f", clitest.Write(t, clitest.TwoFiles))
			for _, want := range tc.want {
				if all := out + errOut.String() + printed; code != tc.code || !strings.Contains(all, want) {
					t.Errorf("%q is missing: code %d: %s", want, code, all)
				}
			}
		})
	}
}

// If a plan ended in the same second before the plan was made, the command must still apply exactly the shown plan.
func TestApplyWhatWasShownAfterEarlierPlan(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := clitest.Creates(p)
		if !p.Spec.Speculative {
			out[0].After = &runtime.RawExtension{Raw: []byte(`{"name":"other"}`)}
		}
		return out
	}
	f.Plans["default/earlier"] = &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "earlier", Namespace: "default", UID: "uid-earlier"},
		Status: v1alpha1.PlanStatus{FinishedAt: new(metav1.NewTime(time.Now().Add(time.Second))), Approval: &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}}}
	out, errOut, code := f.RunIn(clitest.OnTerminal, "", "apply", "-f", clitest.Write(t, clitest.TwoFiles), "--auto-approve")
	if code != exit.Stale || strings.Contains(out, "Apply complete!") {
		t.Errorf("code %d:\n%s\n%s", code, out, errOut)
	}
}

// A Secret that is rotated while the question is open is not overwritten.
func TestApplyKeepsWhatChangedMeanwhile(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.RecordSecret("7")
	f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		f.RecordSecret("8") // after the plan was made
		return clitest.Creates(p)
	}
	_, errOut, code := f.RunIn(clitest.OnTerminal, "yes\n", "apply", "-f", clitest.Write(t, clitest.TwoFiles))
	if code != exit.Stale || !strings.Contains(errOut, `Secret "db": it changed after the plan was shown`) || strings.Contains(errOut, "Planning again") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if data := f.Objects["v1/secrets/default/db"]["data"].(map[string]any); data["password"] != "ZnJlc2g=" {
		t.Errorf("overwritten: %v", data)
	}
}

// Ctrl-C, while the plan is made and at the question, leaves nothing behind.
func TestInterruptedBeforeTheAnswer(t *testing.T) {
	for _, tc := range []struct {
		reason  string
		planned bool
		want    string
	}{
		{"while the files are sent", false, "interrupted; nothing was recorded"},
		{"while the plan is made", false, "interrupted; nothing was recorded"},
		{"at the question", true, "Nothing was changed, and nothing was recorded"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := clitest.New(t, cli.Command)
			pressed := make(chan struct{}, 1)
			if !tc.planned {
				f.Planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
					pressed <- struct{}{}
					return nil // it is never made
				}
			}
			if tc.reason == "while the files are sent" {
				var once sync.Once
				f.Refuse = func(r *http.Request) (slow *metav1.Status) {
					if strings.HasSuffix(r.URL.Path, "/objects") {
						once.Do(func() {
							_, _ = io.Copy(io.Discard, r.Body) // a body that is left unread keeps the end of the connection from being seen
							pressed <- struct{}{}
							<-r.Context().Done()
							slow = clitest.Status(503, metav1.StatusReasonServiceUnavailable, "slow")
						})
					}
					return slow
				}
			}
			silence, _ := io.Pipe() // no answer
			calls := 0
			out, errOut, code := f.RunIn(func(s *session.Session) {
				s.Ask, s.Input = true, bufio.NewReader(silence)
				s.Interrupts = func() (<-chan struct{}, func()) {
					if calls++; calls <= 2 {
						return pressed, func() {} // while the files are sent, and while the plan is made
					}
					now := make(chan struct{}, 1)
					now <- struct{}{}
					return now, func() {}
				}
			}, "", "apply", "-f", clitest.Write(t, clitest.TwoFiles))
			if code != exit.Failed || !strings.Contains(out+errOut, tc.want) {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			if len(f.Plans)+len(f.Objects) > 0 || len(f.Writes()) > 0 {
				t.Errorf("left behind: %v, %v; writes %v", f.Plans, f.Objects, f.Writes())
			}
		})
	}
}

func TestApplyFromStandardInput(t *testing.T) {
	f := clitest.New(t, cli.Command)
	if _, errOut, code := f.RunIn(clitest.OnTerminal, clitest.TwoFiles, "apply", "-f", "-"); code != exit.Failed || !strings.Contains(errOut, "reads files from standard input") || len(f.Calls) > 0 {
		t.Errorf("code %d: %s", code, errOut)
	}
	if out, errOut, code := f.RunIn(nil, clitest.TwoFiles, "apply", "-f", "-", "--auto-approve"); code != exit.Done || !strings.Contains(out, "Apply complete!") {
		t.Errorf("code %d: %s", code, errOut)
	}
}

// While another plan changes the same resource, an apply waits for it, and then plans anew.
func TestApplyWaitsForOthers(t *testing.T) {
	for _, tc := range []struct {
		reason string
		args   []string
		code   int
		want   string
	}{
		{"it waits", nil, exit.Done, `Waiting for plan "other" in namespace "default"`},
		{"it does not", []string{"--wait-timeout", "0"}, exit.Failed, "so nothing was applied"},
	} {
		for _, what := range [][]string{{"-f", clitest.Write(t, clitest.TwoFiles)}, {"--all"}} {
			t.Run(tc.reason+" "+what[0], func(t *testing.T) {
				f := clitest.New(t, cli.Command)
				other := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default", UID: "uid-other"}}
				f.Plans["default/other"] = other
				f.Set(other, v1alpha1.ConditionReady, false, v1alpha1.ReasonApplying, "")
				var busy atomic.Bool
				busy.Store(true)
				f.Planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
					p.Spec.Targets = []string{"sim_network.main"}
					out := clitest.Creates(p)
					if busy.Swap(false) {
						p.Status.WaitsFor = []v1alpha1.PlanReference{{Name: "other", UID: "uid-other"}}
						out[0].Action, out[0].State = v1alpha1.ActionNoOp, v1alpha1.ChangeSkipped
						go func() {
							f.Mu.Lock()
							defer f.Mu.Unlock()
							f.Set(other, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
						}()
					}
					return out
				}
				out, errOut, code := f.Run(append(append([]string{"apply", "--auto-approve"}, what...), tc.args...)...)
				if code != tc.code || !strings.Contains(errOut, tc.want) || (code == exit.Done) != strings.Contains(out, "Apply complete!") {
					t.Errorf("code %d:\n%s\n%s", code, out, errOut)
				}
			})
		}
	}
}

// A provider that the server would refuse gets the server's error, and no command that would record it.
func TestPlanOfAnInvalidProvider(t *testing.T) {
	f := clitest.New(t, cli.Command)
	st := clitest.Status(422, metav1.StatusReasonInvalid, "invalid")
	st.Details = &metav1.StatusDetails{Name: "sim", Causes: []metav1.StatusCause{{Field: "spec.source", Message: "Required value"}}}
	f.Refusing["sim"] = st
	for _, verb := range []string{"plan", "apply"} {
		out, errOut, code := f.Run(verb, "-f", clitest.Write(t, clitest.FirstFiles))
		if code != exit.Failed || !strings.Contains(errOut, `Provider "sim": spec.source: Required value`) || strings.Contains(errOut, "kubectl apply") || len(f.Objects) > 0 {
			t.Errorf("%s: code %d, %d objects: %s\n%s", verb, code, len(f.Objects), out, errOut)
		}
	}
}
