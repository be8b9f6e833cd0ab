// Package query answers read-only requests: it lists existing resources, finds the objects that manage them, and
// evaluates expressions.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

// Queries answers queries and evaluates expressions. It changes nothing.
type Queries struct{ *scope.Sources }

const (
	// defaultFound and maxFound are the default and the maximum that v1alpha1.QuerySpec documents.
	defaultFound = 100
	maxFound     = 10_000
)

// QueryError is the error for an invalid query.
type QueryError struct {
	// Field is the path of the invalid field, such as "spec.type".
	Field string
	// Detail describes the problem and the remedy.
	Detail string
}

func (e *QueryError) Error() string { return e.Field + ": " + e.Detail }

func badQuery(field, format string, args ...any) error {
	return &QueryError{field, fmt.Sprintf(format, args...)}
}

// Query makes a provider list the existing resources, with the rights of who, and writes the result to q.Status. Errors
// of the provider are diagnostics in that status. Query returns a *QueryError if the query is invalid. It returns a
// *ForbiddenError if the user may not use the ProviderConfig.
func (a *Queries) Query(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error {
	q.Status = v1alpha1.QueryStatus{}
	r, err := a.queried(ctx, q)
	if err != nil {
		return err
	}
	visible := a.ScopeOf(&who, q.Namespace, nil)
	defer func() { // close the ephemeral resources of the provider's configuration
		if err := visible.Close(context.WithoutCancel(ctx)); err != nil {
			q.Status.Diagnostics = append(q.Status.Diagnostics, scope.Unclosed(err))
		}
	}()
	defer func() {
		q.Status.Diagnostics = visible.MaskAll(q.Status.Diagnostics)
		for i := range q.Status.Results {
			q.Status.Results[i].Diagnostics = visible.MaskAll(q.Status.Results[i].Diagnostics)
		}
	}()
	configured, err := visible.Acquire(ctx, r, session.SlotAndRate)
	if err != nil {
		return err
	}
	defer configured.Release()
	t := instance.NewType(r.Entry.Schema, r.Address.Type)
	t.Provider = configured.ProviderServer
	if t.Meta, err = a.Catalog.Meta(ctx, r.Entry, configured.Config); err != nil {
		return err
	}
	s := &search{Sources: a.Sources, query: q, Resource: r, of: &t, names: map[string]bool{}, scope: visible}
	if q.Spec.Import != nil {
		err = s.one(ctx)
	} else {
		err = s.all(ctx, configured)
	}
	if pe, ok := errors.AsType[*providerError](err); ok && ctx.Err() == nil {
		q.Status.Diagnostics = append(q.Status.Diagnostics, diagnosticsOf(pe.error)...)
		return nil
	}
	return err
}

// providerError is an error in the communication with a provider.
type providerError struct{ error }

func (e *providerError) Unwrap() error { return e.error }

// diagnosticsOf returns the diagnostics of a provider's failure, or one diagnostic for any other error.
func diagnosticsOf(err error) diag.Diagnostics {
	if f, ok := errors.AsType[*diag.Failure](err); ok && len(f.Diagnostics) > 0 {
		return f.Diagnostics
	}
	return diag.Diagnostics{{Severity: v1alpha1.SeverityError, Summary: "Provider could not answer",
		Detail: err.Error()}}
}

// queried returns the resource type of a query. It makes the checks that do not need the provider.
func (a *Queries) queried(ctx context.Context, q *v1alpha1.Query) (*resource.Resource, error) {
	spec := &q.Spec
	name := v1alpha1.TypeOf(spec.Type)
	e, err := a.queriedProvider(spec, name)
	if err != nil {
		return nil, err
	}
	switch {
	case spec.Limit < 0 || spec.Limit > maxFound:
		return nil, badQuery("spec.limit", "must be between 1 and %d", maxFound)
	case spec.Import != nil && (spec.Import.ID == "") == (spec.Import.Identity == nil):
		return nil, badQuery("spec.import", "write either id or identity")
	case spec.Import == nil && e.Schema.ListResources[name] == nil:
		return nil, badQuery("spec.type", "the provider %q cannot list %s; find a single resource by spec.import",
			e.Name, name)
	}
	r := &resource.Resource{Entry: e, Schema: e.Schema.Resources[name], Address: lang.Address{Type: name},
		Mode: v1alpha1.ModeManaged}
	r.Ref.Namespace, r.Lifecycle.ProviderConfig = q.Namespace, spec.ProviderConfig
	if spec.ProviderConfig == "" {
		return r, nil
	}
	cfg, err := a.Configs.Get(ctx, q.Namespace, spec.ProviderConfig)
	switch {
	case err != nil:
		return nil, err
	case cfg == nil:
		return nil, badQuery("spec.providerConfig", "there is no ProviderConfig %q in the namespace %q",
			spec.ProviderConfig, q.Namespace)
	case cfg.Spec.Provider != e.Name:
		return nil, badQuery("spec.providerConfig", "%q configures the provider %q, not %q", spec.ProviderConfig,
			cfg.Spec.Provider, e.Name)
	}
	return r, nil
}

func (a *Queries) queriedProvider(spec *v1alpha1.QuerySpec, name string) (catalog.Entry, error) {
	providers := a.Catalog.ProvidersOf(v1alpha1.ModeManaged, name)
	switch {
	case len(providers) == 0:
		return catalog.Entry{}, badQuery("spec.type", "no installed provider has a resource type %q", name)
	case spec.Provider == "" && len(providers) > 1:
		return catalog.Entry{}, badQuery("spec.provider", "the providers %s have the type %q; name one",
			strings.Join(providers, ", "), name)
	case spec.Provider == "":
		spec.Provider = providers[0]
	}
	e, ok := a.Catalog.Get(spec.Provider)
	if !ok || e.Schema.Resources[name] == nil {
		return catalog.Entry{}, badQuery("spec.provider", "the provider %q is not ready, or has no resource type %q",
			spec.Provider, name)
	}
	return e, nil
}

// search is the processing of one query.
type search struct {
	*scope.Sources
	*resource.Resource
	query *v1alpha1.Query
	of    *instance.Type
	// scope checks the rights of the user.
	scope *scope.Scope
	// names holds the names of the manifests in the result.
	names map[string]bool
	// indexed is true after the index was refreshed, which the first found resource requires.
	indexed bool
	// candidates are the objects of the query.
	candidates []candidate
}

// reads reports whether the query needs the values of the resources.
func (s *search) reads() bool { return s.query.Spec.Manifests || len(s.query.Spec.Objects) > 0 }

// one finds the resource that an import would find.
func (s *search) one(ctx context.Context) error {
	by := instance.ImportBy{ID: s.query.Spec.Import.ID}
	if raw := s.query.Spec.Import.Identity; raw != nil {
		var err error
		if s.of.Identity == nil {
			return badQuery("spec.import.identity", "the provider has no identity for %s; find it by its id", s.of.Name)
		}
		if by.Identity, err = s.of.DecodeIdentity(raw.Raw); err != nil {
			return badQuery("spec.import.identity", "%v", err)
		}
	}
	state, diags, err := s.of.Import(ctx, by)
	if err != nil {
		return &providerError{err}
	}
	name := by.ID
	if name == "" {
		name = idOf(state.Value)
	}
	return s.add(ctx, instance.Found{DisplayName: name, Identity: state.Identity, Resource: state.Value,
		Diagnostics: diags}, by.ID)
}

// all lists the existing resources up to the limit.
func (s *search) all(ctx context.Context, p *session.Session) error {
	spec := &s.query.Spec
	config, err := s.arguments(ctx)
	if err != nil {
		return err
	}
	if err := s.evaluateObjects(ctx); err != nil {
		return err
	}
	limit := spec.Limit
	if limit == 0 {
		limit = defaultFound
	}
	list := &instance.List{Name: s.of.Name, Type: s.of, Schema: s.Entry.Schema.ListResources[s.of.Name],
		Provider: p.ProviderServer}
	// One more result shows whether there are more than the limit.
	for found, err := range list.Query(ctx, config, limit+1, s.reads()) {
		switch {
		case err != nil:
			return &providerError{err}
		case absent(found.Identity) && absent(found.Resource):
			s.query.Status.Diagnostics = append(s.query.Status.Diagnostics, found.Diagnostics...)
			continue
		case int64(len(s.query.Status.Results)) == limit:
			s.query.Status.Truncated = true
			return nil
		}
		if err := s.add(ctx, found, ""); err != nil {
			return err
		}
	}
	return nil
}

// arguments evaluates the arguments of the list resource, which must not have references.
func (s *search) arguments(ctx context.Context) (cty.Value, error) {
	args := map[string]any{}
	if raw := s.query.Spec.Config; raw != nil && len(raw.Raw) > 0 {
		if err := json.Unmarshal(raw.Raw, &args); err != nil {
			return cty.NilVal, badQuery("spec.config", "must be an object of the list's arguments: %v", err)
		}
	}
	wrong := func(diags diag.Diagnostics) error {
		for i := range diags {
			diags[i].Attribute = strings.Replace(diags[i].Attribute, "spec", "spec.config", 1)
		}
		return badQuery("spec.config", "%s", diag.Describe(diags))
	}
	parsed, diags := lang.ConfigOptions{Settled: true, Budget: lang.BudgetOf(ctx)}.Parse(args,
		s.Entry.Schema.ListResources[s.of.Name].Block)
	if diag.HasErrors(diags) {
		return cty.NilVal, wrong(diags)
	}
	if refs := parsed.References(); len(refs) > 0 {
		return cty.NilVal, badQuery("spec.config",
			"refers to %s, but a query cannot refer to anything; write the value itself", refs[0].Address)
	}
	v, diags := parsed.Evaluate(func(lang.Address) (cty.Value, bool) { return cty.NilVal, false })
	if diag.HasErrors(diags) {
		return cty.NilVal, wrong(diags)
	}
	return v, nil
}

// add adds a found resource to the result. id is the ID in the query, if any.
func (s *search) add(ctx context.Context, found instance.Found, id string) error {
	result := v1alpha1.QueryResult{DisplayName: found.DisplayName, ID: id, Diagnostics: found.Diagnostics}
	if !absent(found.Identity) {
		raw, err := s.of.EncodeIdentity(found.Identity)
		if err != nil {
			return err
		}
		result.Identity = &runtime.RawExtension{Raw: resource.WithoutNulls(raw)}
	}
	if s.reads() && !absent(found.Identity) && absent(found.Resource) {
		state, diags, err := s.of.Import(ctx, instance.ImportBy{Identity: found.Identity})
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			diags = append(diags, diagnosticsOf(err)...)
		}
		result.Diagnostics = append(result.Diagnostics, diags...)
		found.Resource = state.Value
	}
	managed, err := s.setManager(ctx, &result, found)
	if err != nil {
		return err
	}
	if result.ID == "" && result.Identity == nil {
		result.ID = idOf(found.Resource)
	}
	if s.reads() && !absent(found.Resource) {
		if err := s.describe(ctx, &result, found); err != nil {
			return err
		}
		if !managed {
			result.Matches = s.matching(found.Resource)
		}
	}
	s.query.Status.Results = append(s.query.Status.Results, result)
	return nil
}

func absent(v cty.Value) bool { return v == cty.NilVal || v.IsNull() }

// idOf returns the attribute "id" of a value, or "" if it has none.
func idOf(v cty.Value) string {
	if absent(v) || !v.Type().IsObjectType() || !v.Type().HasAttribute("id") {
		return ""
	}
	id, _ := v.GetAttr("id").Unmark()
	switch {
	case id.IsNull() || !id.IsKnown():
		return ""
	case id.Type() == cty.String:
		return id.AsString()
	case id.Type() == cty.Number:
		return id.AsBigFloat().Text('f', -1)
	}
	return ""
}
