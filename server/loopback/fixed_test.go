package loopback

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/direct"
)

// serve returns a client of an API with the given answers.
func serve(t *testing.T, answer func(r *http.Request) (any, error)) rest.Interface {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body, err := answer(r)
		if se, ok := errors.AsType[*apierrors.StatusError](err); ok {
			w.WriteHeader(int(se.ErrStatus.Code))
			body = se.ErrStatus
		}
		_ = json.NewEncoder(w).Encode(body)
	}))
	t.Cleanup(s.Close)
	client, err := NewClient(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func newPlan() *v1alpha1.Plan {
	p := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}}
	p.Name, p.Namespace, p.UID = "p", "team", "one"
	return p
}

// storedPlan is a stored plan that counts its writes.
type storedPlan struct {
	plan *v1alpha1.Plan
	// cached is the plan in memory; nil if it is not there.
	cached *v1alpha1.Plan
	err    error
	wrote  int
}

func (s *storedPlan) Get(context.Context, string, string) (*v1alpha1.Plan, error) {
	return s.plan, s.err
}

func (s *storedPlan) Cached(context.Context, string, string) (*v1alpha1.Plan, error) {
	if s.cached == nil {
		return nil, apierrors.NewNotFound(v1alpha1.Resource("plans"), "p")
	}
	return s.cached, nil
}

func (s *storedPlan) UpdateStatus(_ context.Context, _, _ string, change func(*v1alpha1.Plan) error) error {
	if s.err != nil {
		return s.err
	}
	err := change(s.plan)
	if errors.Is(err, direct.ErrUnchanged) {
		return nil
	}
	if err == nil {
		s.wrote++
	}
	return err
}

// TestCancelled asks for a cancel with a memory that has the plan, lacks it, or has an earlier plan of the name.
func TestCancelled(t *testing.T) {
	cancelled := newPlan()
	cancelled.Status.Cancel = &v1alpha1.PlanCancel{}
	another := newPlan()
	another.UID = "another"
	for name, test := range map[string]struct {
		stored, cached *v1alpha1.Plan
		want           bool
	}{
		"not cancelled":            {stored: newPlan(), cached: newPlan()},
		"in memory":                {stored: cancelled, cached: cancelled, want: true},
		"not in memory yet":        {stored: cancelled, want: true},
		"an earlier one in memory": {stored: cancelled, cached: another, want: true},
	} {
		plans := &Plans{Stored: &storedPlan{plan: test.stored, cached: test.cached}}
		if got, err := plans.Cancelled(t.Context(), "team", "p", "one"); got != test.want || err != nil {
			t.Errorf("%s: %t, %v", name, got, err)
		}
	}
	plans := &Plans{Stored: &storedPlan{plan: newPlan()}}
	if _, err := plans.Cancelled(t.Context(), "team", "p", "two"); !errors.Is(err, store.ErrGone) {
		t.Errorf("another plan of the same name: %v", err)
	}
}

func TestUpdateStatus(t *testing.T) {
	notFound := apierrors.NewNotFound(v1alpha1.Resource("plans"), "p")
	for name, test := range map[string]struct {
		uid    types.UID
		err    error
		digest string
		writes int
		want   error
	}{
		"nothing to write":              {uid: "one"},
		"written":                       {uid: "one", digest: "new", writes: 1},
		"deleted":                       {uid: "one", err: notFound, want: store.ErrGone},
		"another plan of the same name": {uid: "two", digest: "new", want: store.ErrGone},
	} {
		s := &storedPlan{plan: newPlan(), err: test.err}
		plans := &Plans{Stored: s}
		err := plans.UpdateStatus(t.Context(), "team", "p", test.uid, func(s *v1alpha1.PlanStatus) { s.Digest = test.digest })
		if s.wrote != test.writes || !errors.Is(err, test.want) {
			t.Errorf("%s: %d writes, %v; want %d, %v", name, s.wrote, err, test.writes, test.want)
		}
		if _, err := plans.Get(t.Context(), "team", "p", test.uid); !errors.Is(err, test.want) {
			t.Errorf("%s: read: %v, want %v", name, err, test.want)
		}
	}
}

func TestApprove(t *testing.T) {
	plans := v1alpha1.SchemeGroupVersion.WithResource("plans").GroupResource()
	for name, test := range map[string]struct {
		// put holds the API's response to each write. The last one repeats.
		put    []error
		get    error
		uid    types.UID
		writes int
		want   error
	}{
		"written":                       {put: []error{nil}, uid: "one", writes: 1},
		"another writer was faster":     {put: []error{apierrors.NewConflict(plans, "p", nil), nil}, uid: "one", writes: 2},
		"deleted":                       {get: apierrors.NewNotFound(plans, "p"), uid: "one", want: store.ErrGone},
		"deleted in between":            {put: []error{apierrors.NewNotFound(plans, "p")}, uid: "one", writes: 1, want: store.ErrGone},
		"another plan of the same name": {uid: "two", want: store.ErrGone},
	} {
		t.Run(name, func(t *testing.T) {
			writes := 0
			client := serve(t, func(r *http.Request) (any, error) {
				if r.Method != http.MethodPut {
					return newPlan(), test.get
				}
				if r.URL.Path != "/apis/hykube.io/v1alpha1/namespaces/team/plans/p/approval" {
					t.Errorf("write to %s", r.URL.Path)
				}
				writes++
				return newPlan(), test.put[min(writes, len(test.put))-1]
			})
			err := (&Plans{Client: client}).Approve(t.Context(), "team", "p", test.uid, v1alpha1.PlanApproval{Digest: "d"})
			if writes != test.writes {
				t.Errorf("%d writes, want %d", writes, test.writes)
			}
			if !errors.Is(err, test.want) {
				t.Errorf("error %v, want %v", err, test.want)
			}
		})
	}
}

func TestSecret(t *testing.T) {
	c := &Configs{Core: fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "credentials"}, Data: map[string][]byte{"token": []byte("t")},
	})}
	for name, test := range map[string]struct {
		name, key string
		want      string
		missing   *store.SecretError
	}{
		"there":          {"credentials", "token", "t", nil},
		"no such key":    {"credentials", "tokn", "", &store.SecretError{Namespace: "team", Name: "credentials", Key: "tokn"}},
		"no such secret": {"absent", "token", "", &store.SecretError{Namespace: "team", Name: "absent"}},
	} {
		value, err := c.Secret(t.Context(), "team", test.name, test.key)
		missing, _ := errors.AsType[*store.SecretError](err)
		if diff := cmp.Diff(test.missing, missing); diff != "" || string(value) != test.want {
			t.Errorf("%s: %q (-want +got):\n%s", name, value, diff)
		}
	}
}
