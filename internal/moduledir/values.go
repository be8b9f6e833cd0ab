package moduledir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
)

// Assignment is a value of the command line, or a file with values. Later ones win.
type Assignment struct {
	// Name is the name of the variable, and Text its value; empty with a File.
	Name, Text string
	// File is the path of a file with values.
	File string
}

// EnvironmentPrefix is that of the environment variables with values of variables.
const EnvironmentPrefix = "TF_VAR_"

// Values are the values of the variables of a root module.
type Values struct {
	// Inputs are those that are not sensitive, as JSON with templates.
	Inputs map[string]any
	// Secrets are the values of sensitive variables, as JSON. A null is an input.
	Secrets map[string]any
	// Warnings are about values of undeclared variables in files.
	Warnings diag.Diagnostics
}

// Values reads the values of the variables, in Terraform's order of precedence: the environment, terraform.tfvars,
// files of *.auto.tfvars, and the assignments. The error has all problems.
func (d *Directory) Values(environ []string, given []Assignment) (*Values, error) {
	r := &valueReader{dir: d, found: map[string]any{}}
	r.environment(environ)
	slices.SortStableFunc(d.variables, func(a, b variableFile) int {
		return cmp.Or(cmp.Compare(rank(a.name), rank(b.name)), strings.Compare(a.name, b.name))
	})
	for _, f := range d.variables {
		r.file(f.name, f.content)
	}
	for _, a := range given {
		if err := r.assign(a); err != nil {
			return nil, err
		}
	}
	if diag.HasErrors(r.diags) {
		return nil, problems("", r.diags)
	}
	out := &Values{Inputs: map[string]any{}, Secrets: map[string]any{}, Warnings: r.diags}
	for name, value := range r.found {
		if d.Root.Variables[name].Sensitive && value != nil {
			out.Secrets[name] = plain(value)
		} else {
			out.Inputs[name] = value
		}
	}
	return out, nil
}

// RequireInputs returns an error that names each required variable without a value in the inputs of a Module.
func (d *Directory) RequireInputs(m *unstructured.Unstructured) error {
	inputs, _, err := unstructured.NestedMap(m.Object, "spec", "inputs")
	if err != nil {
		return fmt.Errorf("the Module %q: %w", m.GetName(), err)
	}
	var errs []error
	for _, name := range keysOf(d.Root.Variables) {
		v := d.Root.Variables[name]
		if _, set := inputs[name]; !set && v.Default == cty.NilVal {
			errs = append(errs, fmt.Errorf(
				"variable %q is not set (%s:%d): use --var %[1]s=VALUE, a .tfvars file or %[4]s%[1]s",
				name, filepath.Join(d.Path, v.Range.Filename), v.Range.Start.Line, EnvironmentPrefix))
		}
	}
	return errors.Join(errs...)
}

// rank orders the files that Terraform reads by itself: terraform.tfvars, terraform.tfvars.json, and then the others.
func rank(name string) int {
	switch name {
	case "terraform.tfvars":
		return 0
	case "terraform.tfvars.json":
		return 1
	}
	return 2
}

// valueReader collects values.
type valueReader struct {
	dir   *Directory
	found map[string]any
	diags diag.Diagnostics
}

// environment reads the values of the environment. As in Terraform, an undeclared variable is no problem there.
func (r *valueReader) environment(environ []string) {
	for _, entry := range environ {
		rest, ok := strings.CutPrefix(entry, EnvironmentPrefix)
		name, text, _ := strings.Cut(rest, "=")
		if v := r.dir.Root.Variables[name]; ok && v != nil {
			r.text(v, EnvironmentPrefix+name, text)
		}
	}
}

func (r *valueReader) text(v *module.Variable, from, text string) {
	value, diags := v.ReadVariableText(from, text)
	r.diags = append(r.diags, diags...)
	r.found[v.Name] = value
}

func (r *valueReader) file(name string, content []byte) {
	values, diags := module.ReadVariableFile(name, content)
	r.diags = append(r.diags, diags...)
	for _, key := range keysOf(values) {
		if r.dir.Root.Variables[key] == nil {
			d := diag.Errorf(name, "Value for undeclared variable",
				"The root module has no variable %q. Declare it, or remove the value.", key)
			d.Severity = v1alpha1.SeverityWarning
			r.diags = append(r.diags, d)
			continue
		}
		r.found[key] = values[key]
	}
}

func (r *valueReader) assign(a Assignment) error {
	if a.File != "" {
		content, err := os.ReadFile(a.File)
		if err != nil {
			return fmt.Errorf("--var-file: %w", err)
		}
		r.file(a.File, content)
		return nil
	}
	v := r.dir.Root.Variables[a.Name]
	if v == nil {
		return fmt.Errorf("--var=%s: the root module in %q has no variable of this name", a.Name, r.dir.Path)
	}
	r.text(v, "--var="+a.Name, a.Text)
	return nil
}

// plain returns the value of JSON with templates that have no expressions.
func plain(v any) any {
	switch v := v.(type) {
	case string:
		if text, ok := lang.Constant(v); ok {
			return text
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plain(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			key, _ := plain(k).(string)
			out[key] = plain(e)
		}
		return out
	}
	return v
}

// secretText returns the text of a sensitive value in a Secret, and the expression that gives the value.
func secretText(secret, name string, value any) (text, expression string, err error) {
	at := "secret." + secret + "." + name
	if s, ok := value.(string); ok {
		return s, "${" + at + "}", nil
	}
	raw, err := json.Marshal(value)
	return string(raw), "${jsondecode(" + at + ")}", err
}
