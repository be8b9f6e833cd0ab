package lang

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/hykube/hykube/tests/harness/machine"
)

// TestUnknownValuesAreThoseOfTerraform compares the unknown parts of expressions over a planned resource with those of
// Terraform's plan.
func TestUnknownValuesAreThoseOfTerraform(t *testing.T) {
	path := machine.Terraform.Need(t)
	var exprs []string
	var config strings.Builder
	config.WriteString("resource \"terraform_data\" \"u\" {}\n") // built in, so that it needs no plugin
	b, err := os.ReadFile("testdata/unknowns.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fmt.Fprintf(&config, "output \"o%d\" {\n  value = %s\n}\n", len(exprs), strings.ReplaceAll(line, "sim_network.", "terraform_data."))
		exprs = append(exprs, line)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.tf": config.String(), "rc": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TF_CLI_CONFIG_FILE="+filepath.Join(dir, "rc"), "CHECKPOINT_DISABLE=1", "NO_COLOR=1")
		out, err := cmd.Output()
		if err != nil {
			text := string(out)
			if ee, ok := err.(*exec.ExitError); ok {
				text += string(ee.Stderr)
			}
			t.Fatalf("terraform %s: %v\n%s", strings.Join(args, " "), err, text)
		}
		return out
	}
	run("init")
	run("plan", "-out=p")
	var theirs struct {
		OutputChanges map[string]struct {
			After        any `json:"after"`
			AfterUnknown any `json:"after_unknown"`
		} `json:"output_changes"`
	}
	if err := json.Unmarshal(run("show", "-json", "p"), &theirs); err != nil || len(theirs.OutputChanges) != len(exprs) {
		t.Fatalf("%d answers to %d expressions: %v", len(theirs.OutputChanges), len(exprs), err)
	}
	world := func(Address) (cty.Value, bool) {
		return cty.ObjectVal(map[string]cty.Value{"id": cty.UnknownVal(cty.String).RefineNotNull()}), true
	}
	for i, expr := range exprs {
		e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{})
		v, more := e.Evaluate(world, cty.NilVal)
		if len(diags)+len(more) > 0 {
			t.Errorf("%s: %v", expr, append(diags, more...))
			continue
		}
		want := theirs.OutputChanges[fmt.Sprintf("o%d", i)]
		if got := unknownParts(v); !reflect.DeepEqual(got, folded(want.AfterUnknown)) {
			t.Errorf("%s\nunknown for us    %v (%#v)\nunknown for them  %v (%v)", expr, got, v, want.AfterUnknown, want.After)
			continue
		}
		if !v.IsWhollyKnown() {
			continue
		}
		js, err := stdlib.JSONEncode(v)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		var got any
		if err := json.Unmarshal([]byte(js.AsString()), &got); err != nil || !reflect.DeepEqual(got, want.After) {
			t.Errorf("%s\nwe      %v %v\ntheirs  %v", expr, got, err, want.After)
		}
	}
}

// folded returns the unknown parts as JSON, with false for a list whose elements are all known.
func folded(v any) any {
	list, ok := v.([]any)
	if !ok {
		return v
	}
	known := true
	for i := range list {
		list[i] = folded(list[i])
		known = known && list[i] == false
	}
	if known {
		return false
	}
	return list
}

// unknownParts returns the unknown parts of a value, as Terraform's JSON plan does for outputs: true for an unknown
// part, and false for a wholly known one.
func unknownParts(v cty.Value) any {
	switch ty := v.Type(); {
	case !v.IsKnown():
		return true
	case v.IsWhollyKnown():
		return false
	case ty.IsListType() || ty.IsTupleType() || ty.IsSetType():
		out := []any{}
		for it := v.ElementIterator(); it.Next(); {
			_, e := it.Element()
			out = append(out, unknownParts(e))
		}
		return out
	default:
		out := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if p := unknownParts(e); p != false {
				out[k.AsString()] = p
			}
		}
		return out
	}
}
