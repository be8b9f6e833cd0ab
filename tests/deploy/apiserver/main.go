// Command apiserver runs Kubernetes' API server with etcd in one process, for the tests of the Helm chart:
//
//	apiserver DIRECTORY PORT
//
// The token "admin" is that of an administrator. There are no controllers, so that no pod starts. It is a module of its own,
// because the product needs only parts of Kubernetes.
package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: apiserver DIRECTORY PORT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run(dir, port string) error {
	endpoint, err := startEtcd(dir)
	if err != nil {
		return fmt.Errorf("start etcd: %w", err)
	}
	tokens, key := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "accounts.key")
	if err := os.WriteFile(tokens, []byte("admin,admin,1,system:masters\n"), 0o600); err != nil {
		return err
	}
	if err := writeKey(key); err != nil {
		return err
	}
	cmd := app.NewAPIServerCommand()
	cmd.SetArgs([]string{
		"--etcd-servers=" + endpoint, "--cert-dir=" + filepath.Join(dir, "certs"), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port=" + port,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file=" + key, "--service-account-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24", "--token-auth-file=" + tokens, "--authorization-mode=RBAC",
		// A controller would make the accounts of pods.
		"--disable-admission-plugins=ServiceAccount",
	})
	return cmd.Execute()
}

// startEtcd starts etcd on a free port, which ends with the process, and returns its URL.
func startEtcd(dir string) (string, error) {
	config := embed.NewConfig()
	config.Dir, config.LogLevel, config.UnsafeNoFsync = filepath.Join(dir, "etcd"), "error", true
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	endpoint := url.URL{Scheme: "http", Host: l.Addr().String()}
	if err := l.Close(); err != nil {
		return "", err
	}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{endpoint}, []url.URL{endpoint}
	config.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return "", err
	}
	<-etcd.Server.ReadyNotify()
	return endpoint.String(), nil
}

func writeKey(path string) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}
	return os.WriteFile(path, pem.EncodeToMemory(block), 0o600)
}
