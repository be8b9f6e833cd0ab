package activities

import (
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// noteSecrets keeps the secrets in a value, which is marked where it is secret, so that mask finds them again.
func (s *scope) noteSecrets(v cty.Value) {
	if s != nil {
		s.secrets.AddValue(v)
	}
}

// noteSecretAttributes keeps the secrets in a value of a block: what came from secrets, and what stands where the schema has them.
func (s *scope) noteSecretAttributes(block *schema.Block, v cty.Value) {
	if s != nil {
		s.secrets.AddBlock(block, v)
	}
}

// noteSecretState keeps the secrets in a state.
func (s *scope) noteSecretState(block *schema.Block, state instance.State) {
	s.noteSecretAttributes(block, state.Value)
}

// noteSecretText keeps a secret.
func (s *scope) noteSecretText(text string) {
	if s != nil {
		s.secrets.Add(text)
	}
}

// mask hides the secrets that a provider was told from what is going to be stored: providers repeat their arguments in
// errors.
func (s *scope) mask(text string) string {
	if s == nil {
		return text
	}
	return s.secrets.Hide(text)
}

// maskAll is mask for diagnostics.
func (s *scope) maskAll(diags diag.Diagnostics) diag.Diagnostics {
	for i := range diags {
		diags[i].Summary, diags[i].Detail = s.mask(diags[i].Summary), s.mask(diags[i].Detail)
	}
	return diags
}
