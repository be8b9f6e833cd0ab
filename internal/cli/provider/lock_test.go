package provider_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/internal/cli"
	"github.com/hykube/hykube/internal/cli/lockfile"
	"github.com/hykube/hykube/tests/clitest"
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
	f := clitest.New(t, cli.Command)
	file := filepath.Join(t.TempDir(), ".terraform.lock.hcl")
	if err := os.WriteFile(file, []byte(lockFile), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := f.Run("provider", "lock", "-f", file)
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
		if _, err := lockfile.Parse([]byte(text), "x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestProviderLockKeepsTheRest has a Provider with another name than its type, and fields of its own.
func TestProviderLockKeepsTheRest(t *testing.T) {
	f := clitest.New(t, cli.Command)
	f.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Provider",
		"metadata": map[string]any{"name": "watch", "uid": "u", "labels": map[string]any{"team": "a"}},
		"spec":     map[string]any{"source": "hashicorp/time", "version": "~> 0.13", "environment": []any{"TZ"}},
		"status":   map[string]any{"version": "0.13.0", "checksum": "h1:installed=", "archiveChecksum": "zh:installed"},
	}}, "providers")
	want := func(version string, sums ...string) string {
		return "---\napiVersion: hykube.io/v1alpha1\nkind: Provider\nmetadata:\n  labels:\n    team: a\n  name: watch\nspec:\n  checksums:\n  - " +
			strings.Join(sums, "\n  - ") + "\n  environment:\n  - TZ\n  source: hashicorp/time\n  version: " + version + "\n"
	}
	if out, errOut, code := f.Run("provider", "lock", "watch"); code != 0 || out != want("0.13.0", "h1:installed=", "zh:installed") {
		t.Errorf("installed: %s%s, exit code %d", out, errOut, code)
	}
	file := filepath.Join(t.TempDir(), "lock.hcl")
	if err := os.WriteFile(file, []byte(lockFile), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := f.Run("provider", "lock", "-f", file)
	if code != 0 || out != want("0.13.1", "h1:ZT5ppCNIModqk3iOkVt5my8b8yBHmDpl663JtXAIRqM=", "zh:02cb9aab1002f0f2a94a4f85acec8893297dc75915f7404c165983f720a54b74") {
		t.Errorf("lock file: %s%s, exit code %d", out, errOut, code)
	}
	f.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": map[string]any{"name": "time"}, "spec": map[string]any{"source": "other/time"},
	}}, "providers")
	if again, errOut, code := f.Run("provider", "lock", "-f", file); code != 0 || again != out {
		t.Errorf("with another Provider of the type's name: %s%s, exit code %d", again, errOut, code)
	}
	if _, errOut, code := f.Run("provider", "lock", "nosuch"); code != 1 || !strings.Contains(errOut, `lock provider "nosuch"`) {
		t.Errorf("no such provider: %s, exit code %d", errOut, code)
	}
}

// TestProviderLockOfAUsedVersion locks a version other than the one that objects use, and one of several Providers with a source.
func TestProviderLockOfAUsedVersion(t *testing.T) {
	f := clitest.New(t, cli.Command)
	install := func(name, version string) {
		f.Put(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "hykube.io/v1alpha1", "kind": "Provider", "metadata": map[string]any{"name": name},
			"spec": map[string]any{"source": "hashicorp/time"}, "status": map[string]any{"version": version, "checksum": "h1:installed="},
		}}, "providers")
	}
	install("time", "0.9.0")
	file := filepath.Join(t.TempDir(), "lock.hcl")
	if err := os.WriteFile(file, []byte(lockFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := f.Run("provider", "lock", "-f", file); code != 0 || !strings.Contains(out, "version: 0.13.1") {
		t.Errorf("without objects: %s%s, exit code %d", out, errOut, code)
	}
	f.Put(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "hykube.io/v1alpha1", "kind": "Resource", "metadata": map[string]any{"namespace": "prod", "name": "time-static.a"},
		"object": map[string]any{"namespace": "prod", "name": "a"}, "provider": "time",
	}}, "resources")
	out, errOut, code := f.Run("provider", "lock", "-f", file)
	want := `provider "time" would change from version 0.9.0 to 0.13.1 for all its objects: 1 in the namespace "prod"`
	if code != 1 || out != "" || !strings.Contains(errOut, want) {
		t.Errorf("with an object: %s%s, exit code %d, want %s", out, errOut, code, want)
	}
	if out, errOut, code := f.Run("provider", "lock", "-f", file, "--change-version"); code != 0 || !strings.Contains(out, "version: 0.13.1") {
		t.Errorf("a change that is meant: %s%s, exit code %d", out, errOut, code)
	}
	if out, errOut, code := f.Run("provider", "lock"); code != 0 || !strings.Contains(out, "version: 0.9.0") {
		t.Errorf("the installed version: %s%s, exit code %d", out, errOut, code)
	}
	install("time-next", "0.13.1")
	if out, errOut, code := f.Run("provider", "lock", "-f", file); code != 1 || out != "" || !strings.Contains(errOut, "time (0.9.0), time-next (0.13.1); name those") {
		t.Errorf("two Providers: %s%s, exit code %d", out, errOut, code)
	}
	if out, errOut, code := f.Run("provider", "lock", "time-next", "-f", file); code != 0 || !strings.Contains(out, "name: time-next\n") {
		t.Errorf("one of the two: %s%s, exit code %d", out, errOut, code)
	}
}
