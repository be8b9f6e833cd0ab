package cli

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// The question at Ctrl-C is asked again after an unknown answer. An answer that comes after the end of the plan is no error.
func TestQuestionAtInterrupt(t *testing.T) {
	for _, tc := range []struct {
		reason, answers  string
		ended, cancelled bool
		asked            int
		refused          bool
		err              error
	}{
		{reason: "go on", answers: "\n", asked: 1},
		{reason: "leave", answers: "D\n", asked: 1, err: errDetached},
		{reason: "unknown answers, then stop", answers: "stop\nn\nc\n", asked: 3, cancelled: true},
		{reason: "unknown answer, and then no more input", answers: "stop\n", asked: 2},
		{reason: "stop, after the end", answers: "c\n", asked: 1, refused: true, ended: true},
	} {
		f := newFakeServer(t)
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "uid-p"}}
		f.plans["default/p"] = p
		f.refuse = func(r *http.Request) *metav1.Status {
			if tc.refused && strings.HasSuffix(r.URL.Path, "/cancel") {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
				return status(409, metav1.StatusReasonConflict, "it has ended, so there is nothing to cancel")
			}
			return nil
		}
		var used *session
		if _, errOut, code := f.runIn(func(s *session) { used, s.ask = s, true }, tc.answers, "status"); code != ExitDone {
			t.Fatalf("%s: code %d: %s", tc.reason, code, errOut)
		}
		err := (&follower{session: used, plan: p.DeepCopy()}).interrupted(t.Context(), nil)
		text := used.ErrOut.(*bytes.Buffer).String()
		if !errors.Is(err, tc.err) || strings.Count(text, "Cancel the plan (c)") != tc.asked || strings.Contains(text, "Cancelling.") != tc.cancelled || strings.Contains(text, "has ended") != tc.ended {
			t.Errorf("%s: %v: %s", tc.reason, err, text)
		}
		if strings.Count(text, "is not an answer: write c or d, or press Enter.") != tc.asked-1 {
			t.Errorf("%s: %s", tc.reason, text)
		}
		if (p.Status.Cancel != nil) != tc.cancelled {
			t.Errorf("%s: cancel %v", tc.reason, p.Status.Cancel)
		}
	}
}

// The question at Ctrl-C ends with the plan, and a line that comes after it answers the next question.
func TestQuestionAtInterruptEndsWithThePlan(t *testing.T) {
	f := newFakeServer(t)
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "uid-p"}}
	f.plans["default/p"] = p
	var used *session
	if _, errOut, code := f.runIn(func(s *session) { used, s.ask = s, true }, "", "status"); code != ExitDone {
		t.Fatal(errOut)
	}
	in, answers := io.Pipe()
	used.in = bufio.NewReader(&startOf{Reader: in, do: func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
	}})
	err := (&follower{session: used, plan: p.DeepCopy()}).interrupted(t.Context(), nil)
	if text := used.ErrOut.(*bytes.Buffer).String(); err != nil || !strings.HasSuffix(text, "\nPlan \"p\" has ended.\n") {
		t.Fatalf("%v: %s", err, text)
	}
	next := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "next", Namespace: "default", UID: "uid-next"}}
	f.plans["default/next"] = next
	go func() { _, _ = io.WriteString(answers, "c\n") }()
	if err := (&follower{session: used, plan: next.DeepCopy()}).interrupted(t.Context(), nil); err != nil || next.Status.Cancel == nil {
		t.Errorf("%v: cancel %v", err, next.Status.Cancel)
	}
}

// startOf is an input that calls do at its first read.
type startOf struct {
	io.Reader
	once sync.Once
	do   func()
}

func (s *startOf) Read(b []byte) (int, error) {
	s.once.Do(s.do)
	return s.Reader.Read(b)
}

// A Ctrl-C during the approval is a Ctrl-C of the apply that the approval starts.
func TestInterruptedWhileApproving(t *testing.T) {
	for _, verb := range [][]string{{"approve", "plan-x7k2d", "--digest", "sha256:abc"}, {"apply", "--all", "--auto-approve"}} {
		f := newFakeServer(t)
		f.planning = func(*v1alpha1.Plan) []v1alpha1.PlanChange {
			return []v1alpha1.PlanChange{{Address: "sim_network.main", Type: "sim_network", Action: v1alpha1.ActionCreate}}
		}
		if _, errOut, code := f.run("plan"); code != ExitDone {
			t.Fatal(errOut)
		}
		keys := &keyboard{}
		f.applying = func(*fakeServer, *v1alpha1.Plan) {} // it does not end
		f.refuse = func(r *http.Request) *metav1.Status {
			if strings.HasSuffix(r.URL.Path, "/approval") && !keys.press() {
				t.Errorf("%s: nothing handles a Ctrl-C during the approval", verb)
			}
			return nil
		}
		_, errOut, code := f.runIn(func(s *session) { s.ask, s.interrupts = true, keys.interrupts }, "d\n", verb...)
		if code != ExitError || strings.Count(errOut, "Cancel the plan (c)") != 1 || !strings.Contains(errOut, "Detached. The server continues the plan.") {
			t.Errorf("%s: code %d: %s", verb, code, errOut)
		}
		if keys.press() {
			t.Errorf("%s: a handler is left", verb)
		}
	}
}

// keyboard has a key Ctrl-C, which each handler receives.
type keyboard struct {
	mu       sync.Mutex
	handlers []chan struct{}
}

// press presses Ctrl-C, and reports whether a handler receives it.
func (k *keyboard) press() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, h := range k.handlers {
		h <- struct{}{}
	}
	return len(k.handlers) > 0
}

func (k *keyboard) interrupts() (<-chan struct{}, func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := make(chan struct{}, 8)
	k.handlers = append(k.handlers, h)
	return h, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.handlers = slices.DeleteFunc(k.handlers, func(other chan struct{}) bool { return other == h })
	}
}
