package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/hykube/hykube/api/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// This file stores with what a plan applied an instance of a set that was destroyed since. A set without instances
// would otherwise not know what a plan has applied of its template.

// appliedKey returns the key for the set with an instance, or for the block of a Module. With another type or name in
// its template, a set has another key.
func appliedKey(of v1alpha1.ObjectReference) string {
	template, _, _ := v1alpha1.ParseInstanceName(of.Name)
	sum := sha256.Sum256([]byte(of.APIVersion + "/" + of.Kind + "/" + template))
	return appliedPrefix(of.Namespace, of.SetUID) + hex.EncodeToString(sum[:16])
}

func appliedPrefix(namespace string, set types.UID) string {
	return "applied/" + namespace + "/" + string(set) + "/"
}

// AppliedVersions returns the versions of the dependencies that KeepApplied stored last for an instance of the same
// set; nil if there are none.
func (l *Ledger) AppliedVersions(ctx context.Context, of v1alpha1.ObjectReference) (map[string]string, error) {
	versions, _, err := l.appliedVersions(ctx, of)
	return versions, err
}

func (l *Ledger) appliedVersions(ctx context.Context,
	of v1alpha1.ObjectReference) (versions map[string]string, revision int64, err error) {
	value, revision, err := l.kv.Get(ctx, appliedKey(of))
	if err == nil {
		err = unmarshal(value, &versions)
	}
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, 0, fmt.Errorf("read what was applied to the instances of %q: %w", of.Set, err)
	}
	return versions, revision, nil
}

// AppliedLast reports whether a plan applied the last change of an instance, so that its DependencyVersions were
// applied with it.
func (i *Instance) AppliedLast() bool {
	return i.Object.Generation != 0 && len(i.Contributors) == 0
}

// KeepApplied stores the versions of the dependencies of an instance of a set that is about to be forgotten. It stores
// nothing for other objects, nor for an instance whose last change no plan applied.
func (l *Ledger) KeepApplied(ctx context.Context, i *Instance) error {
	if i.Object.Set == "" || !i.AppliedLast() {
		return nil
	}
	for {
		known, revision, err := l.appliedVersions(ctx, i.Object)
		if err != nil || revision > 0 && maps.Equal(known, i.DependencyVersions) {
			return err
		}
		value, err := json.Marshal(i.DependencyVersions)
		if err == nil {
			_, err = l.kv.Put(ctx, appliedKey(i.Object), value, revision)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return fmt.Errorf("save what was applied to the instances of %q: %w", i.Object.Set, err)
		}
	}
}
