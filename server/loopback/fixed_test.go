package loopback

import (
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
)

// serve returns the plans behind an API that answers as told.
func serve(t *testing.T, answer func(r *http.Request) (any, error)) *Plans {
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
	return &Plans{Client: client}
}

func newPlan() *v1alpha1.Plan {
	p := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}}
	p.Name, p.Namespace, p.UID = "p", "team", "one"
	return p
}

func TestUpdateStatus(t *testing.T) {
	plans := v1alpha1.SchemeGroupVersion.WithResource("plans").GroupResource()
	for name, test := range map[string]struct {
		// put is what the API answers to each write, the last one from then on.
		put    []error
		get    error
		uid    types.UID
		same   bool
		writes int
		want   error
	}{
		"nothing to write":              {uid: "one", same: true},
		"written":                       {put: []error{nil}, uid: "one", writes: 1},
		"somebody else was first":       {put: []error{apierrors.NewConflict(plans, "p", nil), nil}, uid: "one", writes: 2},
		"deleted":                       {get: apierrors.NewNotFound(plans, "p"), uid: "one", want: store.ErrGone},
		"deleted in between":            {put: []error{apierrors.NewNotFound(plans, "p")}, uid: "one", writes: 1, want: store.ErrGone},
		"another plan of the same name": {uid: "two", want: store.ErrGone},
	} {
		t.Run(name, func(t *testing.T) {
			writes, changes := 0, 0
			p := serve(t, func(r *http.Request) (any, error) {
				if r.Method != http.MethodPut {
					return newPlan(), test.get
				}
				if r.URL.Path != "/apis/hykube.io/v1alpha1/namespaces/team/plans/p/status" {
					t.Errorf("write to %s", r.URL.Path)
				}
				writes++
				return newPlan(), test.put[min(writes, len(test.put))-1]
			})
			err := p.UpdateStatus(t.Context(), "team", "p", test.uid, func(s *v1alpha1.PlanStatus) {
				if !test.same {
					s.Digest = "new"
					changes++
				}
			})
			if writes != test.writes || changes != test.writes {
				t.Errorf("%d writes of %d changes, want %d", writes, changes, test.writes)
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
