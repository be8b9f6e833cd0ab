package access_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/server/access"
)

func TestTemporalProfile(t *testing.T) {
	now, dir := time.Now(), t.TempDir()
	openCerts(t, filepath.Join(dir, "tls"), now)
	for server, address := range map[string]string{"https://hykube.example.com:6443": "hykube.example.com:6443", "https://hykube.example.com": "hykube.example.com:443", "https://[::1]:6443": "[::1]:6443"} {
		kubeconfig, err := access.UserKubeconfig(dir, access.User{Name: "flow", Expires: now.Add(time.Hour), ServerURL: server, Namespace: "prod"}, now)
		if err != nil {
			t.Fatal(err)
		}
		profile, err := access.TemporalProfile(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"[profile.default]\naddress = \"" + address + "\"\nnamespace = \"hykube.prod\"\n\n[profile.default.tls]\n",
			"\nserver_ca_cert_data = \"\"\"\n" + string(config.CAData) + "\"\"\"\n",
			"\nclient_cert_data = \"\"\"\n" + string(config.CertData) + "\"\"\"\n",
			"\nclient_key_data = \"\"\"\n" + string(config.KeyData) + "\"\"\"\n",
		} {
			if !strings.Contains(string(profile), want) {
				t.Errorf("server %s: the profile lacks %s:\n%s", server, want, profile)
			}
		}
	}
	if _, err := access.TemporalProfile([]byte("apiVersion: v1\nkind: Config\n")); err == nil {
		t.Error("a kubeconfig without a context: no error")
	}
}
