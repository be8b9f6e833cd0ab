package loopback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/store"
)

// TestReadsOfASecretAreRecorded reads a Secret as the steps of plans and a user's evaluations do. A request stands for a
// record in the audit log. Each plan has one for each version of the Secret, before and after its approval.
func TestReadsOfASecretAreRecorded(t *testing.T) {
	requests := fake.NewClientset()
	stored := storedObjects{}
	c := &Configs{Core: requests, Stored: stored}
	write := func(version int, value string) {
		t.Helper()
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db", ResourceVersion: strconv.Itoa(version)}, Data: map[string][]byte{"k": []byte(value)}}
		_ = requests.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "team", "db")
		if err := requests.Tracker().Add(secret); err != nil {
			t.Fatal(err)
		}
		stored["secrets/team/db"] = map[string]any{"metadata": map[string]any{"namespace": "team", "name": "db", "resourceVersion": strconv.Itoa(version)}, "data": map[string]any{"k": []byte(value)}}
	}
	write(1, "old")
	planned := audit.Cause{Plan: "p", PlanUID: "1", Requester: "ann"}
	approved, other := planned, planned
	approved.Digest, approved.Approvers = "d", []string{"bob"}
	other.PlanUID = "2"
	for _, step := range []struct {
		reason   string
		cause    audit.Cause
		requests int
		want     string
	}{
		{"the first resource of a plan", planned, 1, "old"},
		{"the next resource", planned, 0, "old"},
		{"another plan", other, 1, "old"},
		{"the plan is approved", approved, 1, "old"},
		{"a step of the approved plan", approved, 0, "old"},
		{"an evaluation", audit.Cause{Requester: "ann"}, 1, "old"},
		{"the same evaluation again", audit.Cause{Requester: "ann"}, 1, "old"},
		{"the Secret has another version", approved, 1, "new"},
		{"a step after that", approved, 0, "new"},
		{"the Secret is gone", approved, 1, ""},
	} {
		switch step.reason {
		case "the Secret has another version":
			write(2, "new")
		case "the Secret is gone":
			_ = requests.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("secrets"), "team", "db")
			delete(stored, "secrets/team/db")
		}
		requests.ClearActions()
		data, err := c.SecretData(audit.With(t.Context(), step.cause), "team", "db")
		if err != nil || string(data["k"]) != step.want {
			t.Errorf("%s: %q, %v", step.reason, data["k"], err)
		}
		if n := len(requests.Actions()); n != step.requests {
			t.Errorf("%s: %d requests, want %d", step.reason, n, step.requests)
		}
	}
}

// TestStepsThatBeginTogetherReadASecretOnce lets steps of a plan read a Secret at the same time. The first request is slow.
func TestStepsThatBeginTogetherReadASecretOnce(t *testing.T) {
	requests := fake.NewClientset(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "db", ResourceVersion: "1"}, Data: map[string][]byte{"k": []byte("v")}})
	requests.PrependReactor("get", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		time.Sleep(50 * time.Millisecond)
		return false, nil, nil
	})
	c := &Configs{Core: requests, Stored: storedObjects{"secrets/team/db": {"metadata": map[string]any{"namespace": "team", "name": "db", "resourceVersion": "1"}, "data": map[string]any{"k": []byte("v")}}}}
	ctx := audit.With(t.Context(), audit.Cause{Plan: "p", PlanUID: "1"})
	var steps sync.WaitGroup
	for range 16 {
		steps.Go(func() {
			if value, err := c.Secret(ctx, "team", "db", "k"); err != nil || string(value) != "v" {
				t.Errorf("%q, %v", value, err)
			}
		})
	}
	steps.Wait()
	if n := len(requests.Actions()); n != 1 {
		t.Errorf("%d requests, want one", n)
	}
}

// TestFailedRequests distinguishes requests that the server refuses from those that it could not answer.
func TestFailedRequests(t *testing.T) {
	secrets := corev1.Resource("secrets")
	for reason, c := range map[string]struct {
		err  error
		want bool
	}{
		"no right":                      {apierrors.NewForbidden(secrets, "db", errors.New("no right")), false},
		"a conflict":                    {apierrors.NewConflict(secrets, "db", errors.New("changed")), false},
		"an invalid object":             {apierrors.NewBadRequest("invalid"), false},
		"the database was cut":          {apierrors.NewInternalError(errors.New("unexpected EOF")), true},
		"the database took too long":    {apierrors.NewTimeoutError("slow", 1), true},
		"the server starts":             {apierrors.NewServiceUnavailable("starting"), true},
		"too many requests":             {apierrors.NewTooManyRequests("later", 1), true},
		"the connection was cut":        {io.ErrUnexpectedEOF, true},
		"the caller has given up":       {context.Canceled, false},
		"the caller's time has expired": {context.DeadlineExceeded, false},
	} {
		t.Run(reason, func(t *testing.T) {
			err := failedRequest(fmt.Errorf("read secret: %w", c.err))
			if store.IsFailed(err) != c.want || !errors.Is(err, c.err) {
				t.Errorf("a failed store: %t, want %t; %v", store.IsFailed(err), c.want, err)
			}
		})
	}
}
