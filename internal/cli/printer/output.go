// Package printer prints objects as JSON and YAML, and formats lists, times and counts. It sends no requests.
package printer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/terminal"
)

// OutputFlag adds the flag -o with its values, which CheckOutput reads.
func OutputFlag(cmd *cobra.Command, to *string, help string, known ...string) {
	last := len(known) - 1
	values := known[last]
	if last > 0 {
		values = strings.Join(known[:last], ", ") + " or " + known[last]
	}
	cmd.Flags().StringVarP(to, "output", "o", *to, help+": "+values)
	cmd.Flags().Lookup("output").Annotations = map[string][]string{outputFormats: known}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// outputFormats is the annotation of the flag -o that lists its values.
const outputFormats = "values"

// CheckOutput returns an error for an unknown value of -o.
func CheckOutput(cmd *cobra.Command) error {
	flag := cmd.Flags().Lookup("output")
	if flag == nil || flag.Value.String() == "" {
		return nil
	}
	if known := flag.Annotations[outputFormats]; !slices.Contains(known, flag.Value.String()) {
		return fmt.Errorf("-o %s: write %s", flag.Value, strings.Join(known, ", "))
	}
	return nil
}

// Plan prints a plan object.
func Plan(t *terminal.Terminal, p *v1alpha1.Plan, output string) error {
	if output == "name" {
		_, err := fmt.Fprintf(t.Out, "plan.%s/%s\n", v1alpha1.GroupName, p.Name)
		return err
	}
	p = p.DeepCopy()
	p.APIVersion, p.Kind = v1alpha1.SchemeGroupVersion.String(), "Plan"
	p.ManagedFields = nil
	return JSON(t, p, output)
}

// JSON prints a value as indented JSON, or as YAML if output is "yaml".
func JSON(t *terminal.Terminal, v any, output string) error {
	if output == "yaml" {
		b, err := yaml.Marshal(v)
		if err != nil {
			return fmt.Errorf("encode YAML: %w", err)
		}
		if _, err := fmt.Fprint(t.Out, "---\n"); err != nil {
			return err
		}
		_, err = t.Out.Write(b)
		return err
	}
	e := json.NewEncoder(t.Out)
	e.SetIndent("", "    ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// JSONList prints objects as a List, as kubectl does.
func JSONList(t *terminal.Terminal, items []any, output string) error {
	return JSON(t, map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": ""},
		"items": items}, output)
}

// JSONMap converts a value to its JSON form and keeps the digits of numbers.
func JSONMap(v any) (map[string]any, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode JSON: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	out := map[string]any{}
	if err := d.Decode(&out); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	return out, nil
}

// CompactJSON returns a value that came from JSON or YAML as one line, for messages and commands to copy. It escapes no
// characters for HTML.
func CompactJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}
