package kinds

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
)

// parsedSpec keeps the spec that a request writes, parsed, so that decoding, validation, warnings and the check of the author's rights
// parse it once.
type parsedSpec struct {
	mu        sync.Mutex
	kind      *served
	snapshot  *snapshot
	namespace string
	// spec is a copy: decoding drops unknown fields from the original.
	spec   map[string]any
	config *lang.Config
	diags  diag.Diagnostics
}

type parsedSpecKey struct{}

// withParsedSpec returns a context in which the spec of one object is parsed once.
func withParsedSpec(ctx context.Context) context.Context {
	return context.WithValue(ctx, parsedSpecKey{}, new(parsedSpec))
}

// parseSpec parses arguments with the signatures of the functions that providers define. An ephemeral resource may have ephemeral values in
// any argument. Callers do not change the result: all of a request share it.
func (s *served) parseSpec(ctx context.Context, namespace string, spec map[string]any) (*lang.Config, diag.Diagnostics) {
	options := lang.ConfigOptions{Functions: s.functions(), Ephemeral: s.Mode == v1alpha1.ModeEphemeral, Namespace: namespace}
	p, ok := ctx.Value(parsedSpecKey{}).(*parsedSpec)
	if !ok {
		return options.Parse(spec, s.Schema.Block)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := s.kinds.snapshot.Load()
	if p.config == nil || p.kind != s || p.snapshot != now || p.namespace != namespace || !reflect.DeepEqual(p.spec, spec) {
		p.kind, p.snapshot, p.namespace, p.spec = s, now, namespace, runtime.DeepCopyJSON(spec)
		p.config, p.diags = options.Parse(spec, s.Schema.Block)
	}
	return p.config, p.diags
}
