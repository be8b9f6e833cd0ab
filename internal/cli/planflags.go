package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// planFlags are the flags that become a plan's spec.
type planFlags struct {
	refresh  string
	replace  []string
	targets  []string
	selector string
}

func (f *planFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.refresh, "refresh", "", "Which resources to read from their provider first: None, Changed or All (default Changed)")
	fs.StringArrayVar(&f.replace, "replace", nil, "Replace this resource even if nothing about it changed: TYPE.NAME or KIND/NAME; may be given more than once")
	fs.StringArrayVar(&f.targets, "target", nil, "Plan only this resource and what it depends on: TYPE.NAME or KIND/NAME; may be given more than once")
	fs.StringVarP(&f.selector, "selector", "l", "", "Plan only resources with these labels and what they depend on, such as team=infra")
}

// empty is true when nothing narrows the plan.
func (f *planFlags) empty() bool { return len(f.targets) == 0 && f.selector == "" }

func (f *planFlags) validate() error { return f.fill(&v1alpha1.PlanSpec{}) }

// fill writes the flags into a plan's spec.
func (f *planFlags) fill(spec *v1alpha1.PlanSpec) error {
	switch strings.ToLower(f.refresh) {
	case "":
	case "none", "false": // Terraform says -refresh=false
		spec.Refresh = v1alpha1.RefreshNone
	case "changed":
		spec.Refresh = v1alpha1.RefreshChanged
	case "all", "true":
		spec.Refresh = v1alpha1.RefreshAll
	default:
		return fmt.Errorf("--refresh=%s: write None, Changed or All", f.refresh)
	}
	var err error
	if spec.Replace, err = addresses("--replace", f.replace); err != nil {
		return err
	}
	if spec.Targets, err = addresses("--target", f.targets); err != nil {
		return err
	}
	if f.selector != "" {
		if spec.Selector, err = metav1.ParseToLabelSelector(f.selector); err != nil {
			return fmt.Errorf("--selector=%s: %w", f.selector, err)
		}
	}
	return nil
}

func addresses(flag string, in []string) ([]string, error) {
	var out []string
	for _, s := range in {
		a, err := address(s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		out = append(out, a)
	}
	return out, nil
}

// address reads "sim_network.main", "sim-network/main" and kubectl's "sim-network.sim.hykube.io/main" as a Terraform address.
func address(s string) (string, error) {
	typ, name, ok := strings.Cut(s, "/")
	if ok {
		typ, _, _ = strings.Cut(typ, ".")
	} else {
		typ, name, ok = strings.Cut(s, ".")
	}
	if !ok || typ == "" || name == "" || strings.ContainsAny(name, "/ ") {
		return "", fmt.Errorf("%q names no resource: write TYPE.NAME such as sim_network.main, or KIND/NAME such as sim-network/main", s)
	}
	return v1alpha1.TypeOf(typ) + "." + name, nil
}
