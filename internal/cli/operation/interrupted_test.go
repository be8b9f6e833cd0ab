package operation

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/tests/clitest"
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
		{reason: "leave", answers: "D\n", asked: 1, err: ErrDetached},
		{reason: "unknown answers, then stop", answers: "stop\nn\nc\n", asked: 3, cancelled: true},
		{reason: "unknown answer, and then no more input", answers: "stop\n", asked: 2},
		{reason: "stop, after the end", answers: "c\n", asked: 1, refused: true, ended: true},
	} {
		f := clitest.New(t, clitest.Connect)
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "uid-p"}}
		f.Plans["default/p"] = p
		f.Refuse = func(r *http.Request) *metav1.Status {
			if tc.refused && strings.HasSuffix(r.URL.Path, "/cancel") {
				f.Mu.Lock()
				defer f.Mu.Unlock()
				f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
				return clitest.Status(409, metav1.StatusReasonConflict, "it has ended, so there is nothing to cancel")
			}
			return nil
		}
		var used *session.Session
		if _, errOut, code := f.RunIn(func(s *session.Session) { used, s.Ask = s, true }, tc.answers); code != exit.Done {
			t.Fatalf("%s: code %d: %s", tc.reason, code, errOut)
		}
		err := (&follower{Session: used, plan: p.DeepCopy()}).interrupted(t.Context(), nil)
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
	f := clitest.New(t, clitest.Connect)
	p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default", UID: "uid-p"}}
	f.Plans["default/p"] = p
	var used *session.Session
	if _, errOut, code := f.RunIn(func(s *session.Session) { used, s.Ask = s, true }, ""); code != exit.Done {
		t.Fatal(errOut)
	}
	in, answers := io.Pipe()
	used.Input = bufio.NewReader(&startOf{Reader: in, do: func() {
		f.Mu.Lock()
		defer f.Mu.Unlock()
		f.Set(p, v1alpha1.ConditionReady, true, v1alpha1.ReasonApplied, "")
	}})
	err := (&follower{Session: used, plan: p.DeepCopy()}).interrupted(t.Context(), nil)
	if text := used.ErrOut.(*bytes.Buffer).String(); err != nil || !strings.HasSuffix(text, "\nPlan \"p\" has ended.\n") {
		t.Fatalf("%v: %s", err, text)
	}
	next := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Name: "next", Namespace: "default", UID: "uid-next"}}
	f.Plans["default/next"] = next
	go func() { _, _ = io.WriteString(answers, "c\n") }()
	if err := (&follower{Session: used, plan: next.DeepCopy()}).interrupted(t.Context(), nil); err != nil || next.Status.Cancel == nil {
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
