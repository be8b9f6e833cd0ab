package instance

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// List lists the existing instances of a managed resource type.
type List struct {
	// Name is the Terraform type name, such as "sim_network".
	Name string
	// Type is the managed resource type of that name, which must have an identity schema.
	Type *Type
	// Schema is the schema of the list configuration.
	Schema *schema.Schema
	// Provider is configured and implements tfprotov6.ListResourceServer.
	Provider tfprotov6.ProviderServer
}

// Found is one instance in a list result.
type Found struct {
	// DisplayName is a name for users.
	DisplayName string
	// Identity is the identity for an import; cty.NilVal if the result has only Diagnostics.
	Identity cty.Value
	// Resource conforms to the type's schema; cty.NilVal unless the caller requested it.
	Resource cty.Value
	// Diagnostics are warnings; an error ends the list.
	Diagnostics diag.Diagnostics
}

// Query makes the provider validate the configuration, which must be wholly known, and list up to limit instances; 0
// means all. A break out of the loop ends the list. An error is the last result.
func (l *List) Query(ctx context.Context, config cty.Value, limit int64, includeResource bool) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		results, diags, err := l.start(ctx, config, limit, includeResource)
		if err != nil {
			yield(Found{Diagnostics: diags}, err)
			return
		}
		if len(diags) > 0 && !yield(Found{Diagnostics: diags}, nil) {
			return
		}
		found := int64(0)
		for r := range results {
			f, err := l.take(r, includeResource)
			if !yield(f, err) || err != nil {
				return
			}
			if f.Identity != cty.NilVal {
				found++
			}
			if limit > 0 && found >= limit {
				return // the provider may ignore the limit
			}
		}
	}
}

func (l *List) start(ctx context.Context, config cty.Value, limit int64,
	includeResource bool) (iter.Seq[tfprotov6.ListResourceResult], diag.Diagnostics, error) {
	s, ok := l.Provider.(tfprotov6.ListResourceServer)
	if !ok {
		return nil, nil, fmt.Errorf("list %s: the provider cannot list: %w", l.Name, errors.ErrUnsupported)
	}
	if l.Type.Identity == nil {
		return nil, nil, fmt.Errorf("list %s: the provider has no identity schema of the type, which is a bug of the provider", l.Name)
	}
	if !unmarked(config).IsWhollyKnown() {
		return nil, nil, fmt.Errorf("list %s: its configuration is not known yet", l.Name)
	}
	c, err := encodeFor(l.Name, l.Schema, config)
	if err != nil {
		return nil, nil, err
	}
	req := &tfprotov6.ValidateListResourceConfigRequest{TypeName: l.Name, Config: c}
	if req.IncludeResourceObject, err = schema.Encode(cty.BoolVal(includeResource), cty.Bool); err != nil {
		return nil, nil, err
	}
	if req.Limit, err = schema.Encode(cty.NumberIntVal(limit), cty.Number); err != nil {
		return nil, nil, err
	}
	resp, err := s.ValidateListResourceConfig(ctx, req)
	if err != nil {
		return nil, nil, fmt.Errorf("validate list %s: %w", l.Name, err)
	}
	diags, err := diag.Answer("validate", resp.Diagnostics)
	if err != nil {
		return nil, diags, err
	}
	stream, err := s.ListResource(ctx,
		&tfprotov6.ListResourceRequest{TypeName: l.Name, Config: c, IncludeResource: includeResource, Limit: limit})
	if err != nil {
		return nil, diags, fmt.Errorf("list %s: %w", l.Name, err)
	}
	return stream.Results, diags, nil
}

func (l *List) take(r tfprotov6.ListResourceResult, includeResource bool) (Found, error) {
	f := Found{DisplayName: r.DisplayName}
	var err error
	if f.Diagnostics, err = diag.Answer("list", r.Diagnostics); err != nil {
		return f, err
	}
	if f.Identity, err = l.Type.takeKnownIdentity("list", r.Identity); err != nil {
		return f, err
	}
	if none(f.Identity) {
		f.Identity = cty.NilVal
		if len(f.Diagnostics) > 0 {
			return f, nil // a warning about the whole list
		}
		return f, fmt.Errorf("list %s: the provider returned a resource without an identity, which is a bug of the provider", l.Name)
	}
	if r.Resource == nil || !includeResource {
		return f, nil
	}
	if f.Resource, err = l.Type.decode(r.Resource); err != nil {
		return f, fmt.Errorf("list %s: the provider answered with a value that does not fit its schema: %w", l.Name,
			err)
	}
	if !f.Resource.IsWhollyKnown() {
		return f, fmt.Errorf("list %s: the provider answered with unknown values, which is a bug of the provider",
			l.Name)
	}
	return f, l.Type.checkWriteOnly("list", f.Resource)
}
