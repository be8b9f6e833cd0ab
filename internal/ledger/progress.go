package ledger

import (
	"context"
	"fmt"
	"unique"

	"k8s.io/apimachinery/pkg/types"
)

// DropValues removes the values of a change, its versions and its references, so that all changes of a large plan fit into
// memory. Only SaveProgress can write the change afterwards.
func (c *Change) DropValues() {
	c.withoutValues = true
	c.Before, c.After, c.AfterUnknown, c.BeforeSensitive, c.AfterSensitive = nil, nil, nil, nil, nil
	c.ReplacePaths, c.SecretsChanged, c.Drift, c.Recorded, c.RecordedSensitive = nil, nil, nil, nil, nil
	c.Planned, c.PlannedSensitive, c.PlannedPrivate, c.Refreshed = nil, nil, nil, nil
	c.Validated = ""
	c.Dependencies, c.DependencyVersions, c.Referrers, c.Referred = nil, nil, nil, nil
	c.Preconditions.State, c.Preconditions.Content, c.Preconditions.FromState, c.ConfigVersion = "", "", "", ""
	c.ShareTexts()
}

// ShareTexts replaces the texts that many changes of a plan have by texts that all of them share.
func (c *Change) ShareTexts() {
	c.Mode, c.Type, c.Provider, c.ProviderVersion, c.ProviderConfig = shared(c.Mode), shared(c.Type), shared(c.Provider), shared(c.ProviderVersion), shared(c.ProviderConfig)
	o := &c.Object
	o.APIVersion, o.Kind, o.Namespace, o.Set, o.SetUID = shared(o.APIVersion), shared(o.Kind), shared(o.Namespace), shared(o.Set), shared(o.SetUID)
	c.Action, c.State = shared(c.Action), shared(c.State)
}

// shared returns a text that all equal ones share.
func shared[T ~string](s T) T { return unique.Make(s).Value() }

// SaveProgress writes the part of a change that its apply writes. The rest stays as it is stored.
func (l *Ledger) SaveProgress(ctx context.Context, plan types.UID, c *Change) error {
	progress, err := c.encodeProgress()
	if err != nil {
		return err
	}
	key := changeKey(plan, c.Index)
	revisions, err := l.kv.Batch(ctx, []Write{
		{Op: OpCheck, Key: key, Revision: c.revision},
		{Key: key + progressSuffix, Value: progress, Revision: c.progressRevision},
	})
	if err != nil {
		return fmt.Errorf("save progress of change %d of plan: %w", c.Index, err)
	}
	c.progressRevision = revisions[1]
	return nil
}
