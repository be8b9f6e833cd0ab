package instance

import (
	"context"
	"slices"
	"sync"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/provider/batch"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

// callSecrets are the secrets in the values of a call. They are found only when an answer has a text.
type callSecrets struct {
	block  *schema.Block
	values []cty.Value

	once    sync.Once
	secrets plan.Secrets
}

// Hide implements batch.Secrets.
func (s *callSecrets) Hide(text string) string {
	s.once.Do(func() {
		for _, v := range s.values {
			s.secrets.AddBlock(s.block, v)
		}
	})
	return s.secrets.Hide(text)
}

// withSecrets returns the context for a call with values, so that the answers to other calls of its batch do not show
// their secrets.
func (t *Type) withSecrets(ctx context.Context, values ...cty.Value) context.Context {
	if !schema.HasSensitive(t.Schema.Block) && !slices.ContainsFunc(values, lang.HasMarks) {
		return ctx
	}
	return batch.WithSecrets(ctx, &callSecrets{block: t.Schema.Block, values: values})
}
