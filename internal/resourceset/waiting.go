package resourceset

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
)

// This file finds the blocks of a Module whose instances are not known before another plan is applied.

// KeysUnknown reports whether an object is that of a recorded instance of a block that waits.
func KeysUnknown(u *unstructured.Unstructured) bool {
	unknown, _, _ := unstructured.NestedBool(u.Object, v1alpha1.FieldInstance, v1alpha1.FieldKeysUnknown)
	return unknown
}

// answerable returns an error if a count or for_each depends on what the expansion never knows.
func answerable(x *module.Expansion) error {
	for _, w := range x.Waiting {
		never := slices.IndexFunc(w.Needs, func(a lang.Address) bool {
			return a.Namespace != "" || a.Stored() || a.Named() || a.Mode == v1alpha1.ModeEphemeral ||
				a.Mode == v1alpha1.ModeAction
		})
		switch {
		case len(w.Needs) == 0:
			return fmt.Errorf("%s: %s", w.Problem.Attribute, w.Problem.Detail)
		case never >= 0:
			return fmt.Errorf("the instances of %s depend on %s, and the count or for_each of a Module can depend only on resources and data sources of its namespace: "+
				"let it depend on variables whose values are written in spec.inputs", w.Address, w.Needs[never])
		}
	}
	return nil
}

// reasonOf returns why a block or a module waits.
func reasonOf(w *module.Waiting) string {
	needs := make([]string, len(w.Needs))
	for i, a := range w.Needs {
		needs[i] = a.String()
	}
	return fmt.Sprintf("its count or for_each depends on %s, which is known after apply", strings.Join(needs, ", "))
}

// findWaiting sets Waiting: what the expansion could not determine, and each block that depends on it. A Module that is
// being deleted waits for nothing.
func (m *Module) findWaiting(d *module.Dependencies) {
	if len(m.Expansion.Waiting) == 0 || m.Deleting != nil {
		return
	}
	m.Waiting = map[string]string{}
	for _, w := range m.Expansion.Waiting {
		m.Waiting[w.Address.String()] = reasonOf(w)
	}
	for more := true; more; {
		more = false
		for _, i := range m.Expansion.Instances {
			for _, block := range i.Sets {
				at := block.Address()
				if m.Waiting[at.String()] != "" {
					continue
				}
				for k := range block.Len() {
					if why := m.waitsFor(d.Of(block, k), m.blocked...); why != "" {
						m.Waiting[at.String()], more = why, true
						m.blocked = append(m.blocked, at)
						break
					}
				}
			}
		}
	}
}

// waitsFor returns why one of the addresses is not known, because the expansion or a blocked address waits; "" if all
// are known.
func (m *Module) waitsFor(list []lang.Address, blocked ...lang.Address) string {
	for _, a := range list {
		if w := m.Expansion.Waits(a); w != nil {
			return fmt.Sprintf("it depends on %s, whose instances are known after apply", w.Address)
		}
		for _, b := range blocked {
			if b.Covers(a) || a.Covers(b) {
				return fmt.Sprintf("it depends on %s, which waits", b)
			}
		}
	}
	return ""
}
