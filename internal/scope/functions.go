package scope

import (
	"context"
	"fmt"
	"maps"

	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// caller acquires a process that a function of a provider may be called in; nil when nothing is to be called.
type caller = func(context.Context) (tfprotov6.ProviderServer, func(), error)

// providerFunctions are those that the installed providers define. They are pure, so each call acquires a process that
// nobody configured, and gives it back.
func (a *Sources) providerFunctions() lang.Functions {
	return a.eachFunction(func(e catalog.Entry) caller {
		return func(ctx context.Context) (tfprotov6.ProviderServer, func(), error) {
			p, release, err := a.Sessions.Unconfigured(ctx, e, provider.Configuration{})
			if err != nil {
				return nil, nil, fmt.Errorf("start provider %q for one of its functions: %w", e.Name, err)
			}
			return p, release, nil
		}
	})
}

// Signatures are the same functions for whoever only reads expressions: their results are unknown.
func (a *Sources) Signatures() lang.Functions {
	return a.eachFunction(func(catalog.Entry) caller { return nil })
}

func (a *Sources) eachFunction(call func(catalog.Entry) caller) lang.Functions {
	all := lang.Functions{}
	for _, name := range a.Catalog.Names() {
		if e, ok := a.Catalog.Get(name); ok && len(e.Schema.Functions) > 0 {
			maps.Copy(all, instance.Functions(name, e.Schema, call(e)))
		}
	}
	return all
}
