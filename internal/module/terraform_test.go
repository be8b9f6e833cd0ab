package module

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/tests/harness/machine"
)

// The modules in testdata/terraform are called by one root module, so that Terraform plans all of them at once. Each
// file has the files of one module, after lines "-- NAME --". Text before the first such line has the arguments of its
// call.
func modulesForTerraform(t *testing.T) Files {
	t.Helper()
	names, err := filepath.Glob("testdata/terraform/*.txt")
	if err != nil || len(names) < 30 {
		t.Fatalf("%d modules: %v", len(names), err)
	}
	all := Files{}
	var root strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		call := strings.TrimSuffix(filepath.Base(name), ".txt")
		files := bundle("-- arguments --\n" + string(text))
		fmt.Fprintf(&root, "module %q {\n  source = \"./%s\"\n%s}\noutput %q {\n  value     = module.%s\n  sensitive = true\n}\n", call, call, files["arguments"], call, call)
		delete(files, "arguments")
		for file, content := range files {
			if file == "root.tf" {
				root.Write(content)
				continue
			}
			all[call+"/"+file] = content
		}
	}
	all["main.tf"] = []byte(root.String())
	return all
}

// terraformPlan returns Terraform's plan of a module, as terraform show -json prints it.
func terraformPlan(t *testing.T, files Files) map[string]any {
	t.Helper()
	program, dir := machine.Terraform.Need(t), t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) []byte {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+os.DevNull, "CHECKPOINT_DISABLE=1", "NO_COLOR=1", "TF_IN_AUTOMATION=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("terraform %v: %v\n%s\n%s", args, err, out, stderr.String())
		}
		return out
	}
	run("init", "-input=false", "-backend=false")
	run("plan", "-input=false", "-out=plan")
	var plan map[string]any
	if err := json.Unmarshal(run("show", "-json", "plan"), &plan); err != nil {
		t.Fatal(err)
	}
	return plan
}

// planned collects the resources of a module in a plan: their known inputs by their addresses; nil for an unknown
// input.
func planned(module map[string]any, into map[string]any) {
	resources, _ := module["resources"].([]any)
	for _, r := range resources {
		r := r.(map[string]any)
		values, _ := r["values"].(map[string]any)
		into[r["address"].(string)] = values["input"]
	}
	children, _ := module["child_modules"].([]any)
	for _, child := range children {
		planned(child.(map[string]any), into)
	}
}

func TestExpansionIsThatOfTerraform(t *testing.T) {
	files := modulesForTerraform(t)
	plan := terraformPlan(t, files)
	want := map[string]any{}
	values := plan["planned_values"].(map[string]any)
	planned(values["root_module"].(map[string]any), want)

	tree, diags := Load(files, nil)
	if tree == nil {
		t.Fatal(report(diags))
	}
	x, diags := tree.Expand(Inputs{Name: "root"}, nothing)
	if diag.HasErrors(diags) || len(x.Waiting) > 0 {
		t.Fatalf("%s %v", report(diags), x.Waiting)
	}
	v, got := x.Values(nothing), map[string]any{}
	for _, i := range x.Instances {
		for _, s := range i.Sets {
			for k := range s.Len() {
				input, known := inputOf(t, v, s, k)
				address := strings.TrimPrefix(s.AddressOf(k).String(), "module.root.")
				got[address] = input
				if !known {
					got[address] = nil // as Terraform shows an unknown value
				}
			}
		}
	}
	if diag.HasErrors(v.Diagnostics()) {
		t.Fatal(report(v.Diagnostics()))
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the resources differ (-terraform +here):\n%s", d)
	}
	if len(want) < 100 {
		t.Errorf("Terraform plans only %d resources", len(want))
	}
	outputs := values["outputs"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		ours, _ := v.Value(lang.Address{Module: "module.root", Mode: lang.ModeOutput, Name: name})
		theirs := outputs[name].(map[string]any)["value"]
		if text, known := plainJSON(t, ours); known {
			if d := cmp.Diff(theirs, text); d != "" {
				t.Errorf("the outputs of %s differ (-terraform +here):\n%s", name, d)
			}
		}
	}
}

// inputOf returns the argument input of an instance; known is false if it is not wholly known.
func inputOf(t *testing.T, v *Values, s *Set, k int) (input any, known bool) {
	t.Helper()
	spec, diags := s.spec.With(lang.EvaluationContext{Module: s.Module.Path, Instance: v.Instance(s, k), Functions: v.x.functions}).Evaluate(v.Value, cty.NilVal)
	if diag.HasErrors(diags) {
		t.Fatalf("%s: %s", s.AddressOf(k), report(diags))
	}
	if !spec.Type().HasAttribute("input") {
		return nil, true
	}
	return plainJSON(t, spec.GetAttr("input"))
}

// plainJSON returns a value as JSON without marks; known is false if it is not wholly known.
func plainJSON(t *testing.T, v cty.Value) (out any, known bool) {
	t.Helper()
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		return nil, false
	}
	text, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out, true
}
