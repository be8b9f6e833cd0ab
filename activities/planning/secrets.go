package planning

import (
	"context"
	"slices"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
)

// This file notes which secrets of other objects a change gives to its provider.

// account is a provider with known arguments: whoever has a secret there gives nothing away by giving it again.
type account struct {
	provider      string
	configuration ledger.Configuration
}

func (a account) same(other account) bool {
	return a.provider == other.provider && a.configuration.Same(other.configuration)
}

// noteAccount notes the account of a resource whose schema has secrets, for the resources of the plan that refer to
// them.
func (pr *proposal) noteAccount(r *resource.Resource, l *session.Session) {
	if !schema.HasSensitive(r.Schema.Block) {
		return
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	pr.accounts[r.Address] = account{r.Entry.Name, ledger.Configuration(l.Digest)}
}

// accountOf returns the account of a resource with secrets, in this plan or as recorded. It returns the zero value if
// there is none, as for a Secret.
func (pr *proposal) accountOf(ctx context.Context, of lang.Address) (account, error) {
	if of.Mode != "" || of.Stored() {
		return account{}, nil
	}
	of = of.In(pr.plan.Namespace)
	pr.mu.Lock()
	a, ok := pr.accounts[of]
	pr.mu.Unlock()
	if ok {
		return a, nil
	}
	for r, err := range pr.scope.Resources(ctx, of) {
		if err != nil {
			return account{}, err
		}
		rec, err := pr.Ledger.Instance(ctx, r.Ref)
		if err != nil || rec.Exists() {
			return account{r.Entry.Name, rec.Configuration}, err
		}
	}
	return account{}, nil
}

// holding is a value that an account has; the value is cty.NilVal if it has none.
type holding struct {
	value cty.Value
	by    account
}

// noteSecrets notes in a change which secrets of other objects the provider gets with the configuration. recorded is
// the state of the resource; nil for none. It returns the paths of the arguments that planning must not give to the
// provider: those with secrets that the provider does not have and that the users who caused the change may not read.
// Some providers send their arguments to the cloud while they plan, before anybody approves.
func (pr *proposal) noteSecrets(ctx context.Context, c *ledger.Change, r *resource.Resource, l *session.Session,
	config cty.Value, recorded *ledger.State) (withheld []cty.Path, err error) {
	// an earlier attempt may have set them
	c.Secrets, c.ProviderArguments, c.Origins, c.Discloses, c.ProviderWriters = nil, nil, nil, nil, nil
	if !scope.Known(config) {
		c.ProviderWriters = pr.writersOf(ctx, l)
	}
	to := account{r.Entry.Name, ledger.Configuration(l.Digest)}
	secrets := plan.SecretArguments(r.Schema.Block, config)
	if len(secrets) == 0 {
		return nil, nil
	}
	has := recordedBy(r, recorded)
	items := make([]changes.Secret, 0, len(secrets))
	for _, s := range secrets {
		item := changes.Secret{SecretArgument: s}
		for _, o := range s.Origins {
			from, err := pr.accountOf(ctx, o.Address)
			if err != nil {
				return nil, err
			}
			if discloses(s, config, o, from, to, has) {
				item.Disclosed = append(item.Disclosed, o)
			}
		}
		items = append(items, item)
		if len(item.Disclosed) > 0 {
			withheld = append(withheld, s.Path)
		}
	}
	if err := changes.NoteSecrets(c, pr.plan.Namespace, items); err != nil {
		return nil, err
	}
	for _, a := range l.Public {
		c.ProviderArguments = append(c.ProviderArguments, v1alpha1.PlanArgument{Name: a.Path, Value: a.Value})
	}
	// neither an approval of the arguments for creates, nor one for the resource, is one of a disclosure
	if len(c.Discloses) > 0 {
		c.Contributors = contributor.Merge(c.Contributors, pr.writersOf(ctx, l))
	}
	_, missing, err := changes.LackSecretRights(ctx, pr.Sources, pr.plan, c)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	if slices.ContainsFunc(withheld, func(p cty.Path) bool { return len(p) == 0 }) {
		return nil, &diag.Failure{Operation: "evaluate spec",
			Diagnostics: diag.Diagnostics{lang.Problem(r.Address, "spec", lang.SummaryPassOnly,
				"All arguments depend on a secret that a user who caused the change may not read. Ask for the right, or use the secret in single arguments only.")}}
	}
	return withheld, nil
}

// unknownAt returns a configuration with unknown values at the paths, which keep their marks.
func unknownAt(config cty.Value, paths []cty.Path) (cty.Value, error) {
	if len(paths) == 0 {
		return config, nil
	}
	set := cty.NewPathSet(paths...)
	return cty.Transform(config, func(at cty.Path, v cty.Value) (cty.Value, error) {
		if !set.Has(at) {
			return v, nil
		}
		v, marks := v.Unmark()
		return cty.UnknownVal(v.Type()).WithMarks(marks), nil
	})
}

// discloses reports whether a configuration gives an account the secret of an origin that it does not have yet. from is
// the account of the origin, the zero value if it has none, and has is what an account has of the resource.
func discloses(s plan.SecretArgument, config cty.Value, o lang.Origin, from, to account, has holding) bool {
	switch {
	case to.same(has.by) && (has.same(config, s.Path) || has.from(o, s.Path)):
		return false // an earlier plan gave it this secret, or the former one of the same object
	case s.Hidden && to.same(from):
		return false // the account has the secret, and a query of a hidden argument returns a sensitive value
	}
	return true
}

// same reports whether the value has the same known part at a path as the configuration.
func (h holding) same(config cty.Value, at cty.Path) bool {
	had, ok := plan.ValueAt(h.value, at)
	gets, is := plan.ValueAt(config, at)
	return ok && is && gets.IsWhollyKnown() && !gets.IsNull() && had.RawEquals(gets)
}

// from reports whether the part of the value at a path comes from the object of an origin.
func (h holding) from(o lang.Origin, at cty.Path) bool {
	return slices.ContainsFunc(plan.OriginsAt(h.value, at),
		func(had lang.Origin) bool { return had.Address == o.Address })
}

// recordedBy returns the recorded value of a resource with the account that it was recorded with.
func recordedBy(r *resource.Resource, rec *ledger.State) holding {
	if !rec.Exists() {
		return holding{value: cty.NilVal}
	}
	v, err := instance.Recorded(rec, r.Schema)
	if err != nil { // the schema has another version, so that the secret counts as new
		return holding{value: cty.NilVal}
	}
	return holding{v, account{r.Entry.Name, rec.Configuration}}
}
