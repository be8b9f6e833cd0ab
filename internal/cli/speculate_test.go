package cli

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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
)

const twoFiles = `apiVersion: sim.hykube.io/v1
kind: sim-network
metadata: {name: main}
spec: {cidr: 10.0.0.0/16}
---
apiVersion: v1
kind: Secret
metadata: {name: db}
data: {password: c3RhbGU=}
`

// recordSecret puts a Secret on the server that differs from the one in twoFiles.
func (f *fakeServer) recordSecret(version string) {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": "ZnJlc2g="}}}
	u.SetName("db")
	u.SetNamespace("default")
	u.SetUID("u-db")
	f.put(u, "secrets")
	u.SetResourceVersion(version)
}

func asking(s *session) { s.ask = true }

func unanswered(s *session) { s.empty = true }

// A plan of files records nothing and cannot be approved. It names the objects that the files change in addition to
// resources.
func TestPlanOfFiles(t *testing.T) {
	f := newFakeServer(t)
	f.recordSecret("7")
	out, errOut, code := f.run("plan", "-f", write(t, twoFiles), "--detailed-exitcode")
	for _, want := range []string{"~ secret/db: changes password", "Plan: 1 to add", "it cannot be approved", "kubectl hykube apply -f "} {
		if !strings.Contains(out, want) {
			t.Errorf("missing %q in:\n%s", want, out)
		}
	}
	p := f.plans["default/plan-guess"]
	if code != ExitChanges || len(f.objects) != 1 || len(f.plans) != 1 || p == nil || !p.Spec.Speculative || !cmp.Equal(p.Spec.Targets, []string{"sim_network.main"}) {
		t.Errorf("code %d, %d objects, plans %v: %s", code, len(f.objects), f.plans, errOut)
	}
	if strings.Contains(out, "c3RhbGU") || len(f.uploaded) != 2 {
		t.Errorf("%d objects uploaded:\n%s", len(f.uploaded), out)
	}
	for _, call := range f.calls {
		if strings.HasPrefix(call, http.MethodPatch) {
			t.Errorf("%s writes", call)
		}
	}
	if _, errOut, code := f.run("approve", "plan-guess"); code != ExitRefused || !strings.Contains(errOut, "never recorded") {
		t.Errorf("approve: code %d: %s", code, errOut)
	}
}

// A plan of files prints all mistakes at once, with file and line, and records nothing.
func TestPlanOfFilesWithMistakes(t *testing.T) {
	f := newFakeServer(t)
	f.refusing["main"] = status(422, metav1.StatusReasonInvalid, "spec.cdir: unknown field")
	f.refusing["db"] = status(403, metav1.StatusReasonForbidden, "neither the verb")
	for _, args := range [][]string{{"plan"}, {"apply", "--auto-approve"}} {
		_, errOut, code := f.run(append(args, "-f", write(t, twoFiles))...)
		for _, want := range []string{`first.yaml:1: record sim-network "main": spec.cdir`, `first.yaml:6: record Secret "db": neither`, "Nothing was recorded"} {
			if !strings.Contains(errOut, want) {
				t.Errorf("%v: missing %q in:\n%s", args, want, errOut)
			}
		}
		if code != ExitError || len(f.objects)+len(f.plans) > 0 {
			t.Errorf("%v: code %d, %d objects, %d plans", args, code, len(f.objects), len(f.plans))
		}
	}
}

// The output names the objects that must be recorded before a plan can be made, with the commands.
func TestPlanOfFilesNeedsProviders(t *testing.T) {
	f := newFakeServer(t)
	f.installed = false
	_, errOut, code := f.run("plan", "-f", write(t, firstFiles))
	for _, want := range []string{`Provider "sim" does not exist`, `first.yaml:22: Namespace "default"`, "kubectl create namespace default", `"source":"hykube/sim"`, "condition=Ready --timeout=5m provider/sim"} {
		if !strings.Contains(errOut, want) {
			t.Errorf("missing %q in:\n%s", want, errOut)
		}
	}
	if code != ExitError || len(f.objects)+len(f.plans) > 0 {
		t.Errorf("code %d, %d objects, %d plans", code, len(f.objects), len(f.plans))
	}
}

// After a yes, the command applies exactly the shown plan. If the new plan differs, it shows that one first.
func TestApplyWhatWasShown(t *testing.T) {
	moving := func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := creates(p)
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
		{"equal", "yes\n", nil, creates, ExitDone, "Apply complete!", "Something changed", true},
		{"other, and yes again", "yes\nyes\n", nil, moving, ExitDone, "Something changed after the plan was shown", "", true},
		{"other, and which attribute", "", []string{"--auto-approve"}, moving, ExitStale, "sim_network.main: name\nEither another user changed something, or the provider plans other values each time.", "Apply complete!", false},
		{"other, and no", "yes\nno\n", nil, moving, ExitError, "the objects stay recorded", "Apply complete!", false},
		{"other, without a terminal", "", []string{"--auto-approve"}, moving, ExitStale, "kubectl hykube approve apply-x7k2d", "Apply complete!", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			f := newFakeServer(t)
			f.planning = tc.planning
			out, errOut, code := f.runIn(asking, tc.answers, append([]string{"apply", "-f", write(t, twoFiles)}, tc.args...)...)
			if code != tc.code || !strings.Contains(out+errOut, tc.want) || tc.not != "" && strings.Contains(out, tc.not) {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			p := f.plans["default/apply-x7k2d"]
			if p == nil || len(f.plans) != 1 || p.Spec.Speculative || p.Spec.Timestamp == nil {
				t.Fatalf("plans %+v", f.plans)
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
		"superseded before the answer": {"yes\n", func(*v1alpha1.Plan) {}, true, false, ExitStale, []string{question, "Superseded by plan rest-1, which was approved.\n" + applies}},
		"no, and the stack applies": {"yes\nno\n", func(*v1alpha1.Plan) {}, false, false, ExitError,
			[]string{question, "This command changed no infrastructure; the objects stay recorded.\n" + applies}},
		"no, and the stack applied": {"yes\nno\n", func(p *v1alpha1.Plan) { condition.Ready(&p.Status.Conditions, 1, v1alpha1.ReasonApplied, "") }, false, false, ExitError,
			[]string{question, "Plan rest-1 of the stack rest applied the recorded files. To see its result: kubectl hykube status rest-1 -n default"}},
		"no, and the stack waits for more edits": {"yes\nno\n", nil, false, false, ExitError,
			[]string{question, "The stack rest plans the recorded files by itself. To see its plan: kubectl hykube stack status rest -n default"}},
		"no, and the plan of the stack waits": {"yes\nno\n", func(p *v1alpha1.Plan) { p.Status.AutomaticApproval.Granted = false }, false, false, ExitError,
			[]string{question, "To take them back, apply the files as they were before."}},
		"no, beside a Manual stack": {"yes\nno\n", nil, false, true, ExitError,
			[]string{"To see what the recorded files change: kubectl hykube plan -n default\nTo take them back, apply the files as they were before."}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeServer(t)
			s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "rest", Namespace: "default"}}
			s.Status.Plan = &v1alpha1.StackPlan{Name: "rest-1"}
			if !tc.manual {
				s.Spec.Approval = v1alpha1.ApprovalAutomatic
			}
			f.putStack(s)
			f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
				out := creates(p)
				if !p.Spec.Speculative {
					out[0].After = &runtime.RawExtension{Raw: []byte(`{"name":"other"}`)}
				}
				return out
			}
			errOut := &asked{do: func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				if tc.plan != nil {
					p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "rest-1", Namespace: "default", UID: "uid-rest-1", CreationTimestamp: metav1.NewTime(time.Now().Add(time.Second))},
						Status: v1alpha1.PlanStatus{AutomaticApproval: &v1alpha1.AutomaticApproval{Granted: true}}}
					p.Spec.Approval = v1alpha1.ApprovalAutomatic
					tc.plan(p)
					f.plans["default/rest-1"] = p
				}
				if tc.over {
					f.set(f.plans["default/apply-x7k2d"], v1alpha1.ConditionStalled, true, v1alpha1.ReasonSuperseded, "Superseded by plan rest-1, which was approved.")
				}
			}}
			in := io.Reader(strings.NewReader(tc.answers))
			if tc.over {
				in = io.MultiReader(in, &meanwhile{end: t.Context().Done(), do: func() {}})
			}
			out, printed, code := f.runIn(func(s *session) { s.ask, s.in, s.ErrOut = true, bufio.NewReader(in), errOut }, "", "apply", "-f", write(t, twoFiles))
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
	f := newFakeServer(t)
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		out := creates(p)
		if !p.Spec.Speculative {
			out[0].After = &runtime.RawExtension{Raw: []byte(`{"name":"other"}`)}
		}
		return out
	}
	f.plans["default/earlier"] = &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "earlier", Namespace: "default", UID: "uid-earlier"},
		Status: v1alpha1.PlanStatus{FinishedAt: new(metav1.NewTime(time.Now().Add(time.Second))), Approval: &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}}}
	out, errOut, code := f.runIn(asking, "", "apply", "-f", write(t, twoFiles), "--auto-approve")
	if code != ExitStale || strings.Contains(out, "Apply complete!") {
		t.Errorf("code %d:\n%s\n%s", code, out, errOut)
	}
}

// A Secret that is rotated while the question is open is not overwritten.
func TestApplyKeepsWhatChangedMeanwhile(t *testing.T) {
	f := newFakeServer(t)
	f.recordSecret("7")
	f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
		f.recordSecret("8") // after the plan was made
		return creates(p)
	}
	_, errOut, code := f.runIn(asking, "yes\n", "apply", "-f", write(t, twoFiles))
	if code != ExitStale || !strings.Contains(errOut, `Secret "db": it changed after the plan was shown`) || strings.Contains(errOut, "Planning again") {
		t.Errorf("code %d: %s", code, errOut)
	}
	if data := f.objects["v1/secrets/default/db"]["data"].(map[string]any); data["password"] != "ZnJlc2g=" {
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
			f := newFakeServer(t)
			pressed := make(chan struct{}, 1)
			if !tc.planned {
				f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
					pressed <- struct{}{}
					return nil // it is never made
				}
			}
			if tc.reason == "while the files are sent" {
				var once sync.Once
				f.refuse = func(r *http.Request) (slow *metav1.Status) {
					if strings.HasSuffix(r.URL.Path, "/objects") {
						once.Do(func() {
							_, _ = io.Copy(io.Discard, r.Body) // a body that is left unread keeps the end of the connection from being seen
							pressed <- struct{}{}
							<-r.Context().Done()
							slow = status(503, metav1.StatusReasonServiceUnavailable, "slow")
						})
					}
					return slow
				}
			}
			silence, _ := io.Pipe() // no answer
			calls := 0
			out, errOut, code := f.runIn(func(s *session) {
				s.ask, s.in = true, bufio.NewReader(silence)
				s.interrupts = func() (<-chan struct{}, func()) {
					if calls++; calls <= 2 {
						return pressed, func() {} // while the files are sent, and while the plan is made
					}
					now := make(chan struct{}, 1)
					now <- struct{}{}
					return now, func() {}
				}
			}, "", "apply", "-f", write(t, twoFiles))
			if code != ExitError || !strings.Contains(out+errOut, tc.want) {
				t.Errorf("code %d:\n%s\n%s", code, out, errOut)
			}
			if len(f.plans)+len(f.objects) > 0 || len(f.writes()) > 0 {
				t.Errorf("left behind: %v, %v; writes %v", f.plans, f.objects, f.writes())
			}
		})
	}
}

func TestApplyFromStandardInput(t *testing.T) {
	f := newFakeServer(t)
	if _, errOut, code := f.runIn(asking, twoFiles, "apply", "-f", "-"); code != ExitError || !strings.Contains(errOut, "reads files from standard input") || len(f.calls) > 0 {
		t.Errorf("code %d: %s", code, errOut)
	}
	if out, errOut, code := f.runIn(nil, twoFiles, "apply", "-f", "-", "--auto-approve"); code != ExitDone || !strings.Contains(out, "Apply complete!") {
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
		{"it waits", nil, ExitDone, `Waiting for plan "other" in namespace "default"`},
		{"it does not", []string{"--wait-timeout", "0"}, ExitError, "so nothing was applied"},
	} {
		for _, what := range [][]string{{"-f", write(t, twoFiles)}, {"--all"}} {
			t.Run(tc.reason+" "+what[0], func(t *testing.T) {
				f := newFakeServer(t)
				other := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "default", UID: "uid-other"}}
				f.plans["default/other"] = other
				f.set(other, v1alpha1.ConditionReady, false, v1alpha1.ReasonApplying, "")
				var busy atomic.Bool
				busy.Store(true)
				f.planning = func(p *v1alpha1.Plan) []v1alpha1.PlanChange {
					p.Spec.Targets = []string{"sim_network.main"}
					out := creates(p)
					if busy.Swap(false) {
						p.Status.WaitsFor = []v1alpha1.PlanReference{{Name: "other", UID: "uid-other"}}
						out[0].Action, out[0].State = v1alpha1.ActionNoOp, v1alpha1.ChangeSkipped
						go func() {
							f.mu.Lock()
							defer f.mu.Unlock()
							f.set(other, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
						}()
					}
					return out
				}
				out, errOut, code := f.run(append(append([]string{"apply", "--auto-approve"}, what...), tc.args...)...)
				if code != tc.code || !strings.Contains(errOut, tc.want) || (code == ExitDone) != strings.Contains(out, "Apply complete!") {
					t.Errorf("code %d:\n%s\n%s", code, out, errOut)
				}
			})
		}
	}
}

// A provider that the server would refuse gets the server's error, and no command that would record it.
func TestPlanOfAnInvalidProvider(t *testing.T) {
	f := newFakeServer(t)
	st := status(422, metav1.StatusReasonInvalid, "invalid")
	st.Details = &metav1.StatusDetails{Name: "sim", Causes: []metav1.StatusCause{{Field: "spec.source", Message: "Required value"}}}
	f.refusing["sim"] = st
	for _, verb := range []string{"plan", "apply"} {
		out, errOut, code := f.run(verb, "-f", write(t, firstFiles))
		if code != ExitError || !strings.Contains(errOut, `Provider "sim": spec.source: Required value`) || strings.Contains(errOut, "kubectl apply") || len(f.objects) > 0 {
			t.Errorf("%s: code %d, %d objects: %s\n%s", verb, code, len(f.objects), out, errOut)
		}
	}
}
