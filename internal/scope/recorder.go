package scope

import (
	"context"

	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/resource"
)

// cause returns on whose behalf the scope reads values and calls providers.
func (s *Scope) cause() audit.Cause { return audit.Of(s.plan, s.who) }

// onBehalf returns a context whose reads the audit log records with the scope's cause.
func (s *Scope) onBehalf(ctx context.Context) context.Context { return audit.With(ctx, s.cause()) }

// Recorder returns a function that records the calls to the provider of a resource; nil if nothing records them.
func (s *Scope) Recorder(r *resource.Resource, providerConfig string) instance.RecordFunc {
	if s.Record == nil {
		return nil
	}
	return func(operation audit.Operation) (func(error), error) {
		plural, err := s.Objects.Plural(r.Ref)
		if err != nil {
			return nil, err
		}
		return s.Record(audit.Call{
			Operation: operation, Provider: r.Entry.Name, ProviderConfig: providerConfig, Type: r.Address.Type,
			Object: r.Ref, Plural: plural, Cause: s.cause(),
		})
	}
}
