package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// costlyObjects returns objects with expressions that are each within the limit of one evaluation, but not together.
func costlyObjects(t *testing.T, n int, spec map[string]any) []byte {
	t.Helper()
	v := &v1alpha1.Validation{}
	v.APIVersion, v.Kind = v1alpha1.SchemeGroupVersion.String(), "Validation"
	for i := range n {
		o := simNetwork(fmt.Sprintf("n%d", i))
		o.Object["spec"] = spec
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		v.Spec.Objects = append(v.Spec.Objects, runtime.RawExtension{Raw: raw})
	}
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// validate creates a Validation as a user and returns the status code and the answer.
func validate(ctx context.Context, s *instance, user string, body []byte) (int, string, error) {
	client, err := rest.HTTPClientFor(s.as(user))
	if err != nil {
		return 0, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+"/apis/hykube.io/v1alpha1/namespaces/default/validations", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// TestCostlyValidationsDelayNoOther has a user without a role validate objects whose expressions take the whole limit.
// Meanwhile, and after that user's clients left, the validation of another user is answered soon.
func TestCostlyValidationsDelayNoOther(t *testing.T) {
	const loops, soon = `${length([for a in range(500) : [for b in range(500) : a]])}`, 10 * time.Second
	small, attack := costlyObjects(t, 1, map[string]any{"name": "a"}), costlyObjects(t, 150, map[string]any{"name": loops})
	code, text, err := validate(t.Context(), shared, "viewer", attack)
	if err != nil || !strings.Contains(text, "expressions of this request together exceed the evaluation limit") {
		t.Errorf("%d, %v, %.300s", code, err, text)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	for range 8 {
		go func() {
			for ctx.Err() == nil {
				_, _, _ = validate(ctx, shared, "viewer", attack)
			}
		}()
	}
	time.Sleep(300 * time.Millisecond)
	for _, when := range []string{"meanwhile", "meanwhile again", "after the clients left"} {
		if strings.HasPrefix(when, "after") {
			leave()
		}
		start := time.Now()
		code, text, err = validate(t.Context(), shared, "editor", small)
		if took := time.Since(start); err != nil || code != http.StatusCreated || took > soon {
			t.Errorf("%s: %d after %s, %v, %.300s", when, code, took, err, text)
		} else {
			t.Logf("%s: %s", when, took)
		}
	}
}
