package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const lockFile = `# This file is maintained automatically by "terraform init".
provider "registry.terraform.io/hashicorp/time" {
  version     = "0.13.1"
  constraints = "~> 0.13"
  hashes = [
    "h1:ZT5ppCNIModqk3iOkVt5my8b8yBHmDpl663JtXAIRqM=",
    "zh:02cb9aab1002f0f2a94a4f85acec8893297dc75915f7404c165983f720a54b74",
    "future:1",
  ]
}
`

func TestProviderLockFromTerraform(t *testing.T) {
	f := newFakeServer(t)
	file := filepath.Join(t.TempDir(), ".terraform.lock.hcl")
	if err := os.WriteFile(file, []byte(lockFile), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := f.run("provider", "lock", "-f", file)
	want := `---
apiVersion: hykube.io/v1alpha1
kind: Provider
metadata:
  name: time
spec:
  checksums:
  - h1:ZT5ppCNIModqk3iOkVt5my8b8yBHmDpl663JtXAIRqM=
  - zh:02cb9aab1002f0f2a94a4f85acec8893297dc75915f7404c165983f720a54b74
  source: registry.terraform.io/hashicorp/time
  version: 0.13.1
`
	if code != 0 || out != want {
		t.Errorf("printed %s%s, exit code %d; want %s", out, errOut, code, want)
	}
	for text, want := range map[string]string{
		"":                             "no provider",
		"provider \"a/b\" {":           "lock file",
		"provider \"a/b\" {\n}\n":      "no version",
		"module \"a\" {\n  x = 1\n}\n": "no provider",
	} {
		if _, err := parseLockFile([]byte(text), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFullSource(t *testing.T) {
	for in, want := range map[string]string{"aws": "registry.terraform.io/hashicorp/aws", "Other/aws": "registry.terraform.io/other/aws", "example.com/a/b": "example.com/a/b"} {
		if got := fullSource(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// TestProviderLockKeepsTheRest has a Provider with another name than its type, and fields of its own.
func TestProviderLockKeepsTheRest(t *testing.T) {
	f := newFakeServer(t)
	f.put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Provider",
		"metadata": map[string]any{"name": "watch", "uid": "u", "labels": map[string]any{"team": "a"}},
		"spec":     map[string]any{"source": "hashicorp/time", "version": "~> 0.13", "environment": []any{"TZ"}},
		"status":   map[string]any{"version": "0.13.0", "checksum": "h1:installed=", "archiveChecksum": "zh:installed"},
	}}, "providers")
	want := func(version string, sums ...string) string {
		return "---\napiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata:\n  labels:\n    team: a\n  name: watch\nspec:\n  checksums:\n  - " +
			strings.Join(sums, "\n  - ") + "\n  environment:\n  - TZ\n  source: hashicorp/time\n  version: " + version + "\n"
	}
	if out, errOut, code := f.run("provider", "lock", "watch"); code != 0 || out != want("0.13.0", "h1:installed=", "zh:installed") {
		t.Errorf("installed: %s%s, exit code %d", out, errOut, code)
	}
	file := filepath.Join(t.TempDir(), "lock.hcl")
	if err := os.WriteFile(file, []byte(lockFile), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := f.run("provider", "lock", "-f", file)
	if code != 0 || out != want("0.13.1", "h1:ZT5ppCNIModqk3iOkVt5my8b8yBHmDpl663JtXAIRqM=", "zh:02cb9aab1002f0f2a94a4f85acec8893297dc75915f7404c165983f720a54b74") {
		t.Errorf("lock file: %s%s, exit code %d", out, errOut, code)
	}
	f.put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": map[string]any{"name": "time"}, "spec": map[string]any{"source": "other/time"},
	}}, "providers")
	if again, errOut, code := f.run("provider", "lock", "-f", file); code != 0 || again != out {
		t.Errorf("with another Provider of the type's name: %s%s, exit code %d", again, errOut, code)
	}
	if _, errOut, code := f.run("provider", "lock", "nosuch"); code != 1 || !strings.Contains(errOut, `lock provider "nosuch"`) {
		t.Errorf("no such provider: %s, exit code %d", errOut, code)
	}
}
