package scope

import (
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// NoteSecrets adds the parts of a value that are marked as sensitive to the secrets that Mask hides.
func (s *Scope) NoteSecrets(v cty.Value) {
	if s != nil {
		s.Secrets.AddValue(v)
	}
}

// NoteSecretAttributes adds the secrets of a block's value: those that are marked, and those that the schema declares
// sensitive.
func (s *Scope) NoteSecretAttributes(block *schema.Block, v cty.Value) {
	if s != nil {
		s.Secrets.AddBlock(block, v)
	}
}

// NoteSecretState adds the secrets of a state.
func (s *Scope) NoteSecretState(block *schema.Block, state instance.State) {
	s.NoteSecretAttributes(block, state.Value)
}

// noteSecretText adds a secret.
func (s *Scope) noteSecretText(text string) {
	if s != nil {
		s.Secrets.Add(text)
	}
}

// Mask hides the noted secrets in a text that will be stored, because providers quote their arguments in errors.
func (s *Scope) Mask(text string) string {
	if s == nil {
		return text
	}
	return s.Secrets.Hide(text)
}

// MaskAll masks the summaries and details of diagnostics.
func (s *Scope) MaskAll(diags diag.Diagnostics) diag.Diagnostics {
	for i := range diags {
		diags[i].Summary, diags[i].Detail = s.Mask(diags[i].Summary), s.Mask(diags[i].Detail)
	}
	return diags
}
