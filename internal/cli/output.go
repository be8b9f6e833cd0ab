package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
)

// checkOutput returns an error for an unknown value of -o.
func checkOutput(got string, known ...string) error {
	if got == "" || slices.Contains(known, got) {
		return nil
	}
	return fmt.Errorf("-o %s: write %s", got, strings.Join(known, ", "))
}

// outputFlag adds the flag -o with its values.
func outputFlag(cmd *cobra.Command, to *string, what string, known ...string) {
	cmd.Flags().StringVarP(to, "output", "o", *to, what+": "+strings.Join(known[:len(known)-1], ", ")+" or "+known[len(known)-1])
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

// printPlan prints a plan object.
func printPlan(t *terminal, p *v1alpha1.Plan, output string) error {
	if output == "name" {
		_, err := fmt.Fprintf(t.Out, "plan.%s/%s\n", v1alpha1.GroupName, p.Name)
		return err
	}
	p = p.DeepCopy()
	p.APIVersion, p.Kind = v1alpha1.SchemeGroupVersion.String(), "Plan"
	p.ManagedFields = nil
	return printJSON(t, p, output)
}

func printJSON(t *terminal, v any, output string) error {
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

// jsonMap converts a value to its JSON form and keeps the digits of numbers.
func jsonMap(v any) (map[string]any, error) {
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

// compactJSON returns a value that came from JSON or YAML as one line, for messages and commands to copy. It escapes no
// characters for HTML.
func compactJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}
