package scope

import (
	"context"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/diag"
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
		call, err := s.call(r, operation, providerConfig, s.cause())
		if err != nil {
			return nil, err
		}
		return s.Record(call)
	}
}

// RecordInterrupted records that the outcome of a plan's call is unknown, because the server ended during the call.
func (s *Sources) RecordInterrupted(p *v1alpha1.Plan, r *resource.Resource, operation audit.Operation,
	providerConfig string, began time.Time) error {
	if s.Record == nil {
		return nil
	}
	call, err := s.call(r, operation, providerConfig, audit.Of(p, nil))
	if err != nil {
		return err
	}
	call.Began = began
	end, err := s.Record(call)
	if err == nil {
		end(&diag.Failure{Kind: diag.Lost})
	}
	return err
}

func (s *Sources) call(r *resource.Resource, operation audit.Operation, providerConfig string,
	cause audit.Cause) (audit.Call, error) {
	plural, err := s.Objects.Plural(r.Ref)
	return audit.Call{
		Operation: operation, Provider: r.Entry.Name, ProviderConfig: providerConfig, Type: r.Address.Type,
		Object: r.Ref, Plural: plural, Cause: cause,
	}, err
}
