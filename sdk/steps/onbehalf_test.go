package steps

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestOnBehalf sends requests from activities, with and without the text of the server.
func TestOnBehalf(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got = r.Header.Values(v1alpha1.HeaderOnBehalfOf) }))
	defer server.Close()
	client, err := rest.HTTPClientFor(OnBehalf(&rest.Config{Host: server.URL}))
	if err != nil {
		t.Fatal(err)
	}
	get := func(ctx context.Context) error {
		got = nil
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(r)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	for _, want := range []string{"text", ""} {
		env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
		env.SetContextPropagators([]workflow.ContextPropagator{propagator{}})
		header := &commonpb.Header{Fields: map[string]*commonpb.Payload{"other": {Data: []byte("x")}}}
		if want != "" {
			header.Fields[v1alpha1.ActivityHeaderOnBehalfOf] = &commonpb.Payload{Data: []byte(want)}
		}
		env.SetHeader(header)
		env.RegisterActivityWithOptions(get, activity.RegisterOptions{Name: "step"})
		if _, err := env.ExecuteActivity("step"); err != nil {
			t.Errorf("with the text %q: %v", want, err)
		}
		if want != "" && (len(got) != 1 || got[0] != want) || want == "" && len(got) != 0 {
			t.Errorf("sent %q, want %q", got, want)
		}
	}
	for why, tc := range map[string]struct {
		text, namespace string
		refused         bool
	}{
		"of a Hykube server":                 {"text", "hykube.prod", false},
		"of a Hykube server, without a text": {"", "hykube.prod", true},
		"of another cluster":                 {"", "default", false},
	} {
		if err := mustKnowStarter(tc.text, tc.namespace); Is(err, Invalid) != tc.refused {
			t.Errorf("%s: %v, want a refusal %t", why, err, tc.refused)
		}
	}
	if err := get(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("outside of an activity: %v, sent %q", err, got)
	}
}
