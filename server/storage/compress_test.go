package storage

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestRowsAreCompressed(t *testing.T) {
	change := `{"index":7,"address":"sim_network.web[7]","type":"sim_network","object":{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","namespace":"team","name":"web[7]"},"provider":"registry.terraform.io/hykube/sim","action":"Create"}`
	random := make([]byte, 0, 320)
	for i := range byte(10) {
		sum := sha256.Sum256([]byte{i})
		random = append(random, sum[:]...)
	}
	for name, content := range map[string]string{
		"empty": "", "short": "{}", "a change": change, "a long text": strings.Repeat(change, 1000), "what cannot be compressed": string(random),
		"a first byte": "\x00", "another first byte": "\x01", "first bytes": "\x01" + string(random),
	} {
		row := compress([]byte(content))
		got, err := decompress(bytes.Clone(row))
		if err != nil || string(got) != content {
			t.Errorf("%s: a row of %d bytes became %d bytes, want %d; %v", name, len(row), len(got), len(content), err)
		}
		if most := len(content) + 1; len(row) > most || name == "a change" && len(row) > len(content)/2 {
			t.Errorf("%s: a row of %d bytes takes %d", name, len(content), len(row))
		}
	}
	if _, err := decompress([]byte{compressed1, 0xff}); err == nil {
		t.Error("a damaged row has no error")
	}
}

// TestDictionariesStay fails if a dictionary changes with which rows were stored.
func TestDictionariesStay(t *testing.T) {
	sum := sha256.Sum256(dictionary1)
	if got, want := hex.EncodeToString(sum[:8]), "050d5dfa000be33c"; got != want {
		t.Errorf("dictionary1 changed (%s, want %s): stored rows need it; add another dictionary", got, want)
	}
}
