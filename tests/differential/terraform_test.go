package differential

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// terraform is Terraform's or OpenTofu's side of a story: one working directory for all steps.
type terraform struct {
	fixture *fixture
	cloud   *cloud
	dir     string
	// sources holds the addresses of the providers in the story, and plugins their processes.
	sources map[string]string
	plugins *running
	// written are the files of the Module in the last step, by path.
	written map[string]string
}

// errRefused is the error of a command that failed as a user would see it. Any other error is a failure of the test.
type errRefused struct{ text string }

func (e errRefused) Error() string { return e.text }

func newTerraform(f *fixture, st *story, dir string) (*terraform, error) {
	c, err := startCloud(filepath.Join(dir, "cloud"))
	if err != nil {
		return nil, err
	}
	t := &terraform{fixture: f, cloud: c, dir: dir, sources: map[string]string{}}
	for _, name := range st.providers() {
		t.sources[name] = f.sources[name]
	}
	if t.plugins, err = f.start(sorted(t.sources)); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return t, nil
}

func (t *terraform) stop() error {
	t.plugins.stop()
	return t.cloud.Stop()
}

// command returns a command of Terraform in a directory, with the processes of its providers.
func (f *fixture) command(ctx context.Context, dir string, plugins *running, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, f.terraform, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "TF_REATTACH_PROVIDERS="+plugins.reattach, "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1", "TF_LOG=off",
		"TF_LOG_SDK=off", "TF_LOG_PROVIDER=off", "TF_CLI_ARGS=")
	return cmd
}

func (t *terraform) run(ctx context.Context, args ...string) (stdout []byte, err error) {
	cmd := t.fixture.command(ctx, t.dir, t.plugins, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return out.Bytes(), errRefused{unframed(errs.String() + "\n" + out.String())}
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(t.fixture.terraform), strings.Join(args, " "), err, errs.String())
	}
	return out.Bytes(), nil
}

// unframed removes the bars before the lines of errors.
func unframed(s string) string {
	var lines []string
	for line := range strings.SplitSeq(s, "\n") {
		if line = strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "│╷╵")); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// play runs a step.
func (t *terraform) play(ctx context.Context, s *step, c config) (*outcome, error) {
	text, err := c.terraform(t.sources, t.cloud.Address, filepath.Join(t.dir, "cloud"))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(t.dir, "main.tf.json"), text, 0o600); err != nil {
		return nil, err
	}
	if len(c.Files) > 0 {
		if err := t.writeFiles(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := t.cloud.prepare(ctx, s); err != nil {
		return nil, err
	}
	for verb, addresses := range map[string][]string{"taint": s.Taint, "untaint": s.Untaint} {
		for _, at := range addresses {
			if _, err := t.run(ctx, verb, at); err != nil {
				return nil, err
			}
		}
	}
	out := &outcome{}
	if err := t.planAndApply(ctx, s, out); err != nil {
		return nil, err
	}
	if out.States, err = t.states(); err != nil {
		return nil, err
	}
	if len(c.Files) > 0 {
		dropData(out.States)
	}
	return out, t.cloud.observe(ctx, out)
}

func (t *terraform) planAndApply(ctx context.Context, s *step, out *outcome) error {
	args := []string{"plan", "-out=plan", "-input=false", "-no-color", "-lock=false"}
	for flag, on := range map[string]bool{"-destroy": s.Destroy, "-refresh-only": s.RefreshOnly, "-refresh=false": s.NoRefresh} {
		if on {
			args = append(args, flag)
		}
	}
	for flag, addresses := range map[string][]string{"-target": s.Target, "-exclude": s.Exclude, "-replace": s.Replace} {
		for _, at := range addresses {
			args = append(args, flag+"="+at)
		}
	}
	text, err := t.run(ctx, args...)
	out.log = string(text)
	if refused, ok := errors.AsType[errRefused](err); ok {
		out.PlanError = refused.text
		return nil
	}
	if err != nil {
		return err
	}
	if text, err = t.run(ctx, "show", "-json", "-no-color", "plan"); err != nil {
		return err
	}
	if out.Plan, err = readPlan(text); err != nil {
		return err
	}
	if s.PlanOnly {
		return nil
	}
	if err := t.cloud.faults(ctx, s.ApplyFaults); err != nil {
		return err
	}
	text, err = t.run(ctx, "apply", "-input=false", "-no-color", "-lock=false", "plan")
	out.log += string(text)
	if refused, ok := errors.AsType[errRefused](err); ok {
		out.ApplyError = refused.text
		return nil
	}
	return err
}

// states reads the state file, which has more than any command prints.
func (t *terraform) states() (map[string]*state, error) {
	data, err := os.ReadFile(filepath.Join(t.dir, "terraform.tfstate"))
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]*state{}, nil
	}
	if err != nil {
		return nil, err
	}
	return readStates(data)
}

// readStates parses Terraform's state.
func readStates(data []byte) (map[string]*state, error) {
	var file struct {
		Resources []struct {
			Module, Mode, Type, Name string

			Instances []struct {
				Index        any `json:"index_key"`
				Status       string
				Deposed      string
				Attributes   map[string]any
				Dependencies []string
			}
		}
	}
	if err := decode(data, &file); err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	out := map[string]*state{}
	for _, r := range file.Resources {
		at := r.Type + "." + r.Name
		if r.Mode != "managed" {
			at = r.Mode + "." + at
		}
		if r.Module != "" {
			at = r.Module + "." + at
		}
		deposed := map[string]int{}
		for _, i := range r.Instances {
			key := at
			if name, named := i.Index.(string); named {
				key = at + v1alpha1.InstanceKey{Named: true, Name: name}.String()
			} else if i.Index != nil {
				key = fmt.Sprintf("%s[%s]", at, text(i.Index))
			}
			if i.Deposed != "" {
				deposed[key]++
				key = fmt.Sprintf("%s deposed %d", key, deposed[key])
			}
			slices.Sort(i.Dependencies)
			out[key] = &state{Attributes: i.Attributes, Tainted: i.Status == "tainted", Dependencies: i.Dependencies}
		}
	}
	return out, nil
}
