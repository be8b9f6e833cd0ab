package main

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/storage"
)

// TestStatusWaitsForARotation waits for a rotation that another command began. The server is away for a while.
func TestStatusWaitsForARotation(t *testing.T) {
	const away = "The server does not answer."
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "http://` + address + `"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	// serve serves until it has answered a number of requests.
	serve := func(l net.Listener, rotating bool, requests int) {
		s := &http.Server{}
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet || r.URL.Path != server.RotateKeysPath {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			keys := server.Keys{Encryption: storage.KeyStatus{Keys: []storage.KeyInfo{{ID: "new"}}, Rotating: rotating}}
			if rotating {
				keys.Encryption.Keys = append(keys.Encryption.Keys, storage.KeyInfo{ID: "old"})
			}
			_ = json.NewEncoder(w).Encode(keys)
			if requests--; requests == 0 {
				go func() { _ = s.Shutdown(t.Context()) }()
			}
		})
		go func() { _ = s.Serve(l) }()
	}
	serve(listener, true, 2)
	for _, tc := range []struct {
		args []string
		last bool // the output is that after the rotation
	}{{[]string{"status"}, false}, {[]string{"status", "--wait"}, true}} {
		out := &output{wrote: func(text string) {
			if strings.HasPrefix(text, away) {
				again, err := net.Listen("tcp", address)
				if err != nil {
					t.Fatal(err)
				}
				serve(again, false, 1)
			}
		}}
		cmd := newRotateKeysCommand()
		cmd.SetOut(out)
		cmd.SetArgs(append(tc.args, "--kubeconfig", kubeconfig))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if last := !strings.Contains(text, "data key old"); last != tc.last || strings.Contains(text, away) != tc.last {
			t.Errorf("%v prints %q, want the keys after the rotation: %t", tc.args, text, tc.last)
		}
	}
}

// output calls wrote after each write.
type output struct {
	strings.Builder
	wrote func(text string)
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Builder.Write(p)
	if o.wrote != nil {
		o.wrote(string(p))
	}
	return n, err
}
