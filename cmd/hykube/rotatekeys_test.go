package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/storage"
)

// TestStatusWaitsForARotation waits for a rotation that another command began.
func TestStatusWaitsForARotation(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != server.RotateKeysPath {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		asked++
		keys := server.Keys{Encryption: storage.KeyStatus{Keys: []storage.KeyInfo{{ID: "new"}, {ID: "old"}}, Rotating: asked < 2}}
		if !keys.Encryption.Rotating {
			keys.Encryption.Keys = keys.Encryption.Keys[:1]
		}
		_ = json.NewEncoder(w).Encode(keys)
	}))
	defer s.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "` + s.URL + `"}}],
		"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		last bool // the output is that after the rotation
	}{{[]string{"status"}, false}, {[]string{"status", "--wait"}, true}} {
		asked = 0
		var out strings.Builder
		cmd := newRotateKeysCommand()
		cmd.SetOut(&out)
		cmd.SetArgs(append(tc.args, "--kubeconfig", kubeconfig))
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last := !strings.Contains(out.String(), "data key old"); last != tc.last {
			t.Errorf("%v printed the keys after the rotation: %t, want %t:\n%s", tc.args, last, tc.last, out.String())
		}
	}
}
