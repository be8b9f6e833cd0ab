package steps

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

// ConnectOptions returns the options of a Temporal client that uses the embedded Temporal of a Hykube server, with the
// credentials of config: a client certificate, a token or a file with one. namespace is a Kubernetes namespace, in
// which the user needs the rights on workflows. A worker on another Temporal cluster needs no such options.
func ConnectOptions(config *rest.Config, namespace string) (client.Options, error) {
	if config.ExecProvider != nil || config.AuthProvider != nil {
		return client.Options{}, errors.New(
			"connect to Temporal: the kubeconfig gets its credentials from a program, which Temporal's client does not support; use a client certificate or a token")
	}
	if namespace == "" {
		return client.Options{}, errors.New("connect to Temporal: no namespace is set")
	}
	u, err := url.Parse(config.Host)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return client.Options{}, fmt.Errorf("connect to Temporal: the server's address %q is not https://HOST:PORT",
			config.Host)
	}
	address := u.Host
	if u.Port() == "" {
		address = net.JoinHostPort(u.Hostname(), "443")
	}
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return client.Options{}, fmt.Errorf("connect to Temporal: %w", err)
	}
	if secure == nil { // neither an authority nor a client certificate
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	options := client.Options{
		HostPort:          address,
		Namespace:         v1alpha1.TemporalNamespace(namespace),
		ConnectionOptions: client.ConnectionOptions{TLS: secure},
		// The steps act for the user who started the workflow.
		ContextPropagators: []workflow.ContextPropagator{propagator{}},
	}
	switch token, file := config.BearerToken, config.BearerTokenFile; {
	case file != "":
		// Kubernetes replaces the token of a ServiceAccount in its file.
		options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) {
			data, err := os.ReadFile(file)
			return strings.TrimSpace(string(data)), err
		})
	case token != "":
		options.Credentials = client.NewAPIKeyStaticCredentials(token)
	}
	return options, nil
}
