package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
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

// run runs a command. It returns the time of the command, and the maximum memory of its process in bytes. When the
// context ends, the command ends after its running calls.
func (t *terraform) run(ctx context.Context, args ...string) (took time.Duration, memory int64, err error) {
	cmd := exec.CommandContext(ctx, t.path, append(args, "-no-color", "-input=false", "-lock=false")...)
	cmd.Dir, cmd.Env = t.dir, t.env
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, time.Minute
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("%s %s: %w\n%s", filepath.Base(t.path), args[0], err, out[max(0, len(out)-2000):])
	}
	took = time.Since(began)
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		memory = usage.Maxrss << 10 // Linux counts in KiB
	}
	return took, memory, nil
}

// write writes a configuration of n networks that refer to the first one. renamed is the new name of the last one; ""
// keeps its name.
func (t *terraform) write(n int, renamed string) error {
	networks := map[string]any{}
	for i := range n {
		name, spec := fmt.Sprintf("leaf-%d", i), map[string]any{"name": fmt.Sprintf("${sim_network.hub.name}-t%d", i), "cidr": "10.0.0.0/16"}
		if i == 0 {
			name, spec["name"] = "hub", "terraform-hub"
		}
		if renamed != "" && i == n-1 {
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

// hykube holds Hykube's times for the same work as compareTerraform.
type hykube struct {
	// apply and destroy are the times of the commands, and plan is that of the server for one changed resource.
	apply, destroy, plan time.Duration
	// memory is the most memory of the server in bytes.
	memory int64
}

// patience is the multiple of Hykube's time after which compareTerraform stops the apply of Terraform or OpenTofu.
const patience = 6

// compareTerraform does with Terraform or OpenTofu what measureOne does with Hykube, and reports the ratio of the
// times. It does nothing if neither is on the machine. After an apply that it stopped, it reports nothing else.
func compareTerraform(ctx context.Context, b *bench, n int, own hykube) error {
	t, err := newTerraform(b)
	if err != nil || t == nil {
		return err
	}
	defer os.RemoveAll(t.dir)
	if err := t.write(n, ""); err != nil {
		return err
	}
	ratio := func(what string, theirs, ours, atLeast float64) {
		b.results.add(measurement{What: "Terraform or OpenTofu: " + what + ", as a multiple of Hykube's", Resources: n, Value: theirs / ours, Unit: times, AtLeast: goal(n, atLeast)})
	}
	limited, cancel := context.WithTimeout(ctx, patience*own.apply)
	defer cancel()
	took, memory, err := t.run(limited, "apply", "-auto-approve")
	if limited.Err() != nil && ctx.Err() == nil {
		b.results.add(measurement{What: otherApply, Resources: n, Value: patience * own.apply.Seconds(), Unit: seconds, More: true})
		b.results.add(measurement{What: "Terraform or OpenTofu: apply, as a multiple of Hykube's", Resources: n, Value: patience, Unit: times, More: true, AtLeast: 5})
		return nil
	}
	if err != nil {
		return err
	}
	b.results.took(otherApply, n, took)
	ratio("apply", took.Seconds(), own.apply.Seconds(), 5)
	ratio("memory of the apply", float64(memory), float64(own.memory), 2)
	if err := t.write(n, "renamed"); err != nil {
		return err
	}
	for _, plan := range []struct{ flag, what string }{{"-refresh=true", otherPlan}, {"-refresh=false", otherPlan + ", without a refresh"}} {
		if took, _, err = t.run(ctx, "plan", plan.flag); err != nil {
			return err
		}
		b.results.took(plan.what, n, took)
		b.results.add(measurement{What: plan.what + ", as a multiple of Hykube's", Resources: n, Value: took.Seconds() / own.plan.Seconds(), Unit: times})
	}
	if took, _, err = t.run(ctx, "destroy", "-auto-approve"); err != nil {
		return err
	}
	b.results.took("Terraform or OpenTofu: destroy of all", n, took)
	ratio("destroy", took.Seconds(), own.destroy.Seconds(), 0)
	return nil
}
