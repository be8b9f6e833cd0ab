package scope

import (
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// NoteSecrets keeps the secrets in a value, which is marked where it is secret, so that mask finds them again.
func (s *Scope) NoteSecrets(v cty.Value) {
	if s != nil {
		s.Secrets.AddValue(v)
	}
}

// NoteSecretAttributes keeps the secrets in a value of a block: what came from secrets, and what stands where the schema has them.
func (s *Scope) NoteSecretAttributes(block *schema.Block, v cty.Value) {
	if s != nil {
		s.Secrets.AddBlock(block, v)
	}
}

// NoteSecretState keeps the secrets in a state.
func (s *Scope) NoteSecretState(block *schema.Block, state instance.State) {
	s.NoteSecretAttributes(block, state.Value)
}

// noteSecretText keeps a secret.
func (s *Scope) noteSecretText(text string) {
	if s != nil {
		s.Secrets.Add(text)
	}
}

// Mask hides the secrets that a provider was told from what is going to be stored: providers repeat their arguments in
// errors.
func (s *Scope) Mask(text string) string {
	if s == nil {
		return text
	}
	return s.Secrets.Hide(text)
}

// MaskAll is mask for diagnostics.
func (s *Scope) MaskAll(diags diag.Diagnostics) diag.Diagnostics {
	for i := range diags {
		diags[i].Summary, diags[i].Detail = s.Mask(diags[i].Summary), s.Mask(diags[i].Detail)
	}
	return diags
}
