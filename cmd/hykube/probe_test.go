package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestProbe probes a server that fails in several ways. TestTermination probes a real one.
func TestProbe(t *testing.T) {
	unhurried := make(chan struct{})
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/livez":
			<-unhurried
		case "/readyz":
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "[+]ping ok\n[-]storage failed: reason withheld\n[-]audit failed: reason withheld\nreadyz check failed\n")
		}
	}))
	defer fake.Close()
	defer close(unhurried)
	dir := t.TempDir()
	kubeconfig := "clusters: [{name: c, cluster: {server: " + fake.URL + "}}]\ncontexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	if err := os.WriteFile(filepath.Join(dir, "admin.kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for reason, tc := range map[string]struct{ dir, check, server, want string }{
		"a failed check is named":   {dir, "readyz", "", "500 Internal Server Error: [-]storage failed: reason withheld, [-]audit failed: reason withheld"},
		"a late answer is none":     {dir, "livez", "", "no answer within 100ms"},
		"a server without any data": {t.TempDir(), "livez", "", "read kubeconfig"},
		"another address":           {dir, "livez", "https://127.0.0.1:1", "connection refused"},
	} {
		t.Run(reason, func(t *testing.T) {
			o := &probeOptions{dataDir: tc.dir, server: tc.server, timeout: 100 * time.Millisecond}
			if tc.check == "readyz" {
				o.timeout = time.Minute
			}
			if err := o.probe(t.Context(), tc.check); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
