// Package ledger stores the recorded infrastructure: the last known state of each instance, the intent of a change
// before its call, and the changes of each plan. All of it may contain secrets, so nobody may show it unmasked. The
// package imports api/v1alpha1 and knows no provider and no Kubernetes client.
package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
)

// pageSize bounds what one read from the store brings into memory.
const pageSize = 500

// keepAttempts bounds how often Keep tries again when others write, too.
const keepAttempts = 10

// Ledger reads and writes records through a KV.
type Ledger struct{ kv KV }

// New returns the ledger that is kept in kv.
func New(kv KV) *Ledger { return &Ledger{kv: kv} }

// Instance is what is known about the infrastructure behind one object. It outlives the configuration, so it
// names everything that a destroy needs.
type Instance struct {
	// Object is the object that the instance belongs to; Generation in it is the one that was last applied.
	Object v1alpha1.ObjectReference `json:"object"`
	// Mode is managed (also when empty) or data.
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// Provider is the name of the Provider object.
	Provider string `json:"provider"`
	// State is the current instance.
	State
	// Deposed are the old instances that replaces with createBeforeDestroy left behind, oldest first. They are destroyed
	// by the plan that deposed them, or by a later one.
	Deposed []Deposed `json:"deposed,omitempty"`
	// MovedFrom is the UID of the object that the record came from. While that has a record, too, a move ended half-way: both
	// speak of the same infrastructure, and this one counts.
	MovedFrom types.UID `json:"movedFrom,omitempty"`
	// Intent is set while a change is under way. One found after a crash is a change whose outcome was lost.
	Intent *Intent `json:"intent,omitempty"`
	// Plan is the UID of the plan that wrote the record last.
	Plan types.UID `json:"plan,omitempty"`
	// LastOutcome is the step whose outcome the record holds, so that an attempt that comes after it makes nothing twice. Nil when the
	// last step left things as they were.
	LastOutcome *Outcome `json:"made,omitempty"`
	// Version tells dependants whether the attributes, and what of them is secret, are still as they know them; see VersionOf. Save
	// keeps it.
	Version string `json:"version,omitempty"`
	// DependencyVersions are the versions of what the object follows, by address, with which it was last found or made as it should be: what it
	// refers to, its provider, that one's configuration. With others the next plan has to look at it, though nothing of it was
	// written anew.
	DependencyVersions map[string]string `json:"seen,omitempty"`

	// Unplanned is set before a Save when what the provider made is not what dependants were planned with.
	Unplanned bool `json:"-"`

	revision int64
	// read are the attributes as they are stored, and readSensitive which of them are secret.
	read, readSensitive json.RawMessage
}

// VersionOf is the version of attributes that a plan changed, as planned.
func VersionOf(plan types.UID) string {
	const enough = 13 // it need only differ from those of other plans that change the same instance
	return string(plan[:min(len(plan), enough)])
}

// State is one instance as its provider knows it, and what a destroy of it needs.
type State struct {
	// Type is the Terraform type.
	Type string `json:"type"`
	// ProviderConfig is the name of the ProviderConfig; empty means that the provider was used without one.
	ProviderConfig string `json:"providerConfig,omitempty"`
	// ProviderVersion is the version of the provider that wrote the attributes.
	ProviderVersion string `json:"providerVersion,omitempty"`
	// SchemaVersion is the version of the type's schema that the attributes follow.
	SchemaVersion int64 `json:"schemaVersion"`
	// Attributes are the provider's values as JSON; nil when nothing exists (yet, or any more).
	Attributes json.RawMessage `json:"attributes,omitempty"`
	// Sensitive holds the paths of attributes that are secret because secrets went into them, beside those that the schema says are.
	Sensitive json.RawMessage `json:"sensitive,omitempty"`
	// Private is the provider's own, returned to it byte for byte.
	Private []byte `json:"private,omitempty"`
	// Identity is what the provider tells the instance from all others by, as JSON; nil for types without one.
	Identity json.RawMessage `json:"identity,omitempty"`
	// IdentityVersion is the version of the type's identity schema that Identity follows.
	IdentityVersion int64 `json:"identityVersion,omitempty"`
	// Quarantine is the last answer of the provider that could not be taken for a state, byte for byte, for a person to look at.
	Quarantine []byte `json:"quarantine,omitempty"`
	// Tainted is true when the next plan must replace the instance: a create ended in an error with something left behind, or
	// somebody said so.
	Tainted bool `json:"tainted,omitempty"`
	// CreateBeforeDestroy is true when the instance was applied with it, or something that depends on it was.
	CreateBeforeDestroy bool `json:"createBeforeDestroy,omitempty"`
	// Dependencies are the addresses that the configuration referred to when it was applied.
	Dependencies []string `json:"dependencies,omitempty"`
}

// Deposed is an old instance beside the current one.
type Deposed struct {
	// Key tells it from others of the same object: 8 hexadecimal digits.
	Key string `json:"key"`
	State
}

// FindDeposed finds an old instance by its key; nil when there is none.
func (i *Instance) FindDeposed(key string) *Deposed {
	for k := range i.Deposed {
		if i.Deposed[k].Key == key {
			return &i.Deposed[k]
		}
	}
	return nil
}

// Intent is a change that is about to be made.
type Intent struct {
	Plan types.UID `json:"plan"`
	// PlanName is the name of the plan; empty in records of older versions.
	PlanName string `json:"planName,omitempty"`
	Change   int32  `json:"change"`
	// Action is what the call to the provider does: Create, Update or Delete.
	Action v1alpha1.Action `json:"action"`
	// Deposed is the key of the old instance that it is about; empty for the current one.
	Deposed string    `json:"deposed,omitempty"`
	At      time.Time `json:"at"`
}

// Outcome is a step of a plan that a provider has answered.
type Outcome struct {
	Plan   types.UID `json:"plan"`
	Change int32     `json:"change"`
	// Destroy tells the step of a replace that destroys from the one that creates.
	Destroy bool `json:"destroy,omitempty"`
	// Failed is true when a create ended in an error, and what the record holds is what it left.
	Failed bool `json:"broken,omitempty"`
}

// Of says whether it is about a step.
func (m *Outcome) Of(plan types.UID, change int32, destroy bool) bool {
	return m != nil && m.Plan == plan && m.Change == change && m.Destroy == destroy
}

// Of says whether it is about a change.
func (i *Intent) Of(plan types.UID, change int32) bool {
	return i != nil && i.Plan == plan && i.Change == change
}

// Exists says whether there is something, as far as is known.
func (s *State) Exists() bool { return s != nil && len(s.Attributes) > 0 }

// Living says whether there is infrastructure behind the instance or left behind by it.
func (i *Instance) Living() bool { return i != nil && (i.Exists() || len(i.Deposed) > 0) }

// Digest identifies what is known of the infrastructure. It does not change while only the intent does, nor when a provider writes
// the same in another way: null or an empty list, JSON with other spaces, private data of its own.
func (s *State) Digest() string {
	if !s.Exists() {
		return "none"
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %t\n", s.SchemaVersion, s.Tainted)
	h.Write(normal(s.Attributes))
	return hex.EncodeToString(h.Sum(nil))
}

func instanceKey(namespace string, uid types.UID) string {
	return "instances/" + namespace + "/" + string(uid)
}

// Instance reads the record of an object; it returns an empty, unsaved record when there is none.
func (l *Ledger) Instance(ctx context.Context, ref v1alpha1.ObjectReference) (*Instance, error) {
	value, rev, err := l.kv.Get(ctx, instanceKey(ref.Namespace, ref.UID))
	if errors.Is(err, ErrNotFound) {
		return &Instance{Object: ref}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read state of %s %q: %w", ref.Kind, ref.Name, err)
	}
	return decodeInstance(value, rev)
}

func decodeInstance(value []byte, rev int64) (*Instance, error) {
	i := &Instance{revision: rev}
	if err := json.Unmarshal(value, i); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	i.read, i.readSensitive = i.Attributes, i.Sensitive
	return i, nil
}

// Save writes the record. It returns ErrConflict when it was written by somebody else since it was read.
func (l *Ledger) Save(ctx context.Context, i *Instance) error {
	switch version := VersionOf(i.Plan); {
	case i.Unplanned && strings.HasPrefix(i.Version, version+"~"):
		i.Version += "~" // a second attempt may have made something else again
	case i.Unplanned:
		i.Version = version + "~"
	case !bytes.Equal(i.read, i.Attributes) || !bytes.Equal(i.readSensitive, i.Sensitive):
		i.Version = version
	}
	value, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("encode state of %s %q: %w", i.Object.Kind, i.Object.Name, err)
	}
	rev, err := l.kv.Put(ctx, instanceKey(i.Object.Namespace, i.Object.UID), value, i.revision)
	if err != nil {
		return fmt.Errorf("save state of %s %q: %w", i.Object.Kind, i.Object.Name, err)
	}
	i.revision, i.read, i.readSensitive, i.Unplanned = rev, i.Attributes, i.Sensitive, false
	return nil
}

// Keep writes the record whatever is stored by now. It is for what a provider said, which must not be lost.
func (l *Ledger) Keep(ctx context.Context, i *Instance) error {
	for attempt := 1; ; attempt++ {
		stored, err := l.Instance(ctx, i.Object)
		if err != nil {
			return err
		}
		i.revision = stored.revision
		if err := l.Save(ctx, i); !errors.Is(err, ErrConflict) || attempt == keepAttempts {
			return err
		}
	}
}

// Forget removes the record of an instance that no longer exists.
func (l *Ledger) Forget(ctx context.Context, i *Instance) error {
	if i.revision == 0 {
		return nil
	}
	if err := l.kv.Delete(ctx, instanceKey(i.Object.Namespace, i.Object.UID), i.revision); err != nil {
		return fmt.Errorf("forget state of %s %q: %w", i.Object.Kind, i.Object.Name, err)
	}
	i.revision = 0
	return nil
}

// Instances reads every record of a namespace; all namespaces when it is empty.
func (l *Ledger) Instances(ctx context.Context, namespace string) iter.Seq2[*Instance, error] {
	prefix := "instances/"
	if namespace != "" {
		prefix += namespace + "/"
	}
	return func(yield func(*Instance, error) bool) {
		for e, err := range l.scan(ctx, prefix, "") {
			if err != nil {
				yield(nil, fmt.Errorf("list states: %w", err))
				return
			}
			if i, err := decodeInstance(e.Value, e.Revision); !yield(i, err) || err != nil {
				return
			}
		}
	}
}

// Change is one stored change of a plan: what a person may see, and what applying it needs.
type Change struct {
	v1alpha1.PlanChange
	// Preconditions must still hold when the change is applied.
	Preconditions Preconditions `json:"bound"`
	// WaitsFor is the plan that is making another change of the same object, which takes this one out of the plan.
	WaitsFor *v1alpha1.PlanReference `json:"waitsFor,omitempty"`
	// Planned is the value that the provider promised, in MessagePack, unknown values included.
	Planned []byte `json:"planned,omitempty"`
	// PlannedSensitive holds the paths in Planned that are secret because secrets went into them.
	PlannedSensitive json.RawMessage `json:"plannedSensitive,omitempty"`
	// PlannedPrivate belongs to Planned.
	PlannedPrivate []byte `json:"plannedPrivate,omitempty"`
	// Refreshed is the state as it was read while planning, when it differs from what was recorded: by drift, because it is
	// to be imported, or because the provider made it of a resource of another type.
	Refreshed *State `json:"refreshed,omitempty"`
	// Read is true when the provider was asked for what is there while planning.
	Read bool `json:"read,omitempty"`
	// CreatesFirst is true when a replace, if there is to be one, creates before it destroys.
	CreatesFirst bool `json:"createsFirst,omitempty"`
	// LeaveDeposed is true when a replace that creates first has to leave the old instance deposed: something that stands on it takes
	// no part in the plan.
	LeaveDeposed bool `json:"keepsOld,omitempty"`
	// Checks is true when conditions could not be checked while planning, and must be by the apply, also of a NoOp.
	Checks bool `json:"checks,omitempty"`
	// DeposedKey is the key under which a replace that creates first keeps the old instance.
	DeposedKey string `json:"deposedKey,omitempty"`
	// Hashes are the results of bcrypt in the expressions of the object, which each attempt to apply it uses again.
	Hashes map[string]string `json:"hashes,omitempty"`
	// Dependencies are the addresses that the configuration refers to.
	Dependencies []string `json:"dependencies,omitempty"`
	// ConfigVersion tells whether the ProviderConfig still says what it said when the change was planned; empty when it has none, or
	// nobody can tell.
	ConfigVersion string `json:"configVersion,omitempty"`
	// ReadAfter are, of a data source, those of the changes it depends on that have to be made before it can be read: not those that
	// only its ProviderConfig refers to.
	ReadAfter []int32 `json:"awaits,omitempty"`
	// DependencyVersions are the versions of what the configuration refers to that the change is planned with; see Instance.
	DependencyVersions map[string]string `json:"seen,omitempty"`
	// LooksLike is the address of a resource that the plan destroys and whose spec is that of the one to create; empty when there is none.
	LooksLike string `json:"looksLike,omitempty"`
	// Referrers are resources outside of the plan that refer to the one that changes. Once the change is planned, they are those that
	// refer to an attribute that the plan changes.
	Referrers []Referrer `json:"referrers,omitempty"`
	// Referred are digests of the values that the configuration refers to and that the plan does not change, by address.
	Referred map[string]string `json:"referred,omitempty"`
	// Requires are the addresses that the recorded state referred to: destroys run in their reverse order.
	Requires []string `json:"requires,omitempty"`
	// Requested is true when whoever made the plan named the object, or everything; it is false for what is destroyed only because
	// something that it depends on is.
	Requested bool `json:"asked,omitempty"`
	// Prevented is true when lifecycle.preventDestroy forbids the change; the changes that need it are blocked, too.
	Prevented bool `json:"prevented,omitempty"`
	// Held is true when the apply leaves the change out: it is blocked or stale, or needs one that is.
	Held bool `json:"held,omitempty"`

	revision int64
}

// Referrer is a resource that refers to another one.
type Referrer struct {
	Address string `json:"address"`
	// Attributes are those that it refers to; empty means the whole resource.
	Attributes []string `json:"attributes,omitempty"`
}

// Revision is that of the last write of the change. Revisions grow with every write of the ledger.
func (c *Change) Revision() int64 { return c.revision }

// Preconditions must hold from planning until the change is applied.
type Preconditions struct {
	// State is the digest of the recorded state.
	State string `json:"state"`
	// Deleting is true when the object was marked for deletion.
	Deleting bool `json:"deleting,omitempty"`
	// Destroys is true when the plan destroys whatever it looks at: its spec, or the deletion of the namespace, asked for that.
	Destroys bool `json:"destroys,omitempty"`
	// Owner is the object that had what the change imports when it was planned, and that the same plan makes forget it; empty when none had.
	Owner types.UID `json:"owner,omitempty"`
	// From is the object whose record is moved, and FromState the digest of that.
	From      *v1alpha1.ObjectReference `json:"from,omitempty"`
	FromState string                    `json:"fromState,omitempty"`
}

func planPrefix(plan types.UID) string { return "plans/" + string(plan) + "/" }

func changeKey(plan types.UID, index int32) string {
	return fmt.Sprintf("%s%08d", planPrefix(plan), index)
}

// Change reads one change of a plan. It returns ErrNotFound when there is none.
func (l *Ledger) Change(ctx context.Context, plan types.UID, index int32) (*Change, error) {
	value, rev, err := l.kv.Get(ctx, changeKey(plan, index))
	if err != nil {
		return nil, fmt.Errorf("read change %d of plan: %w", index, err)
	}
	c := &Change{revision: rev}
	if err := json.Unmarshal(value, c); err != nil {
		return nil, fmt.Errorf("decode change %d of plan: %w", index, err)
	}
	return c, nil
}

// SaveChange writes a change. A change that was made anew replaces what is stored under its index.
func (l *Ledger) SaveChange(ctx context.Context, plan types.UID, c *Change) error {
	value, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode change %d of plan: %w", c.Index, err)
	}
	key := changeKey(plan, c.Index)
	rev, err := l.kv.Put(ctx, key, value, c.revision)
	if errors.Is(err, ErrConflict) && c.revision == 0 {
		// An earlier attempt of the same activity stored it.
		if _, stored, gerr := l.kv.Get(ctx, key); gerr == nil {
			rev, err = l.kv.Put(ctx, key, value, stored)
		}
	}
	if err != nil {
		return fmt.Errorf("save change %d of plan: %w", c.Index, err)
	}
	c.revision = rev
	return nil
}

// Changes reads the changes of a plan from an index on, in order.
func (l *Ledger) Changes(ctx context.Context, plan types.UID, from int32) iter.Seq2[*Change, error] {
	after := ""
	if from > 0 {
		after = changeKey(plan, from-1)
	}
	return func(yield func(*Change, error) bool) {
		for e, err := range l.scan(ctx, planPrefix(plan), after) {
			if err != nil {
				yield(nil, fmt.Errorf("list changes of plan: %w", err))
				return
			}
			c := &Change{revision: e.Revision}
			if err := json.Unmarshal(e.Value, c); err != nil {
				yield(nil, fmt.Errorf("decode change of plan: %w", err))
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// DropPlan removes the changes of a plan.
func (l *Ledger) DropPlan(ctx context.Context, plan types.UID) error {
	for e, err := range l.scan(ctx, planPrefix(plan), "") {
		if err == nil {
			err = l.kv.Delete(ctx, e.Key, e.Revision)
		}
		if err != nil {
			return fmt.Errorf("remove changes of plan: %w", err)
		}
	}
	return nil
}

// Plans reads the UIDs of the plans that have changes or documents, one read of the store for each of the two. A plan that has both
// comes twice.
func (l *Ledger) Plans(ctx context.Context) iter.Seq2[types.UID, error] {
	return func(yield func(types.UID, error) bool) {
		for _, prefix := range []string{planPrefix(""), documentPrefix("")} {
			prefix = strings.TrimSuffix(prefix, "/")
			for after := ""; ; {
				page, err := l.kv.List(ctx, prefix, after, 1)
				if err != nil {
					yield("", fmt.Errorf("list plans: %w", err))
					return
				}
				if len(page) == 0 {
					break
				}
				uid, _, _ := strings.Cut(strings.TrimPrefix(page[0].Key, prefix), "/")
				if !yield(types.UID(uid), nil) {
					return
				}
				after = prefix + uid + "/\xff" // no key of the plan sorts after it
			}
		}
	}
}

func (l *Ledger) scan(ctx context.Context, prefix, after string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for {
			page, err := l.kv.List(ctx, prefix, after, pageSize)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			after = page[len(page)-1].Key
		}
	}
}
