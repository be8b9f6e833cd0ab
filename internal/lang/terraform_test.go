package lang

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function/stdlib"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/tests/harness/machine"
)

// terraform finds the program whose language this is, or skips the test.
func terraform(t *testing.T) func(line string) string {
	t.Helper()
	path := machine.Terraform.Need(t)
	dir := t.TempDir()
	rc := filepath.Join(dir, "rc")
	if err := os.WriteFile(rc, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(line string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), path, "console")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(line+"\n")
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+rc, "CHECKPOINT_DISABLE=1", "NO_COLOR=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil || strings.Contains(stderr.String(), "Error:") {
			t.Fatalf("terraform console: %v\n%s", err, stderr.String())
		}
		return strings.TrimSpace(string(out))
	}
}

func functionCalls(t *testing.T, files ...string) []string {
	t.Helper()
	var calls []string
	for _, file := range files {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			// Skip calls that do not parse, because Terraform gets all calls in one file. It uses the same parser.
			if _, diags := hclsyntax.ParseExpression([]byte(line), "", hcl.InitialPos); diags.HasErrors() {
				if _, _, ok := evaluateCall(line); ok {
					t.Errorf("%s is accepted", line)
				}
				continue
			}
			calls = append(calls, line)
		}
	}
	return calls
}

// evaluateCall evaluates a call as in a spec; ok is false if it is rejected.
func evaluateCall(expr string) (cty.Value, string, bool) {
	e, diags := ParseExpression("${"+expr+"}", "v", ExpressionOptions{})
	if diag.HasErrors(diags) {
		return cty.NilVal, diags[0].Detail, false
	}
	v, diags := e.With(applied).Evaluate(nil, cty.NilVal)
	if diag.HasErrors(diags) {
		return cty.NilVal, diags[0].Detail, false
	}
	return v, "", true
}

func TestFunctionsReturnWhatTerraformReturns(t *testing.T) {
	ask := terraform(t)
	calls := functionCalls(t, "functions.txt", "expressions.txt")
	// Many calls a run: each costs the start of a process.
	for chunk := range slices.Chunk(calls, 60) {
		var line strings.Builder
		for _, c := range chunk {
			fmt.Fprintf(&line, "[can(%s), try(jsonencode(%s), null)],", c, c)
		}
		answer := ask("base64encode(jsonencode([" + line.String() + "]))")
		out, err := base64.StdEncoding.DecodeString(strings.Trim(answer, `"`))
		if err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		var theirs [][2]any
		if err := json.Unmarshal(out, &theirs); err != nil || len(theirs) != len(chunk) {
			t.Fatalf("%d answers to %d calls: %v", len(theirs), len(chunk), err)
		}
		var types []string
		var typed []string
		for i, c := range chunk {
			v, why, ok := evaluateCall(c)
			if want := theirs[i][0].(bool); ok != want {
				t.Errorf("%s\nwe      %v %s\ntheirs  %v %v", c, ok, why, want, theirs[i][1])
				continue
			}
			if !ok {
				continue
			}
			v, _ = v.UnmarkDeep()
			js, err := stdlib.JSONEncode(v)
			if err != nil {
				t.Errorf("%s: %v", c, err)
				continue
			}
			if want, _ := theirs[i][1].(string); want != "" && js.AsString() != want {
				t.Errorf("%s\nwe      %s\ntheirs  %s", c, js.AsString(), want)
				continue
			}
			typed, types = append(typed, c), append(types, typeText(v.Type()))
		}
		want := dense(ask("type([" + strings.Join(typed, ",") + "])"))
		if got := dense("tuple([" + strings.Join(types, ",") + "])"); got != want {
			// One by one, to name what differs.
			for i, c := range typed {
				if got, want := dense(types[i]), dense(ask("type("+c+")")); got != want {
					t.Errorf("%s\nour type    %s\ntheir type  %s", c, got, want)
				}
			}
		}
	}
}

// dense is a type on one line, without the commas that a list over several lines ends with.
func dense(s string) string {
	s = strings.Join(strings.Fields(s), "")
	return strings.NewReplacer(",)", ")", ",]", "]", ",}", "}").Replace(s)
}

// typeText writes a type as Terraform's console does.
func typeText(ty cty.Type) string {
	switch {
	case ty == cty.DynamicPseudoType:
		return "dynamic"
	case ty.IsPrimitiveType():
		return ty.FriendlyName()
	case ty.IsListType():
		return "list(" + typeText(ty.ElementType()) + ")"
	case ty.IsSetType():
		return "set(" + typeText(ty.ElementType()) + ")"
	case ty.IsMapType():
		return "map(" + typeText(ty.ElementType()) + ")"
	case ty.IsTupleType():
		var parts []string
		for _, e := range ty.TupleElementTypes() {
			parts = append(parts, typeText(e))
		}
		return "tuple([" + strings.Join(parts, ",") + "])"
	default:
		var parts []string
		for _, k := range sortedKeys(ty.AttributeTypes()) {
			parts = append(parts, k+":"+typeText(ty.AttributeType(k)))
		}
		return "object({" + strings.Join(parts, ",") + "})"
	}
}

func TestEveryTerraformFunctionIsKnown(t *testing.T) {
	path := machine.Terraform.Need(t)
	cmd := exec.CommandContext(t.Context(), path, "metadata", "functions", "-json")
	cmd.Dir = t.TempDir()
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Signatures map[string]any `json:"function_signatures"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || len(answer.Signatures) < 100 {
		t.Fatalf("%d functions: %v", len(answer.Signatures), err)
	}
	for name := range answer.Signatures {
		name = strings.TrimPrefix(name, corePrefix)
		if _, ok := builtins[name]; !ok && refused[name] == "" {
			t.Errorf("%s is neither there nor refused with a reason", name)
		}
	}
}

// TestFunctionsMarkWhatTerraformMarks compares which parts of the results are sensitive, as the console shows them.
func TestFunctionsMarkWhatTerraformMarks(t *testing.T) {
	ask := terraform(t)
	calls := functionCalls(t, "marks.txt")
	theirs := ask("[" + strings.Join(calls, ", ") + "]")
	results := make([]cty.Value, len(calls))
	for i, c := range calls {
		v, why, ok := evaluateCall(c)
		if !ok {
			t.Fatalf("%s: %s", c, why)
		}
		results[i] = v
	}
	ours, err := FormatHCL(cty.TupleVal(results), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(theirs, "\n"), strings.Split(ours, "\n")); diff != "" {
		t.Errorf("the results of testdata/marks.txt (-terraform +ours):\n%s", diff)
	}
}
