package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The client sends only decisions that the workflow knows. It finds out before it reads a kubeconfig or connects.
func TestDecisions(t *testing.T) {
	missing := []string{"--kubeconfig", t.TempDir() + "/missing"}
	for word, sent := range map[string]bool{promote: true, rollback: true, "promotee": false, "Promote": false, "": false} {
		err := run(t.Context(), append(missing, "decide", "www", word))
		if err == nil {
			t.Fatalf("%q: no error without a kubeconfig", word)
		}
		if refused := strings.Contains(err.Error(), "was not sent"); refused == sent {
			t.Errorf("%q: %v, want sent %t", word, err, sent)
		}
	}
}

// The rollouts beside the program wait for a person, so the worker needs no right to approve. The page shows the first.
func TestRollouts(t *testing.T) {
	page, err := os.ReadFile("../../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]Rollout{"blue.json": {New: "blue"}, "green.json": {New: "green", Old: "blue"}} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(data))
		decoder.DisallowUnknownFields()
		var got Rollout
		if err := decoder.Decode(&got); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if got.New != want.New || got.Old != want.Old || got.Approve || len(got.Waves) == 0 {
			t.Errorf("%s: %+v, want a rollout of %s in waves that a person approves", file, got, want.New)
		}
		if !bytes.Contains(page, []byte("workflows/bluegreen/"+file)) {
			t.Errorf("docs/workflows.md does not name %s", file)
		}
		if file == "blue.json" && !bytes.Contains(page, data) {
			t.Errorf("docs/workflows.md shows another %s", file)
		}
	}
}
