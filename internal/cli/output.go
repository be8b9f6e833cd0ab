package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hykube/hykube/api/v1alpha1"
)

// checkOutput refuses what -o doesn't know.
func checkOutput(got string, known ...string) error {
	if got == "" || slices.Contains(known, got) {
		return nil
	}
	return fmt.Errorf("-o %s: write %s", got, strings.Join(known, ", "))
}

// printPlan writes a plan object.
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
