package scope

import (
	"context"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"

	"github.com/zclconf/go-cty/cty"
)

// guarded restricts expressions to passing on the sensitive parts of a value, unless the requester may read the state
// of the address.
func (s *Scope) guarded(ctx context.Context, addr lang.Address, v cty.Value) (cty.Value, error) {
	if v == cty.NilVal || addr.Stored() || !lang.HoldsSensitive(v) {
		return v, nil // the right to read a Secret includes its value
	}
	if s.requester == nil {
		return lang.PassOnly(v, errNoRequester.Error())
	}
	if addr.Namespace == "" {
		addr.Namespace = s.namespace
	}
	rights, err := s.RightsToSecrets(addr)
	if err != nil {
		return cty.NilVal, err
	}
	for _, right := range rights {
		err = s.MayRead(ctx, right)
		if IsForbidden(err) {
			return lang.PassOnly(v, err.Error())
		}
		if err != nil {
			return cty.NilVal, err
		}
	}
	return v, nil
}

// checkArguments rejects arguments of a data source or an ephemeral resource that may only be passed on. Planning calls
// the provider without an approval. The provider may return its arguments, or send them to any host in its
// configuration.
func checkArguments(r *resource.Resource, config cty.Value) error {
	missing, held := lang.HoldsPassOnly(config)
	if !held || r.Mode != v1alpha1.ModeData && r.Mode != v1alpha1.ModeEphemeral {
		return nil
	}
	what := "A data source with such an argument"
	if r.Mode == v1alpha1.ModeEphemeral {
		what = "An ephemeral resource with such an argument"
	}
	return &diag.Failure{Operation: "evaluate spec", Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "spec", lang.SummaryPassOnly,
		lang.PassOnlyText(what, missing))}}
}
