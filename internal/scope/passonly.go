package scope

import (
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
)

// WrittenBy returns a scope for the expressions of an object with these writers. It shares the values of s.
func (s *Scope) WrittenBy(list []v1alpha1.Contributor) *Scope {
	inner := *s
	inner.writers, inner.unknown = nil, false
	for _, c := range list {
		inner.unknown = inner.unknown || c.More
		if !c.More {
			inner.writers = append(inner.writers, &store.Asker{Access: s.Access, Who: c.Identity})
		}
	}
	return &inner
}

// guarded restricts expressions to passing on the sensitive parts of a value, unless the requester may read the state
// of the address. If a part came from another object, so that its schema need not say that it is secret, then the
// server could not check the writers of the evaluated object when they wrote it. So they need the right, too. The same
// holds for what the files of a Module refer to, because the server has not checked those who wrote the files.
func (s *Scope) guarded(ctx context.Context, addr lang.Address, v cty.Value) (cty.Value, error) {
	if v == cty.NilVal || addr.Stored() && !s.inModule || !lang.HoldsSensitive(v) {
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
	passedOn := slices.ContainsFunc(lang.OriginsOf(v), func(o lang.Origin) bool { return o.Address != addr })
	unchecked := passedOn || s.inModule || addr.Module != ""
	askers := []*store.Asker{s.requester}
	if unchecked {
		askers = append(askers, s.writers...)
	}
	for _, right := range rights {
		for _, asker := range askers {
			err := mayRead(ctx, asker, right)
			if IsForbidden(err) {
				return lang.PassOnly(v, err.Error())
			}
			if err != nil {
				return cty.NilVal, err
			}
		}
	}
	if unchecked && s.unknown {
		return lang.PassOnly(v, "the server does not know all users who wrote the object; write it again")
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
	return &diag.Failure{Operation: "evaluate spec",
		Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "spec", lang.SummaryPassOnly,
			lang.PassOnlyText(what, missing))}}
}
