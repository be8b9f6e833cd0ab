package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// This file stores which arguments of a ProviderConfig were approved by a person who did not write them.

// Account has the arguments of the provider of a change as the survey found them, and who wrote them.
type Account struct {
	// Digest identifies the arguments with their writers and, of those that do not rotate, the times of their writes.
	// It is empty if one of these is unknown.
	Digest string `json:"digest,omitempty"`
	// Arguments identify the arguments.
	Arguments Arguments `json:"arguments,omitzero"`
	// Writers are the users who wrote the arguments. They are contributors of the change, unless Approved is true: a
	// person who is none of them approved the account for the type. A change that discloses a secret has them in any
	// case.
	Writers  []v1alpha1.Contributor `json:"writers,omitempty"`
	Approved bool                   `json:"approved,omitempty"`
}

// AppliedArguments are the arguments of a provider with which a plan last applied an instance. An instance that needed
// no change has them, too, if a person who did not write them made or approved that plan.
type AppliedArguments struct {
	// Version is that of the ProviderConfig; see Change.ConfigVersion. It is empty if no plan applied the instance.
	Version string `json:"version,omitempty"`
	// Arguments are Configuration.Arguments; empty if they were unknown.
	Arguments string `json:"arguments,omitempty"`
}

// HasOtherArguments reports whether an existing instance was found, or last applied by a plan, with other arguments.
// Unknown ones are not other ones. The record may be nil.
func (i *Instance) HasOtherArguments(now Configuration) bool {
	if i == nil || !i.Exists() || now.Arguments == "" {
		return false
	}
	return other(i.Configuration.Arguments, now.Arguments) || other(i.Applied.Arguments, now.Arguments)
}

func other(was, now string) bool { return was != "" && was != now }

// approvedAccounts are the approved accounts of a ProviderConfig. Those of an earlier one with its name do not count.
type approvedAccounts struct {
	Config types.UID         `json:"config"`
	Types  map[string]string `json:"types"`
}

func accountsKey(namespace, config string) string { return "accounts/" + namespace + "/" + config }

// Accounts returns the digests of the approved accounts of a ProviderConfig by Terraform types: for each type, that of
// the latest approval.
func (l *Ledger) Accounts(ctx context.Context, config *v1alpha1.ProviderConfig) (map[string]string, error) {
	known, _, err := l.accounts(ctx, config)
	return known.Types, err
}

func (l *Ledger) accounts(ctx context.Context,
	config *v1alpha1.ProviderConfig) (known approvedAccounts, revision int64, err error) {
	value, revision, err := l.kv.Get(ctx, accountsKey(config.Namespace, config.Name))
	if err == nil {
		err = unmarshal(value, &known)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return known, 0, fmt.Errorf("read the approved accounts of the ProviderConfig %q: %w", config.Name, err)
	}
	if known.Config != config.UID || known.Types == nil {
		known = approvedAccounts{Config: config.UID, Types: map[string]string{}}
	}
	return known, revision, nil
}

// ApproveAccount stores the digest of an account of a ProviderConfig that a person approved for a Terraform type. It
// writes nothing if the digest is stored already.
func (l *Ledger) ApproveAccount(ctx context.Context, config *v1alpha1.ProviderConfig, typ, digest string) error {
	for {
		known, revision, err := l.accounts(ctx, config)
		if err != nil || known.Types[typ] == digest {
			return err
		}
		known.Types[typ] = digest
		value, err := json.Marshal(known)
		if err == nil {
			_, err = l.kv.Put(ctx, accountsKey(config.Namespace, config.Name), value, revision)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("save an approved account of the ProviderConfig %q: %w", config.Name, err)
		}
	}
}

// ForgetAccounts deletes the approved accounts of a ProviderConfig that no longer exists.
func (l *Ledger) ForgetAccounts(ctx context.Context, namespace, config string) error {
	if err := l.kv.Delete(ctx, accountsKey(namespace, config), AnyRevision); err != nil {
		return fmt.Errorf("forget the approved accounts of the ProviderConfig %q: %w", config, err)
	}
	return nil
}
