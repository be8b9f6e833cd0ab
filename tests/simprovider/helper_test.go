package simprovider_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// terraform runs Terraform with the built provider against its own cloud.
type terraform struct {
	t     *testing.T
	cloud *simcloud.Client
	dir   string
	env   []string
}

// build builds the provider once for all subtests.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X main.version=1.2.3", "-o", filepath.Join(dir, "terraform-provider-sim"), "../cmd/terraform-provider-sim")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build provider: %v\n%s", err, out)
	}
	return dir
}

func newTerraform(t *testing.T, override string, config simcloud.Config) *terraform {
	t.Helper()
	cloud := harness.NewCloud(t, config)
	tf := &terraform{t: t, cloud: cloud.Client, dir: t.TempDir()}
	rc := filepath.Join(t.TempDir(), "terraform.rc")
	write(t, rc, fmt.Sprintf("provider_installation {\n  dev_overrides { \"hykube/sim\" = %q }\n  direct {}\n}\n", override))
	tf.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_LOG=off",
		"SIMCLOUD_ADDRESS="+cloud.Address, "SIMCLOUD_TOKEN="+config.Token)
	return tf
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

const header = `terraform {
  required_providers {
    sim = { source = "hykube/sim" }
  }
}
`

// config writes the configuration.
func (tf *terraform) config(hcl string) {
	tf.t.Helper()
	write(tf.t, filepath.Join(tf.dir, "main.tf"), header+hcl)
}

func (tf *terraform) try(args ...string) (string, error) {
	tf.t.Helper()
	cmd := exec.CommandContext(tf.t.Context(), "terraform", append([]string{"-chdir=" + tf.dir}, args...)...)
	cmd.Env = tf.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (tf *terraform) run(args ...string) string {
	tf.t.Helper()
	out, err := tf.try(args...)
	if err != nil {
		tf.t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (tf *terraform) apply() {
	tf.t.Helper()
	tf.run("apply", "-auto-approve", "-no-color", "-input=false")
}

func (tf *terraform) destroy() {
	tf.t.Helper()
	tf.run("destroy", "-auto-approve", "-no-color", "-input=false")
}

// fails applies and expects an error that contains text.
func (tf *terraform) fails(text string) {
	tf.t.Helper()
	out, err := tf.try("apply", "-auto-approve", "-no-color", "-input=false")
	if err == nil {
		tf.t.Fatalf("the apply went well, and should have failed with %q:\n%s", text, out)
	}
	// Terraform wraps lines and puts a bar before each.
	if flat := strings.Join(strings.Fields(strings.ReplaceAll(out, "│", " ")), " "); !strings.Contains(flat, text) {
		tf.t.Errorf("the error does not tell %q:\n%s", text, out)
	}
}

// change is the planned change of a resource.
type change struct{ Actions, Replace string }

// plan returns the planned changes by address.
func (tf *terraform) plan() map[string]change {
	tf.t.Helper()
	tf.run("plan", "-out=plan", "-input=false", "-no-color")
	var p struct {
		ResourceChanges []struct {
			Address string
			Change  struct {
				Actions      []string
				ReplacePaths [][]any `json:"replace_paths"`
			}
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal([]byte(tf.run("show", "-json", "plan")), &p); err != nil {
		tf.t.Fatal(err)
	}
	changes := map[string]change{}
	for _, c := range p.ResourceChanges {
		if a := strings.Join(c.Change.Actions, " "); a != "no-op" {
			var paths []string
			for _, p := range c.Change.ReplacePaths {
				paths = append(paths, fmt.Sprint(p...))
			}
			changes[c.Address] = change{Actions: a, Replace: strings.Join(paths, " ")}
		}
	}
	return changes
}

func (tf *terraform) wantPlan(what string, want map[string]change) {
	tf.t.Helper()
	if diff := cmp.Diff(want, tf.plan()); diff != "" {
		tf.t.Fatalf("plan after %s (-want +got):\n%s", what, diff)
	}
}

// state returns the values of a resource.
func (tf *terraform) state(address string) (values map[string]any, tainted bool) {
	tf.t.Helper()
	var s struct {
		Values struct {
			RootModule struct {
				Resources []struct {
					Address string
					Values  map[string]any
					Tainted bool
				}
			} `json:"root_module"`
		}
	}
	if err := json.Unmarshal([]byte(tf.run("show", "-json")), &s); err != nil {
		tf.t.Fatal(err)
	}
	for _, r := range s.Values.RootModule.Resources {
		if r.Address == address {
			return r.Values, r.Tainted
		}
	}
	return nil, false
}

func (tf *terraform) count(f simcloud.Filter) int {
	tf.t.Helper()
	n, err := tf.cloud.CountCalls(tf.t.Context(), f)
	if err != nil {
		tf.t.Fatal(err)
	}
	return n
}

func (tf *terraform) objects(kind string) int {
	tf.t.Helper()
	o, err := tf.cloud.Objects(tf.t.Context(), kind, "")
	if err != nil {
		tf.t.Fatal(err)
	}
	return len(o)
}

func (tf *terraform) drift(kind, name string, fields map[string]any) {
	tf.t.Helper()
	if _, err := tf.cloud.Drift(tf.t.Context(), kind, name, fields); err != nil {
		tf.t.Fatal(err)
	}
}

func (tf *terraform) fault(f simcloud.Fault) {
	tf.t.Helper()
	if _, err := tf.cloud.Fault(tf.t.Context(), f); err != nil {
		tf.t.Fatal(err)
	}
}

func (tf *terraform) settings(edit func(*simcloud.Settings)) {
	tf.t.Helper()
	if err := tf.cloud.Change(tf.t.Context(), edit); err != nil {
		tf.t.Fatal(err)
	}
}

func millis(n int) simcloud.Duration { return simcloud.Duration(time.Duration(n) * time.Millisecond) }
