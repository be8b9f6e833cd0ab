package steps

import (
	"context"
	"net/http"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// OnBehalf returns a copy of config for activities. A request with the context of an activity acts for the user who
// started the workflow: that user and the user of the worker both need the right. The steps use it. Use it, too, for
// the clients of your own activities, so that nobody gets the rights of the worker by starting a workflow. The worker
// needs the client options of ConnectOptions.
func OnBehalf(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { return onBehalf{inner} })
	return config
}

// onBehalf adds the header to requests with the context of an activity.
type onBehalf struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t onBehalf) RoundTrip(r *http.Request) (*http.Response, error) {
	if !activity.IsActivity(r.Context()) {
		return t.inner.RoundTrip(r)
	}
	text, _ := r.Context().Value(onBehalfKey{}).(string)
	if err := mustKnowStarter(text, activity.GetInfo(r.Context()).Namespace); err != nil {
		return nil, err
	}
	if text != "" {
		r = utilnet.CloneRequest(r)
		r.Header.Set(v1alpha1.HeaderOnBehalfOf, text)
	}
	return t.inner.RoundTrip(r)
}

// mustKnowStarter returns an error for an activity without the text, in a Temporal namespace of a Hykube server.
// Another Temporal cluster has no such texts.
func mustKnowStarter(text, namespace string) error {
	if _, served := v1alpha1.NamespaceOfTemporal(namespace); text != "" || !served {
		return nil
	}
	return failure(Invalid, "the step does not know who started the workflow: "+
		"make the worker's Temporal client with steps.ConnectOptions, and run the step as an activity, not as a local one")
}

type onBehalfKey struct{}

// propagator reads the text with which an activity acts for the user who started the workflow. The server writes it.
type propagator struct{}

var _ workflow.ContextPropagator = propagator{}

// Extract implements workflow.ContextPropagator.
func (propagator) Extract(ctx context.Context, header workflow.HeaderReader) (context.Context, error) {
	payload, ok := header.Get(v1alpha1.ActivityHeaderOnBehalfOf)
	if !ok {
		return ctx, nil
	}
	return context.WithValue(ctx, onBehalfKey{}, strings.TrimSpace(string(payload.GetData()))), nil
}

// Inject implements workflow.ContextPropagator.
func (propagator) Inject(context.Context, workflow.HeaderWriter) error { return nil }

// InjectFromWorkflow implements workflow.ContextPropagator.
func (propagator) InjectFromWorkflow(workflow.Context, workflow.HeaderWriter) error { return nil }

// ExtractToWorkflow implements workflow.ContextPropagator.
func (propagator) ExtractToWorkflow(ctx workflow.Context, _ workflow.HeaderReader) (workflow.Context, error) {
	return ctx, nil
}
