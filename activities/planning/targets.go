package planning

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/suggest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// This file resolves the addresses and the selector in a plan's spec.

// prepare resolves the addresses and the selector in the spec.
func (s *survey) prepare() {
	if s.prepared {
		return
	}
	s.prepared = true
	s.targets = setOf(s.addresses("spec.targets", s.spec.Targets))
	if s.spec.Selector != nil {
		var err error
		if s.selector, err = metav1.LabelSelectorAsSelector(s.spec.Selector); err != nil {
			s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "Invalid selector", Detail: err.Error(), Attribute: "spec.selector"})
		}
	}
	s.excluded = s.addresses("spec.exclude", s.spec.Exclude)
	s.forced = setOf(append(s.addresses(fieldReplace, s.spec.Replace), s.addresses("spec.invoke", s.spec.Invoke)...))
}

// selects reports whether the spec names an object, or all objects. Other objects are in scope only as dependencies or
// dependants.
func (s *survey) selects(addr lang.Address, set labels.Set) bool {
	return s.spec.Selector == nil && len(s.spec.Targets) == 0 || s.targets[addr] || s.selector != nil && s.selector.Matches(set)
}

// checkSelector adds an error if the selector is valid and selects nothing.
func (s *survey) checkSelector(picked int) {
	if s.selector != nil && picked == 0 {
		s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "No such resource",
			Detail: fmt.Sprintf("No resource of this namespace has the labels %s.", s.selector), Attribute: "spec.selector"})
	}
}

// fieldReplace is the field of a Plan with the resources to replace.
const fieldReplace = "spec.replace"

// maxSuggested is the number of errors up to which addresses suggests similar names.
const maxSuggested = 10

func (s *survey) addresses(field string, texts []string) []lang.Address {
	var out []lang.Address
	for i, text := range texts {
		addr, err := lang.ParseTarget(text)
		if err == nil && addr.Mode == lang.ModeModule {
			within := s.within(addr)
			if out = append(out, within...); len(within) > 0 || s.hasModule(addr.CalledPath()) {
				continue
			}
			err = fmt.Errorf("there is no %s in this namespace", addr)
		} else if set := s.setAt(addr); err == nil && set != nil {
			if field != fieldReplace {
				out = append(out, s.withLeaving(addr)...)
				continue
			}
			err = fmt.Errorf("%s is a ResourceSet; name the instances to replace", addr)
			if set.Len() > 0 {
				err = fmt.Errorf("%w, such as %s", err, addr.Instance(set.Key(0)))
			}
		} else if err == nil && !s.exists(addr) {
			if of, key, ok := addr.Set(); ok && s.setAt(of) != nil {
				err = s.setAt(of).Missing(key)
			} else {
				others := s.knownAddresses(addr)
				// The search for a similar name takes a while in a large namespace.
				if len(s.diags) < maxSuggested {
					if near := suggest.Nearest(addr.Name, s.names(addr)); near != "" {
						others = fmt.Sprintf("; did you mean %q?", near)
					}
				}
				err = fmt.Errorf("there is no %s named %q in this namespace%s", addr.Mode.KindOf(addr.Type), addr.Name, others)
			}
		}
		if err != nil {
			s.diags = append(s.diags, v1alpha1.Diagnostic{Severity: v1alpha1.SeverityError, Summary: "No such resource", Detail: err.Error(), Attribute: fmt.Sprintf("%s[%d]", field, i)})
			continue
		}
		out = append(out, addr)
	}
	return out
}

// within returns the addresses of the objects in a module, also of those that leave it.
func (s *survey) within(module lang.Address) (out []lang.Address) {
	if s.outline != nil {
		for _, n := range s.outline.view.Nodes {
			if n.Object != nil && n.Object.Instance != nil && module.Covers(n.Object.Address()) {
				out = append(out, n.Object.Address())
			}
		}
		return out
	}
	for _, n := range s.nodes {
		if module.Covers(n.Address) {
			out = append(out, n.Address)
		}
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
