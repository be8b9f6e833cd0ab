package scope

import (
	"context"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/store"
)

// This file protects the keys of Secrets from users who may write them, and may not get them. Such a user could change
// the key with the endpoint, and the provider would send the other keys there.

// writtenKey is a key of a Secret that a ProviderConfig reads, with its last writers.
type writtenKey struct {
	v1alpha1.SecretArgument
	writers []v1alpha1.Contributor
}

// keyWriter is a user who wrote a key that may be an address.
type keyWriter struct {
	who v1alpha1.Contributor
	key writtenKey
	// secrets are the Secrets with keys that other users wrote.
	secrets []string
}

// writersOfAddresses returns the users who wrote a key that may be an address, if others wrote other keys. An argument
// that rotates is a credential, and no address. If one user wrote all keys, that user already knows them.
func writersOfAddresses(keys []writtenKey) []keyWriter {
	var out []keyWriter
	for _, key := range keys {
		if key.Rotates {
			continue
		}
		for _, who := range key.writers {
			if secrets := writtenByOthers(keys, key, who); len(secrets) > 0 {
				out = append(out, keyWriter{who, key, secrets})
			}
		}
	}
	return out
}

// writtenByOthers returns the Secrets with further keys that another user than who wrote.
func writtenByOthers(keys []writtenKey, own writtenKey, who v1alpha1.Contributor) (secrets []string) {
	another := func(w v1alpha1.Contributor) bool {
		return w.More || who.More || !contributor.SameUser(w.Identity, who.Identity)
	}
	for _, key := range keys {
		if key.SecretArgument != own.SecretArgument && slices.ContainsFunc(key.writers, another) {
			secrets = append(secrets, key.Name)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(secrets)))
}

// checkWriters returns a *ForbiddenError if a user who wrote a key that a ProviderConfig reads may not use the
// ProviderConfig, or may not get the keys of others that the provider would get with it.
func (s *Scope) checkWriters(ctx context.Context, cfg *v1alpha1.ProviderConfig) error {
	if len(cfg.Spec.SecretRefs) < 2 {
		return nil
	}
	keys := make([]writtenKey, len(cfg.Spec.SecretRefs))
	for i, ref := range cfg.Spec.SecretRefs {
		writers, _, err := s.Configs.Writers(ctx,
			store.Written{Kind: "Secret", Namespace: cfg.Namespace, Name: ref.Name})
		if err != nil {
			return err
		}
		keys[i] = writtenKey{ref, contributor.WritersOf(writers.List, ref.Key)}
	}
	for _, w := range writersOfAddresses(keys) {
		if err := s.mayHaveSecrets(ctx, cfg, w); err != nil {
			return err
		}
	}
	return nil
}

// mayHaveSecrets returns a *ForbiddenError if the writer of a key may not have the keys of others.
func (s *Scope) mayHaveSecrets(ctx context.Context, cfg *v1alpha1.ProviderConfig, w keyWriter) error {
	missing := []store.Right{store.UseOf(cfg.Namespace, cfg.Name)}
	for _, name := range w.secrets {
		missing = append(missing, store.Right{Verb: store.VerbGet, Namespace: cfg.Namespace, Resource: "secrets",
			Name: name})
	}
	who := "one of many users"
	if !w.who.More {
		who = fmt.Sprintf("the user %q", w.who.Username)
		var err error
		if missing, err = s.askerOf(&w.who.Identity).Missing(ctx, missing); err != nil || len(missing) == 0 {
			return err
		}
	}
	advice := ""
	if !catalog.ChoosesAccount(w.key.Argument) {
		advice = fmt.Sprintf(", or set rotates for the argument %q if it is a credential", w.key.Argument)
	}
	return &ForbiddenError{fmt.Sprintf("%s wrote the key %q of the Secret %q last, and has no right to %s. "+
		"The provider could send the keys that others wrote to an address of that user. Let a user with these rights write the key again%s",
		who, w.key.Key, w.key.Name, store.ListRights(missing), advice)}
}
