package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/hykube/hykube/tests/harness/machine"
)

// terraform runs Terraform or OpenTofu with the provider and the cloud of a bench.
type terraform struct {
	path, dir string
	env       []string
}

// newTerraform returns nil if neither Terraform nor OpenTofu is on the machine.
func newTerraform(b *bench) (*terraform, error) {
	path := machine.TerraformOrTofu.Path()
	if path == "" {
		return nil, nil
	}
	plugin, err := simPlugin(b.Mirror)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.Dir, "terraform")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	rc := filepath.Join(dir, "terraform.rc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"registry.terraform.io/hykube/sim\" = %q\n  }\n  direct {}\n}\n", filepath.Dir(plugin))
	env := append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "SIMCLOUD_ADDRESS="+b.cloud.Address, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1")
	return &terraform{path, dir, env}, os.WriteFile(rc, []byte(text), 0o600)
}

// simPlugin returns the path of the provider sim in a mirror.
func simPlugin(mirror string) (string, error) {
	found, err := filepath.Glob(filepath.Join(mirror, "registry.terraform.io", "hykube", "sim", "*", "*", "terraform-provider-sim*"))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("find the provider sim in %s: %d, %w", mirror, len(found), err)
	}
	return filepath.Abs(found[0])
}

// run runs a command and returns how long it took.
func (t *terraform) run(ctx context.Context, args ...string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, t.path, append(args, "-no-color", "-input=false", "-lock=false")...)
	cmd.Dir, cmd.Env = t.dir, t.env
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s %s: %w\n%s", filepath.Base(t.path), args[0], err, out[max(0, len(out)-2000):])
	}
	return time.Since(began), nil
}

// write writes a configuration of n networks that refer to the first one. renamed is the name of the one that a plan
// changes.
func (t *terraform) write(n int, changesHub bool, renamed string) error {
	networks := map[string]any{}
	for i := range n {
		name, spec := fmt.Sprintf("leaf-%d", i), map[string]any{"name": fmt.Sprintf("${sim_network.hub.name}-t%d", i), "cidr": "10.0.0.0/16"}
		if i == 0 {
			name, spec["name"] = "hub", "terraform-hub"
		}
		switch {
		case renamed != "" && changesHub && i == 0:
			spec["tags"] = map[string]any{"round": renamed}
		case renamed != "" && !changesHub && i == n-1:
			spec["name"] = renamed
		}
		networks[name] = spec
	}
	text, err := json.Marshal(map[string]any{
		"terraform": map[string]any{"required_providers": map[string]any{"sim": map[string]any{"source": "registry.terraform.io/hykube/sim"}}},
		"provider":  map[string]any{"sim": map[string]any{}},
		"resource":  map[string]any{"sim_network": networks},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, "main.tf.json"), text, 0o600)
}

// compareTerraform does with Terraform or OpenTofu what measureOne does, and reports how many times as long it took.
// whole is the time of Hykube's command for n resources, and one that of its plan of one change.
func compareTerraform(ctx context.Context, b *bench, n int, changesHub bool, whole, one time.Duration) error {
	t, err := newTerraform(b)
	if err != nil || t == nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	name := filepath.Base(t.path)
	if err := t.write(n, changesHub, ""); err != nil {
		return err
	}
	took, err := t.run(ctx, "apply", "-auto-approve")
	if err != nil {
		return err
	}
	report(fmt.Sprintf("  %s apply, the same resources and provider", name), "%s, %.2f times the command", ms(took), took.Seconds()/whole.Seconds())
	if err := t.write(n, changesHub, "renamed"); err != nil {
		return err
	}
	for _, flag := range []string{"-refresh=true", "-refresh=false"} {
		if took, err = t.run(ctx, "plan", flag); err != nil {
			return err
		}
		report(fmt.Sprintf("  %s plan %s of one changed resource", name, flag), "%s, %.1f times the plan", ms(took), took.Seconds()/one.Seconds())
	}
	return nil
}
