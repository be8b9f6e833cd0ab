package planning

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/suggest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// targets are the objects that the spec of a plan names.
type targets struct {
	entries
	spec *v1alpha1.PlanSpec
	// hasModule reports whether there is an instance of a module with a path.
	hasModule func(path string) bool
	// named, excluded and forced hold the addresses in the spec: targets, exclude, and those to replace or invoke.
	named, forced map[lang.Address]bool
	excluded      []lang.Address
	// selector is that of the spec; nil if there is none, or if it is invalid.
	selector labels.Selector
	// diags are the errors in these fields.
	diags diag.Diagnostics
}

func newTargets(e entries, spec *v1alpha1.PlanSpec, hasModule func(path string) bool) *targets {
	t := &targets{entries: e, spec: spec, hasModule: hasModule}
	t.named = setOf(t.addresses("spec.targets", spec.Targets))
	if spec.Selector != nil {
		var err error
		if t.selector, err = metav1.LabelSelectorAsSelector(spec.Selector); err != nil {
			t.fail("Invalid selector", "spec.selector", err.Error())
		}
	}
	t.excluded = t.addresses("spec.exclude", spec.Exclude)
	t.forced = setOf(append(t.addresses(fieldReplace, spec.Replace), t.addresses("spec.invoke", spec.Invoke)...))
	return t
}

func (t *targets) fail(summary, field, detail string) {
	d := v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: summary, Detail: detail, Attribute: field}
	t.diags = append(t.diags, d)
}

// selects reports whether the spec names an object, or all objects. Other objects are in scope only as dependencies or
// dependants.
func (t *targets) selects(addr lang.Address, set labels.Set) bool {
	all := t.spec.Selector == nil && len(t.spec.Targets) == 0
	return all || t.named[addr] || t.selector != nil && t.selector.Matches(set)
}

// checkSelector adds an error if the selector is valid and selects nothing.
func (t *targets) checkSelector(picked int) {
	if t.selector != nil && picked == 0 {
		t.fail("No such resource", "spec.selector",
			fmt.Sprintf("No resource of this namespace has the labels %s.", t.selector))
	}
}

// fieldReplace is the field of a Plan with the resources to replace.
const fieldReplace = "spec.replace"

// maxSuggested is the number of errors up to which addresses suggests similar names.
const maxSuggested = 10

func (t *targets) addresses(field string, texts []string) []lang.Address {
	var out []lang.Address
	for i, text := range texts {
		addr, err := lang.ParseTarget(text)
		if err == nil && addr.Mode == lang.ModeModule {
			within := t.within(addr)
			if out = append(out, within...); len(within) > 0 || t.hasModule(addr.CalledPath()) {
				continue
			}
			err = fmt.Errorf("there is no %s in this namespace", addr)
		} else if set := t.setAt(addr); err == nil && set != nil {
			if field != fieldReplace {
				out = append(out, t.withLeaving(addr)...)
				continue
			}
			err = fmt.Errorf("%s is a ResourceSet; name the instances to replace", addr)
			if set.Len() > 0 {
				err = fmt.Errorf("%w, such as %s", err, addr.Instance(set.Key(0)))
			}
		} else if err == nil && !t.exists(addr) {
			if of, key, ok := addr.Set(); ok && t.setAt(of) != nil {
				err = t.setAt(of).Missing(key)
			} else {
				others := t.knownAddresses(addr)
				// The search for a similar name takes a while in a large namespace.
				if len(t.diags) < maxSuggested {
					if near := suggest.Nearest(addr.Name, t.names(addr)); near != "" {
						others = fmt.Sprintf("; did you mean %q?", near)
					}
				}
				err = fmt.Errorf("there is no %s named %q in this namespace%s", addr.Mode.KindOf(addr.Type), addr.Name,
					others)
			}
		}
		if err != nil {
			t.fail("No such resource", fmt.Sprintf("%s[%d]", field, i), err.Error())
			continue
		}
		out = append(out, addr)
	}
	return out
}

func setOf(addrs []lang.Address) map[lang.Address]bool {
	set := make(map[lang.Address]bool, len(addrs))
	for _, a := range addrs {
		set[a] = true
	}
	return set
}
