// Package ledger stores the recorded infrastructure. It holds the last known state of each instance, the intent of a
// change before its provider call, and the changes of each plan. The content may include secrets, so callers must mask
// it before showing it. The package imports api/v1alpha1 and knows no provider and no Kubernetes client.
package ledger

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// pageSize is the number of entries that one read of the store loads into memory.
const pageSize = 500

// Ledger reads and writes records through a KV.
type Ledger struct {
	kv KV
	// Limit is the maximum size of a planned change or a state in bytes; see CheckState. 0 means defaultLimit.
	Limit int
}

// New returns a ledger stored in kv.
func New(kv KV) *Ledger { return &Ledger{kv: kv} }

// Instance is the record of the infrastructure of one object. It outlives the configuration, so it holds everything
// that a destroy needs.
type Instance struct {
	// Object is the instance's object. Its Generation is the last applied one.
	Object v1alpha1.ObjectReference `json:"object"`
	// Mode is managed (or empty) or data.
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// Provider is the name of the Provider object.
	Provider string `json:"provider"`
	// State is the current instance.
	State
	// Deposed lists the old instances that replaces with createBeforeDestroy left, oldest first. The plan that deposed
	// them, or a later one, destroys them.
	Deposed []Deposed `json:"deposed,omitempty"`
	// MovedFrom is the UID of the object whose record moved here. If that object still has a record, the move was
	// interrupted: both records describe the same infrastructure, and this one is valid.
	MovedFrom types.UID `json:"movedFrom,omitempty"`
	// Intent is set during a change. An intent that remains after a crash belongs to a change whose outcome is lost.
	Intent *Intent `json:"intent,omitempty"`
	// StateAddress is the address of the resource in the Terraform state that was pushed, if it is not that of the
	// object.
	StateAddress string `json:"stateAddress,omitempty"`
	// Plan is the UID of the plan that last wrote the record, or the ID of the push of a Terraform state.
	Plan types.UID `json:"plan,omitempty"`
	// LastOutcome identifies the step whose outcome the record holds, so that a retry does not repeat the change. It is
	// nil if the last step changed nothing.
	LastOutcome *Outcome `json:"made,omitempty"`
	Versions
	// DependencyVersions holds the versions of the dependencies with which the instance was last found up to date or
	// applied. The dependencies include the attributes that it refers to, the provider and its configuration. If a
	// version differs, the next plan visits the object.
	DependencyVersions map[string]string `json:"seen,omitempty"`
	// Contributors are the users who wrote what plans found to need no change since the last apply. No apply had it, so
	// they contribute to the next change.
	Contributors []v1alpha1.Contributor `json:"contributors,omitempty"`
	// Inputs identify what a plan last applied the instance with; zero if the last apply failed, or recorded none.
	Inputs Inputs `json:"inputs,omitzero"`
	// Expressions are digests of the expressions that a plan last applied, by their fields; nil if they are unknown, as
	// after a failed apply.
	Expressions map[string]string `json:"expressions,omitzero"`
	// Applied are the arguments of the provider with which a plan last applied the instance.
	Applied AppliedArguments `json:"applied,omitzero"`
	// Writers are the users who caused the plans that changed the attributes last, in the form of
	// contributor.WritersOf. Save maintains them. What refers to the attributes from another namespace, or is copied
	// from them, follows from what these users did.
	Writers []v1alpha1.Contributor `json:"writers,omitempty"`

	// Causes must be set before Save if a plan changed the attributes: the users who caused the plan.
	Causes []v1alpha1.Contributor `json:"-"`
	// Unplanned must be set before Save if the provider's result differs from the one that dependants were planned
	// with.
	Unplanned bool `json:"-"`
	// Renewed must be set before Save if dependants were planned with values that the plan could not know. It lists the
	// attributes; an empty name means the whole instance. They get the version of the plan even if they stay the same,
	// because the dependants have noted that version.
	Renewed []string `json:"-"`

	revision int64
	// read and readSensitive are the stored attributes and sensitive paths.
	read, readSensitive json.RawMessage
}

// State is the recorded state of one instance, with everything that its destroy needs.
type State struct {
	// Type is the Terraform type.
	Type string `json:"type"`
	// ProviderConfig is the name of the ProviderConfig; empty for a provider without one.
	ProviderConfig string `json:"providerConfig,omitempty"`
	// Configuration identifies the arguments that the provider had when it last returned the attributes. It is empty
	// for a provider without arguments.
	Configuration Configuration `json:"configuration,omitzero"`
	// ProviderVersion is the version of the provider that wrote the attributes.
	ProviderVersion string `json:"providerVersion,omitempty"`
	// SchemaVersion is the schema version of the attributes.
	SchemaVersion int64 `json:"schemaVersion"`
	// Attributes are the provider's values as JSON; nil if the instance does not exist (yet, or any more).
	Attributes json.RawMessage `json:"attributes,omitempty"`
	// Sensitive holds the paths of attributes that are secret because a reference made them so. The schema declares
	// further ones.
	Sensitive json.RawMessage `json:"sensitive,omitempty"`
	// Private is the provider's private data, which it gets back unchanged.
	Private []byte `json:"private,omitempty"`
	// Identity is the instance's identity as JSON; nil for types without one.
	Identity json.RawMessage `json:"identity,omitempty"`
	// IdentityVersion is the version of the identity schema of Identity.
	IdentityVersion int64 `json:"identityVersion,omitempty"`
	// Quarantine holds the bytes of the provider's last answer that could not be decoded to a state, for the user.
	Quarantine []byte `json:"quarantine,omitempty"`
	// Tainted is true if the next plan must replace the instance: a create failed halfway, or the user requested it.
	Tainted bool `json:"tainted,omitempty"`
	// Created is true if Hykube created the instance, with the arguments in Configuration. It is false after an import,
	// and once the provider returned the instance with other arguments.
	Created bool `json:"created,omitempty"`
	// NamedBy is the attribute by which the provider names the instance, because its ID does not; see query.NamedBy. It
	// is empty if the ID may name it.
	NamedBy string `json:"namedBy,omitempty"`
	// CreateBeforeDestroy is true if the instance, or one that depends on it, was applied with createBeforeDestroy.
	CreateBeforeDestroy bool `json:"createBeforeDestroy,omitempty"`
	// Dependencies are the addresses in the configuration at the time of the apply.
	Dependencies []string `json:"dependencies,omitempty"`
}

// Configuration identifies the arguments of a provider; see provider.Digest.
type Configuration struct {
	Arguments string `json:"arguments,omitempty"`
	Rotating  string `json:"rotating,omitempty"`
	Ephemeral bool   `json:"ephemeral,omitempty"`
}

// Inputs identify the parts of an object that a plan depends on.
type Inputs struct {
	Spec      string `json:"spec,omitempty"`
	Lifecycle string `json:"lifecycle,omitempty"`
	Labels    string `json:"labels,omitempty"`
}

// InputsOf returns the inputs of an object.
func InputsOf(u *unstructured.Unstructured) Inputs {
	digest := func(v any) string {
		raw, _ := json.Marshal(v) // it was decoded from JSON
		sum := sha256.Sum256(raw)
		return base64.RawStdEncoding.EncodeToString(sum[:12])
	}
	return Inputs{Spec: digest(u.Object["spec"]), Lifecycle: digest(u.Object["lifecycle"]),
		Labels: digest(u.GetLabels())}
}

// Equal returns the parts of an object that are equal to those of the last apply, as contributors name them. The labels
// are equal only with all other parts: a user who labels an object again lets a stack apply what others wrote
// meanwhile.
func (i Inputs) Equal(now Inputs) (parts []string) {
	if i == (Inputs{}) {
		return nil
	}
	if i.Spec == now.Spec {
		parts = append(parts, v1alpha1.WroteSpec)
	}
	if i.Lifecycle == now.Lifecycle {
		parts = append(parts, v1alpha1.WroteLifecycle)
	}
	if i == now {
		parts = append(parts, v1alpha1.WroteLabels)
	}
	return parts
}

// Arguments identify the arguments of a provider with which a change was planned, and so approved.
type Arguments struct {
	Configuration
	// Secrets identifies the values of spec.secretRefs that do not rotate. These are known even if other arguments are
	// not.
	Secrets string `json:"secrets,omitempty"`
}

// Difference compares the arguments of a provider with the approved ones.
type Difference int

const (
	// SameArguments: all arguments are equal.
	SameArguments Difference = iota
	// RotatedArguments: only arguments that rotate or are ephemeral differ, or may differ. They may lead to another
	// account.
	RotatedArguments
	// OtherArguments: other arguments differ.
	OtherArguments
)

// Compare compares the arguments of now with the approved ones. Arguments that planning did not know are values of the
// plan itself, and of the ProviderConfig, whose version the plan binds; so only the known Secrets are compared.
func (a Arguments) Compare(now Arguments) Difference {
	switch {
	case a.Secrets != now.Secrets, a.Arguments != "" && a.Arguments != now.Arguments:
		return OtherArguments
	case a.Rotating != now.Rotating, a.Ephemeral, now.Ephemeral:
		return RotatedArguments
	}
	return SameArguments
}

// Same reports whether both have known arguments that are surely equal.
func (c Configuration) Same(other Configuration) bool {
	return c.Arguments != "" && !c.Ephemeral && c == other
}

// SetConfiguration notes that the provider returned the state with arguments. What is known of the account that the
// earlier arguments reach says nothing about another one.
func (s *State) SetConfiguration(c Configuration) {
	if !s.Configuration.Same(c) {
		s.Created, s.NamedBy = false, ""
	}
	s.Configuration = c
}

// Deposed is a deposed instance of an object.
type Deposed struct {
	// Key is unique among the object's deposed instances: 8 hexadecimal digits.
	Key string `json:"key"`
	State
}

// FindDeposed returns a deposed instance by its key, or nil.
func (i *Instance) FindDeposed(key string) *Deposed {
	for k := range i.Deposed {
		if i.Deposed[k].Key == key {
			return &i.Deposed[k]
		}
	}
	return nil
}

// Intent records a change that is about to begin.
type Intent struct {
	Plan types.UID `json:"plan"`
	// PlanName is the name of the plan.
	PlanName string `json:"planName"`
	Change   int32  `json:"change"`
	// Action is the action of the provider call: Create, Update or Delete.
	Action v1alpha1.Action `json:"action"`
	// Deposed is the key of the deposed instance that it concerns; empty for the current instance.
	Deposed string    `json:"deposed,omitempty"`
	At      time.Time `json:"at"`
	// Process identifies the process that makes the call; see Processes. It is empty after the process has ended the
	// call without an outcome.
	Process string `json:"process,omitempty"`
}

// Outcome identifies a step of a plan that has ended.
type Outcome struct {
	Plan   types.UID `json:"plan"`
	Change int32     `json:"change"`
	// Destroy is true for the destroy step of a replace and false for its create step.
	Destroy bool `json:"destroy,omitempty"`
	// Failed is true if a create failed and the record holds the remainder.
	Failed bool `json:"broken,omitempty"`
}

// Of reports whether the outcome is that of a step.
func (m *Outcome) Of(plan types.UID, change int32, destroy bool) bool {
	return m != nil && m.Plan == plan && m.Change == change && m.Destroy == destroy
}

// Of reports whether the intent is that of a change.
func (i *Intent) Of(plan types.UID, change int32) bool {
	return i != nil && i.Plan == plan && i.Change == change
}

// Exists reports whether the instance exists, as far as is known.
func (s *State) Exists() bool { return s != nil && len(s.Attributes) > 0 }

// Living reports whether the current instance or a deposed one exists.
func (i *Instance) Living() bool { return i != nil && (i.Exists() || len(i.Deposed) > 0) }

// Revision returns the revision of the record's last write, or 0 for a record that was never saved.
func (i *Instance) Revision() int64 { return i.revision }

// Digest returns a hash of the recorded state. It does not depend on the intent, on private data, or on the form of
// equal values: null or an empty list, whitespace in JSON.
func (s *State) Digest() string {
	if !s.Exists() {
		return "none"
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %t\n", s.SchemaVersion, s.Tainted)
	h.Write(normalize(s.Attributes))
	return hex.EncodeToString(h.Sum(nil))
}

// Naming returns the part of a state that NamedBy is about, without other attributes.
func (s *State) Naming() *State {
	out := &State{Type: s.Type, Configuration: s.Configuration, NamedBy: s.NamedBy}
	if s.NamedBy != "" {
		var all map[string]json.RawMessage
		if json.Unmarshal(s.Attributes, &all) == nil {
			out.Attributes, _ = json.Marshal(map[string]json.RawMessage{s.NamedBy: all[s.NamedBy]})
		}
	}
	return out
}

// SameValues reports whether two states have equal attributes; see Digest for the form of equal values.
func (s *State) SameValues(other *State) bool {
	return bytes.Equal(normalize(s.Attributes), normalize(other.Attributes))
}

func instanceKey(namespace string, uid types.UID) string {
	return "instances/" + namespace + "/" + string(uid)
}

// Instance returns the record of an object, or an empty, unsaved record if there is none.
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
	if err := unmarshal(value, i); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	i.read, i.readSensitive = i.Attributes, i.Sensitive
	return i, nil
}

// Save writes the record. It returns ErrConflict if another writer changed the record since it was read.
func (l *Ledger) Save(ctx context.Context, i *Instance) error {
	value, err := i.encode()
	if err != nil {
		return err
	}
	rev, err := l.kv.Put(ctx, instanceKey(i.Object.Namespace, i.Object.UID), value, i.revision)
	if err != nil {
		return i.notSaved(err)
	}
	i.written(rev)
	return nil
}

// SaveBoth writes a record and a change of a plan in one transaction. It returns ErrConflict, as Save does, for the
// record alone: a change that another writer has changed is an error of its own.
func (l *Ledger) SaveBoth(ctx context.Context, i *Instance, plan types.UID, c *Change) error {
	err := l.saveTogether(ctx, i, nil, plan, c)
	if errors.Is(err, ErrConflict) {
		stored, gerr := l.Change(ctx, plan, c.Index)
		if gerr != nil || stored.revision != c.revision || stored.progressRevision != c.progressRevision {
			return errors.Join(fmt.Errorf("save change %d of plan: another writer changed it meanwhile", c.Index), gerr)
		}
	}
	return err
}

// SaveOutcome writes a record, the status of the instance and a change of a plan in one transaction. It returns
// ErrConflict, and writes nothing, if another writer changed any of them since it was read.
func (l *Ledger) SaveOutcome(ctx context.Context, i *Instance, s Status, plan types.UID, c *Change) error {
	return l.saveTogether(ctx, i, []Write{{Key: s.key(), Value: s.Value, Revision: s.Revision}}, plan, c)
}

// saveTogether writes a record, other rows and a change of a plan in one transaction.
func (l *Ledger) saveTogether(ctx context.Context, i *Instance, others []Write, plan types.UID, c *Change) error {
	value, err := i.encode()
	if err != nil {
		return err
	}
	encoded, err := encodeChange(c)
	if err != nil {
		return err
	}
	writes := append([]Write{{Key: instanceKey(i.Object.Namespace, i.Object.UID), Value: value, Revision: i.revision}},
		others...)
	revisions, err := l.kv.Batch(ctx, append(writes, c.writes(plan, encoded)...))
	if err != nil {
		return i.notSaved(err)
	}
	i.written(revisions[0])
	c.written(revisions[len(writes):], encoded)
	return nil
}

// encode returns the record as it is stored, with the versions of what changed.
func (i *Instance) encode() ([]byte, error) {
	i.setVersions()
	i.setWriters()
	value, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encode state of %s %q: %w", i.Object.Kind, i.Object.Name, err)
	}
	return value, nil
}

// written notes that the record was written at a revision.
func (i *Instance) written(revision int64) {
	i.revision, i.read, i.readSensitive, i.Unplanned, i.Renewed, i.Causes = revision, i.Attributes, i.Sensitive, false,
		nil, nil
}

func (i *Instance) notSaved(err error) error {
	return fmt.Errorf("save state of %s %q: %w", i.Object.Kind, i.Object.Name, err)
}

// HasSpace returns an error if the outcome of a change might not fit on the store's disk. Callers ask before they write
// an intent, because an intent without an outcome means that a create may be lost.
func (l *Ledger) HasSpace() error { return l.kv.HasSpace() }

// Keep writes the record and overwrites concurrent changes. Callers use it for a provider's answer, which must not be
// lost.
func (l *Ledger) Keep(ctx context.Context, i *Instance) error {
	i.revision = AnyRevision
	return l.Save(ctx, i)
}

// Forget deletes the record of an instance that no longer exists.
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

// Instances returns all records of a namespace, or of all namespaces if namespace is empty.
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

// Origin names an object with secrets. Its fields are those of lang.Address; the namespace is always set.
type Origin struct {
	Namespace string        `json:"namespace"`
	Module    string        `json:"module,omitempty"`
	Mode      v1alpha1.Mode `json:"mode,omitempty"`
	Type      string        `json:"type"`
	Name      string        `json:"name"`
}

// FinalPlan completes Planned and PlannedPrivate of a change that the apply does not plan again.
type FinalPlan struct {
	// Configuration identifies the arguments with which the provider planned. A second plan is needed with others.
	Configuration Configuration `json:"configuration"`
	// Identity is the planned identity in MessagePack, including unknown values; nil if there is none.
	Identity []byte `json:"identity,omitempty"`
}

// Change is one stored change of a plan: the public part, and the data for its apply.
type Change struct {
	v1alpha1.PlanChange
	// Preconditions must still hold when the change is applied.
	Preconditions Preconditions `json:"bound"`
	// Basis says what planning knew of the record, and of the ResourceSet of an instance, when it selected the change.
	// It is zero if planning did not use the index.
	Basis Basis `json:"basis,omitzero"`
	// WaitsFor is the plan that is currently changing the same object, because of which this plan leaves the change
	// out.
	WaitsFor *v1alpha1.PlanReference `json:"waitsFor,omitempty"`
	// Planned is the planned value in MessagePack, including unknown values.
	Planned []byte `json:"planned,omitempty"`
	// PlannedSensitive holds the paths in Planned that are secret because a reference made them so.
	PlannedSensitive json.RawMessage `json:"plannedSensitive,omitempty"`
	// ProviderWriters wrote the arguments of the provider, if planning did not know the whole configuration. The values
	// that it did not know may have secrets, for which a step asks for the rights of these users, too.
	ProviderWriters []v1alpha1.Contributor `json:"providerWriters,omitempty"`
	// Origins are the objects whose secrets the change gives to the provider. Discloses are those of them whose secrets
	// the provider does not have yet.
	Origins   []Origin `json:"origins,omitempty"`
	Discloses []Origin `json:"discloses,omitempty"`
	// PlannedPrivate is the provider's private data for Planned.
	PlannedPrivate []byte `json:"plannedPrivate,omitempty"`
	// Validated is a digest of the configuration that the provider validated; see instance.Planned.
	Validated string `json:"validated,omitempty"`
	// Final is set if the apply need not plan the change again; see instance.Planned.
	Final *FinalPlan `json:"final,omitempty"`
	// Refreshed is the state that planning read, if it differs from the recorded one: because of drift, an import, or a
	// move from another type.
	Refreshed *State `json:"refreshed,omitempty"`
	// Read is true if planning made the provider read the state.
	Read bool `json:"read,omitempty"`
	// Unsettled are the attributes that differed from the recorded ones when planning read the resource. They may
	// change by themselves, so a destroy does not compare them again.
	Unsettled []string `json:"unsettled,omitempty"`
	// Reconfigured is true if the provider has other arguments than those with which it returned the recorded state;
	// see scope.Lease.
	Reconfigured bool `json:"reconfigured,omitempty"`
	// AccountChanged is true if planning read the resource with other arguments than the recorded ones, and found it
	// changed or did not find it. It may be that of another account.
	AccountChanged bool `json:"accountChanged,omitempty"`
	// Configuration identifies the arguments with which planning read the resource. It is empty if planning did not
	// read it, or if another object manages a resource with the same ID; see State.
	Configuration Configuration `json:"configuration,omitzero"`
	// CreatesFirst is true if a replace of the object creates before it destroys.
	CreatesFirst bool `json:"createsFirst,omitempty"`
	// LeaveDeposed is true if a replace that creates first must leave the old instance deposed, because one of its
	// dependants is not in the plan.
	LeaveDeposed bool `json:"keepsOld,omitempty"`
	// Checks is true if planning could not evaluate a condition, so that the apply must, even for a NoOp.
	Checks bool `json:"checks,omitempty"`
	// DeposedKey is the key of the old instance of a replace that creates first.
	DeposedKey string `json:"deposedKey,omitempty"`
	// Unevaluated is true if the apply failed to evaluate an expression, or a condition was false. The Diagnostics may
	// then quote values of other objects.
	Unevaluated bool `json:"unevaluated,omitempty"`
	// Hashes are the results of bcrypt() in the object's expressions. Each attempt of the apply reuses them.
	Hashes map[string]string `json:"hashes,omitempty"`
	// Dependencies are the addresses in the configuration.
	Dependencies []string `json:"dependencies,omitempty"`
	// ConfigVersion is the version of the ProviderConfig during planning, without ephemeral values. It is empty if
	// there is none, or if its version is unknown.
	ConfigVersion string `json:"configVersion,omitempty"`
	// Inputs are those of the object at the survey. TakenBack are users with what they wrote and what is now as it was
	// last applied, so that they do not contribute.
	Inputs    Inputs                 `json:"inputs,omitzero"`
	TakenBack []v1alpha1.Contributor `json:"takenBack,omitempty"`
	// Account has the arguments of the provider, unless a plan applied the resource with them. It is nil without a
	// ProviderConfig, too.
	Account *Account `json:"account,omitempty"`
	// ReadAfter lists, for a data source, the changes that must be applied before it can be read. It omits dependencies
	// of its ProviderConfig alone.
	ReadAfter []int32 `json:"awaits,omitempty"`
	// DependencyVersions holds the versions of the dependencies during planning; see Instance.
	DependencyVersions map[string]string `json:"seen,omitempty"`
	// LooksLike is the address of a resource that the plan destroys and whose spec equals the spec of the created one.
	// It is empty if no such resource exists.
	LooksLike string `json:"looksLike,omitempty"`
	// FailedCreate is the object's status.failedCreate if the plan creates a resource although an earlier create may
	// have made one.
	FailedCreate string `json:"failedCreate,omitempty"`
	// Referrers are resources outside of the plan that refer to the changed resource. After planning, they are only
	// those that refer to an attribute that the plan changes.
	Referrers []Referrer `json:"referrers,omitempty"`
	// Referred holds digests, by address, of the referenced values that the plan does not change.
	Referred map[string]string `json:"referred,omitempty"`
	// Requires are the addresses that the recorded state referred to. Destroys run in their reverse order.
	Requires []string `json:"requires,omitempty"`
	// Requested is true if the plan's creator named the object or everything. It is false for an object that is
	// destroyed only because of its dependency.
	Requested bool `json:"asked,omitempty"`
	// Prevented is true if lifecycle.preventDestroy forbids the change. Changes that depend on it are blocked, too.
	Prevented bool `json:"prevented,omitempty"`
	// OtherOwner is true if another object may manage the same infrastructure, or if the change needs a right to
	// another object because of its ID. Then the plan never approves itself.
	OtherOwner bool `json:"otherOwner,omitempty"`
	// Held is true if the apply leaves the change out: it is blocked or stale, or depends on such a change.
	Held bool `json:"held,omitempty"`

	// Answers are what the providers of the change answered, or what they answered for another plan; see LoadAnswers.
	// SaveChange and SavePlanned store them with the change, in a row of their own.
	Answers map[string][]byte `json:"-"`

	// revision is the revision of the change's row, and progressRevision that of its progress row; 0 without such a
	// row.
	revision, progressRevision int64
	// planned is a hash of the planned part in the row.
	planned uint64
}

// Referrer is a resource that refers to the changed resource.
type Referrer struct {
	Address string `json:"address"`
	// Attributes are the attributes that it refers to. Empty means the whole resource.
	Attributes []string `json:"attributes,omitempty"`
}

// Revision returns the revision of the change's last write. Each write to the ledger increases the revision.
func (c *Change) Revision() int64 { return max(c.revision, c.progressRevision) }

// Preconditions must hold from planning until the apply of the change.
type Preconditions struct {
	// State is the digest of the recorded state.
	State string `json:"state"`
	// Content is the digest of the content of an instance of a ResourceSet; empty for other objects.
	Content string `json:"content,omitempty"`
	// Deleting is true if the object was marked for deletion.
	Deleting bool `json:"deleting,omitempty"`
	// Destroys is true if the plan destroys everything that it visits, because of its spec or the deletion of the
	// namespace.
	Destroys bool `json:"destroys,omitempty"`
	// Owner is the UID of the object that managed the imported resource during planning, and that forgets it in the
	// same plan. It is empty if no object managed the resource.
	Owner types.UID `json:"owner,omitempty"`
	// From is the object whose record moves, and FromState is the digest of that record.
	From      *v1alpha1.ObjectReference `json:"from,omitempty"`
	FromState string                    `json:"fromState,omitempty"`
	// Arguments identify the arguments of the providers of the change, by the names of their ProviderConfigs. It has no
	// ProviderConfig that the change does not use, as for a forget that lifecycle.destroy wants.
	Arguments map[string]Arguments `json:"arguments,omitempty"`
}

// Basis says up to which write planning knew the records.
type Basis struct {
	// Records is the revision of the last known write of a record.
	Records int64 `json:"records,omitempty"`
	// Set identifies the content of the ResourceSet of an instance; 0 for other objects.
	Set int64 `json:"set,omitempty"`
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
