package scope

import (
	"context"
	"fmt"
	"maps"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/provider"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// providerFunctions returns the functions of the installed providers. Functions are pure, so each call acquires and
// releases an unconfigured process.
func (a *Sources) providerFunctions() lang.Functions {
	all := lang.Functions{}
	for _, name := range a.Catalog.Names() {
		e, ok := a.Catalog.Get(name)
		if !ok {
			continue
		}
		maps.Copy(all, instance.Functions(name, e.Schema,
			func(ctx context.Context) (tfprotov6.ProviderServer, func(), error) {
				p, release, err := a.Sessions.Unconfigured(ctx, e, provider.Configuration{})
				if err != nil {
					return nil, nil, fmt.Errorf("start provider %q for one of its functions: %w", name, err)
				}
				return p, release, nil
			}))
	}
	return all
}
