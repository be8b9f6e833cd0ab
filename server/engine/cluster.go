package engine

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// startTimeout is the maximum time that Start waits for a frontend, embedded or external.
const startTimeout = 10 * time.Second

// searchAttribute is a search attribute of this server's workflow runs, for the Web UI and list queries.
type searchAttribute struct {
	name string
	kind enumspb.IndexedValueType
}

var searchAttributes = []searchAttribute{
	{"HykubePlan", enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	{"HykubeNamespace", enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	{"HykubeProvider", enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST},
	{"HykubeOutcome", enumspb.INDEXED_VALUE_TYPE_KEYWORD},
	{"HykubeRequester", enumspb.INDEXED_VALUE_TYPE_KEYWORD},
}

// dial connects to the frontend. It retries until the frontend answers or startTimeout has passed.
func dial(ctx context.Context, options client.Options) (client.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		c, err := client.DialContext(ctx, options)
		if err == nil {
			return c, nil
		}
		if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
			return nil, fmt.Errorf("connect to Temporal at %q: %w: it refused the credentials of this server",
				options.HostPort, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("connect to Temporal at %q: %w: is it running there, and can this server reach it? %s", options.HostPort, err, tlsAdvice(options.ConnectionOptions.TLS))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// tlsAdvice returns the advice for a cluster and a server that may disagree about TLS.
func tlsAdvice(config *tls.Config) string {
	if config == nil {
		return "--temporal-tls=false connects without TLS; does it expect TLS?"
	}
	return "If it serves without TLS, add --temporal-tls=false"
}

// ensureNamespace registers the namespace if it does not exist.
func ensureNamespace(ctx context.Context, c client.Client, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	_, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); !ok {
		return fmt.Errorf("look up Temporal namespace %q: %w", name, err)
	}
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace:                        name,
		Description:                      "Plans and applies of Hykube",
		WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if _, ok := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); ok {
		return nil // another server has registered it
	}
	if err != nil {
		return fmt.Errorf("register Temporal namespace %q: %w: register it yourself with `temporal operator namespace create -n %s`", name, err, name)
	}
	// A frontend learns of a new namespace with a delay.
	for {
		_, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: name, PageSize: 1})
		if _, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); !ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("register Temporal namespace %q: it does not appear: %w", name, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// ensureSearchAttributes adds missing search attributes. It returns an error if one exists with another type, because
// queries on it would silently find nothing.
func ensureSearchAttributes(ctx context.Context, c client.Client, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	present, err := c.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list search attributes of Temporal namespace %q: %w%s", namespace, err, grantAdvice(err))
	}
	missing := map[string]enumspb.IndexedValueType{}
	for _, a := range searchAttributes {
		kind, ok := present.GetCustomAttributes()[a.name]
		switch {
		case !ok:
			missing[a.name] = a.kind
		case kind != a.kind:
			return fmt.Errorf("register search attribute %q in Temporal namespace %q: it exists with type %s and must be %s: remove it with `temporal operator search-attribute remove`, or use another namespace", a.name, namespace, kind, a.kind)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if err := addSearchAttributes(ctx, c, namespace, missing); err != nil {
		return err
	}
	// A frontend learns of new search attributes with a delay. Until then, it rejects workflows that have them.
	for {
		_, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, PageSize: 1,
			Query: "HykubePlan IS NULL AND HykubeNamespace IS NULL AND HykubeProvider IS NULL AND HykubeOutcome IS NULL AND HykubeRequester IS NULL"})
		if _, ok := errors.AsType[*serviceerror.InvalidArgument](err); !ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("register search attributes in Temporal namespace %q: they do not appear: %w", namespace,
				err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func addSearchAttributes(ctx context.Context, c client.Client, namespace string,
	missing map[string]enumspb.IndexedValueType) error {
	_, err := c.OperatorService().AddSearchAttributes(ctx,
		&operatorservice.AddSearchAttributesRequest{Namespace: namespace, SearchAttributes: missing})
	if _, ok := errors.AsType[*serviceerror.AlreadyExists](err); ok {
		return nil
	}
	if err != nil {
		return fmt.Errorf("register search attributes in Temporal namespace %q: %w%s", namespace, err, grantAdvice(err))
	}
	return nil
}

func grantAdvice(err error) string {
	if _, ok := errors.AsType[*serviceerror.PermissionDenied](err); ok {
		return ": this needs the operator service; grant it, or add HykubePlan, HykubeNamespace, HykubeOutcome and HykubeRequester (Keyword) and HykubeProvider (KeywordList) yourself with `temporal operator search-attribute create`"
	}
	return ""
}
