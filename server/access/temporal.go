package access

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	clientcmd "k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TemporalProfile returns the file temporal.toml for the user of a kubeconfig that UserKubeconfig made: a profile named
// "default" for the workflows of the kubeconfig's namespace. Temporal's CLI and SDKs read it.
func TemporalProfile(kubeconfig []byte) ([]byte, error) {
	c, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	context := c.Contexts[c.CurrentContext]
	if context == nil || c.Clusters[context.Cluster] == nil || c.AuthInfos[context.AuthInfo] == nil {
		return nil, errors.New("read kubeconfig: it has no current context")
	}
	cluster, user := c.Clusters[context.Cluster], c.AuthInfos[context.AuthInfo]
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	address := server.Host
	if server.Port() == "" {
		address = net.JoinHostPort(server.Hostname(), "443")
	}
	var out strings.Builder
	fmt.Fprintf(&out, "# The Temporal namespace of the Kubernetes namespace %q, on the Hykube server.\n",
		context.Namespace)
	fmt.Fprintf(&out, "[profile.default]\naddress = %q\nnamespace = %q\n\n[profile.default.tls]\n", address,
		v1alpha1.TemporalNamespace(context.Namespace))
	for _, f := range []struct {
		key string
		pem []byte
	}{
		{"server_ca_cert_data", cluster.CertificateAuthorityData},
		{"client_cert_data", user.ClientCertificateData},
		{"client_key_data", user.ClientKeyData},
	} {
		fmt.Fprintf(&out, "%s = \"\"\"\n%s\"\"\"\n", f.key, f.pem)
	}
	return []byte(out.String()), nil
}
