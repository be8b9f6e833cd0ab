package changes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
)

// This file binds changes to the arguments of their providers. With other arguments, a provider may reach another
// account: an approved create would make its resource there, and an approved destroy would find another resource under
// the recorded ID.

// ArgumentsChanged returns the *StaleError for a ProviderConfig whose arguments are not the approved ones. cfg is nil
// if it is gone.
func ArgumentsChanged(name string, cfg *v1alpha1.ProviderConfig) error {
	advice := ""
	if names := catalog.Rotatable(cfg); len(names) > 0 {
		advice = fmt.Sprintf("; if only a credential was replaced, set rotates for %s in spec.secretRefs, with kubectl edit providerconfig %s", strings.Join(names, " or "), name)
	}
	return Stale(v1alpha1.StaleProviderConfigChanged,
		"the arguments of the ProviderConfig %q, or the Secrets that they come from, changed after the plan was made%s",
		name, advice)
}

// OtherSecrets reports whether a plan was made with other values of a ProviderConfig's Secrets, apart from those that
// rotate.
func OtherSecrets(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, config string) (bool, error) {
	for c, err := range src.Ledger.Changes(ctx, po.UID, 0) {
		if err != nil {
			return false, err
		}
		planned, bound := c.Preconditions.Arguments[config]
		if !bound {
			continue
		}
		now, err := src.NewScope(po, po.Namespace, nil).SecretsOf(ctx, config)
		if _, missing := errors.AsType[*store.SecretError](err); missing {
			return true, nil
		}
		return err == nil && now != planned.Secrets, err
	}
	return false, nil
}

// CheckSecrets returns a *StaleError if a Secret has another value than the one with which the change was approved. It
// configures no provider and evaluates no expression.
func CheckSecrets(ctx context.Context, s *scope.Scope, c *ledger.Change) error {
	for _, name := range slices.Sorted(maps.Keys(c.Preconditions.Arguments)) {
		now, err := s.SecretsOf(ctx, name)
		if missing, ok := errors.AsType[*store.SecretError](err); ok {
			return Stale(v1alpha1.StaleProviderConfigChanged,
				"the ProviderConfig %q lacks a value that the plan was made with: %v", name, missing)
		}
		if err != nil {
			return err
		}
		if c.Preconditions.Arguments[name].Secrets == now {
			continue
		}
		cfg, err := s.Configs.Get(ctx, c.Object.Namespace, name)
		if err != nil {
			return err
		}
		return ArgumentsChanged(name, cfg)
	}
	return nil
}
