package activities

import (
	"strings"

	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
)

// shortestSecret is the length from which on a secret is looked for in what providers say. Shorter ones are part of too much.
const shortestSecret = 4

// heed keeps the secrets in a value that an expression was given, so that mask finds them again.
func (s *scope) heed(v cty.Value) {
	if v == cty.NilVal || !v.ContainsMarked() {
		return
	}
	plain, marks := v.UnmarkDeepWithPaths()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range marks {
		if _, secret := m.Marks[plan.Sensitive]; !secret {
			continue
		}
		at, err := m.Path.Apply(plain)
		if err != nil {
			continue
		}
		// The function returns no error, so neither does the walk.
		_ = cty.Walk(at, func(_ cty.Path, leaf cty.Value) (bool, error) {
			if leaf.IsKnown() && !leaf.IsNull() && leaf.Type() == cty.String && len(leaf.AsString()) >= shortestSecret {
				s.secrets[leaf.AsString()] = true
			}
			return leaf.IsKnown(), nil
		})
	}
}

// mask hides the secrets that went into expressions from what is going to be stored: providers repeat their arguments in
// errors.
func (s *scope) mask(text string) string {
	if s == nil {
		return text
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, plan.Mask)
	}
	return text
}

// maskAll is mask for diagnostics.
func (s *scope) maskAll(diags plan.Diagnostics) plan.Diagnostics {
	for i := range diags {
		diags[i].Summary, diags[i].Detail = s.mask(diags[i].Summary), s.mask(diags[i].Detail)
	}
	return diags
}
