package changes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/bug"
	"github.com/hykube/hykube/internal/ledger"

	jsonv1 "github.com/go-json-experiment/json/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file stores the briefs of a published plan in pages, so that the approval and the apply read them without the
// changes.

// briefsPerPage is the number of briefs of a page.
const briefsPerPage = 500

// Inputs are the facts with which a change was planned, apart from its own object. Many changes of a plan share them.
type Inputs struct {
	// Kind has the fields of the object's reference that name no single object.
	Kind                                           v1alpha1.ObjectReference `json:"kind"`
	Action                                         v1alpha1.Action          `json:"action"`
	ProviderConfig, ConfigVersion, ProviderVersion string                   `json:",omitempty"`
	Deleting                                       bool                     `json:",omitempty"`
	// Recorded is true if there was recorded infrastructure.
	Recorded bool         `json:",omitempty"`
	Basis    ledger.Basis `json:",omitzero"`
	// Referred is that of the change as JSON; empty without referenced values. Arguments are those of its
	// preconditions.
	Referred  string `json:",omitempty"`
	Arguments string `json:",omitempty"`
	// Comparable is true if the index knows everything else that the preconditions of the change depend on.
	Comparable bool `json:",omitempty"`
}

// inputsOf returns the inputs of a change.
func inputsOf(c *ledger.Change) Inputs {
	in := Inputs{Kind: c.Object, Action: c.Action, ProviderConfig: c.ProviderConfig, ConfigVersion: c.ConfigVersion,
		ProviderVersion: c.ProviderVersion,
		Deleting:        c.Preconditions.Deleting, Recorded: c.Preconditions.State != noState, Basis: c.Basis}
	in.Kind.Name, in.Kind.UID, in.Kind.Generation = "", "", 0
	if len(c.Referred) > 0 {
		text, _ := json.Marshal(c.Referred) // a map of strings can always be encoded
		in.Referred = string(text)
	}
	if len(c.Preconditions.Arguments) > 0 {
		text, _ := json.Marshal(c.Preconditions.Arguments) // as above
		in.Arguments = string(text)
	}
	switch c.Action {
	case v1alpha1.ActionCreate, v1alpha1.ActionUpdate, v1alpha1.ActionDelete:
		in.Comparable = c.Mode == "" && c.Deposed == "" && c.Importing == nil && c.Preconditions.From == nil &&
			c.Preconditions.Owner == "" && !c.Reconfigured && c.Basis != ledger.Basis{}
	}
	return in
}

// noState is the digest of no recorded state.
var noState = (&ledger.State{}).Digest()

// sharedFacts are the facts that many briefs of a page share.
type sharedFacts struct {
	Inputs              `json:"inputs"`
	Mode                v1alpha1.Mode        `json:",omitempty"`
	State               v1alpha1.ChangeState `json:",omitempty"`
	Blocked             string               `json:",omitempty"`
	NoSteps             bool                 `json:",omitempty"`
	Rolled              bool                 `json:",omitempty"`
	Gone                bool                 `json:",omitempty"`
	Imports             bool                 `json:",omitempty"`
	Prevented           bool                 `json:",omitempty"`
	Requested           bool                 `json:",omitempty"`
	CreatesFirst        bool                 `json:",omitempty"`
	Forgets             bool                 `json:",omitempty"`
	Records             bool                 `json:",omitempty"`
	CreateBeforeDestroy bool                 `json:",omitempty"`
	Held                bool                 `json:",omitempty"`
	Diagnosed           bool                 `json:",omitempty"`
	Refreshed           bool                 `json:",omitempty"`
	Message             string               `json:",omitempty"`
	OtherOwner          bool                 `json:",omitempty"`
	// Contributors are those of the change as JSON; empty without any.
	Contributors string `json:",omitempty"`
}

// ownFacts are the facts of one brief.
type ownFacts struct {
	// Shared is the index of the other facts in the page.
	Shared     int                       `json:"s,omitempty"`
	Address    string                    `json:"a"`
	Name       string                    `json:"n"`
	UID        types.UID                 `json:"u"`
	Generation int64                     `json:"g,omitempty"`
	Hash       uint64                    `json:"h"`
	Previous   string                    `json:"previous,omitempty"`
	Deposed    string                    `json:"deposed,omitempty"`
	DeposedKey string                    `json:"deposedKey,omitempty"`
	From       *v1alpha1.ObjectReference `json:"from,omitempty"`
	DependsOn  []int32                   `json:"d,omitempty"`
	Requires   []string                  `json:"r,omitempty"`
	Discloses  []ledger.Origin           `json:"discloses,omitempty"`
}

// briefPage is a page as it is stored.
type briefPage struct {
	// First is the index of the first change.
	First  int32         `json:"first"`
	Shared []sharedFacts `json:"shared"`
	Own    []ownFacts    `json:"own"`
}

// BriefWriter stores the briefs of a plan.
type BriefWriter struct {
	ledger *ledger.Ledger
	plan   types.UID
	pages  int
	page   briefPage
	known  map[sharedFacts]int
}

// NewBriefWriter returns a writer for the briefs of a plan.
func NewBriefWriter(l *ledger.Ledger, plan types.UID) *BriefWriter {
	return &BriefWriter{ledger: l, plan: plan, known: map[sharedFacts]int{}}
}

// Add adds the brief of the next change, of which an approval covers a text; see Covered.
func (w *BriefWriter) Add(ctx context.Context, c *ledger.Change, covered []byte) error {
	if len(w.page.Own) == briefsPerPage {
		if err := w.write(ctx, nil); err != nil {
			return err
		}
		w.page = briefPage{First: c.Index}
		clear(w.known)
	}
	b := BriefOf(c)
	contributors, err := encodeContributors(b.Contributors)
	if err != nil {
		return err
	}
	facts := sharedFacts{
		Inputs: inputsOf(c), Mode: b.Mode, State: b.State, Blocked: b.Blocked, NoSteps: b.NoSteps, Rolled: b.Rolled,
		Gone: b.Gone, Imports: b.Imports,
		Prevented: b.Prevented,
		Requested: b.Requested, CreatesFirst: b.CreatesFirst, Forgets: b.Forgets, Records: b.Records,
		CreateBeforeDestroy: c.CreateBeforeDestroy,
		Held:                c.Held, Diagnosed: len(c.Diagnostics) > 0, Refreshed: readUnchanged(c), Message: c.Message,
		OtherOwner: b.OtherOwner, Contributors: contributors,
	}
	shared, ok := w.known[facts]
	if !ok {
		shared = len(w.page.Shared)
		w.known[facts], w.page.Shared = shared, append(w.page.Shared, facts)
	}
	w.page.Own = append(w.page.Own, ownFacts{
		Shared: shared, Address: b.Address, Name: b.Object.Name, UID: b.Object.UID, Generation: b.Object.Generation,
		Hash: HashOf(covered), Previous: b.PreviousAddress,
		Deposed: b.Deposed, DeposedKey: c.DeposedKey, From: b.From, DependsOn: b.DependsOn, Requires: b.Requires,
		Discloses: b.Discloses,
	})
	return nil
}

// encodeContributors returns contributors as JSON; "" without any.
func encodeContributors(list []v1alpha1.Contributor) (string, error) {
	if len(list) == 0 {
		return "", nil
	}
	text, err := json.Marshal(list)
	return string(text), err
}

// decodeContributors is the inverse of encodeContributors.
func decodeContributors(text string) (list []v1alpha1.Contributor, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("decode contributors of changes: %w", err)
	}
	return list, nil
}

// Finish stores the last page, and the digest of the plan.
func (w *BriefWriter) Finish(ctx context.Context, digest string) error {
	return w.write(ctx, &ledger.BriefsEnd{Digest: digest, Changes: int(w.page.First) + len(w.page.Own)})
}

func (w *BriefWriter) write(ctx context.Context, end *ledger.BriefsEnd) error {
	w.pages++
	return w.ledger.SaveBriefs(ctx, w.plan, w.pages-1, &w.page, end)
}

// loadBriefs loads a plan from its briefs and from the progress of its changes. It returns false if the plan has no
// briefs.
func (w *Stored) loadBriefs(ctx context.Context, l *ledger.Ledger, uid types.UID) (bool, error) {
	known := map[Inputs]*Inputs{}
	begin := func(end ledger.BriefsEnd) {
		w.Digest, w.Changes = end.Digest, make([]StoredChange, 0, end.Changes)
	}
	found, err := l.Briefs(ctx, uid, begin, func(texts [][]byte) error {
		pages := make([]briefPage, len(texts))
		group := bug.NewGroup()
		for i, text := range texts {
			group.Go(func() error { return jsonv1.Unmarshal(text, &pages[i]) })
		}
		err := group.Wait()
		for i := 0; i < len(pages) && err == nil; i++ {
			err = w.addPage(&pages[i], known)
		}
		return err
	})
	if err != nil || !found {
		return false, err
	}
	for p, err := range l.Progress(ctx, uid) {
		if err != nil {
			return false, err
		}
		if int(p.Index) >= len(w.Changes) || p.Index < 0 {
			return false, fmt.Errorf("read progress of plan: it has no change %d", p.Index)
		}
		w.Changes[p.Index].setProgress(p)
	}
	pending := func(i int32) bool { return w.Changes[i].State == v1alpha1.ChangePending }
	w.refreshed = slices.DeleteFunc(w.refreshed, func(i int32) bool { return !pending(i) })
	w.Unchanged = slices.ContainsFunc(w.Changes,
		func(c StoredChange) bool { return c.NoSteps && c.State == v1alpha1.ChangePending })
	return true, nil
}

// addPage adds the changes of a page. known has the inputs of all pages, so that equal ones are stored once.
func (w *Stored) addPage(p *briefPage, known map[Inputs]*Inputs) error {
	if int(p.First) != len(w.Changes) {
		return errors.New("read briefs of plan: a page is missing")
	}
	inputs, contributors := make([]*Inputs, len(p.Shared)), make([][]v1alpha1.Contributor, len(p.Shared))
	for i := range p.Shared {
		var err error
		if contributors[i], err = decodeContributors(p.Shared[i].Contributors); err != nil {
			return err
		}
		in := &p.Shared[i].Inputs
		if known[*in] == nil {
			known[*in] = in
		}
		inputs[i] = known[*in]
	}
	for i := range p.Own {
		own := &p.Own[i]
		f, in := &p.Shared[own.Shared], inputs[own.Shared]
		object := in.Kind
		object.Name, object.UID, object.Generation = own.Name, own.UID, own.Generation
		index := int32(len(w.Changes))
		if f.Refreshed {
			w.refreshed = append(w.refreshed, index)
		}
		w.Changes = append(w.Changes, StoredChange{
			Brief: Brief{
				Address: own.Address, PreviousAddress: own.Previous, Deposed: own.Deposed, Mode: f.Mode, Object: object,
				ProviderConfig: in.ProviderConfig,
				Action:         in.Action, State: f.State, Deleting: in.Deleting, From: own.From, NoSteps: f.NoSteps,
				Rolled: f.Rolled, Gone: f.Gone, Imports: f.Imports,
				Prevented: f.Prevented, Blocked: f.Blocked, DependsOn: own.DependsOn, Requires: own.Requires,
				Discloses: own.Discloses,
				Requested: f.Requested, CreatesFirst: f.CreatesFirst, Forgets: f.Forgets, Records: f.Records,
				Contributors: contributors[own.Shared], OtherOwner: f.OtherOwner,
			},
			Index: index, CreateBeforeDestroy: f.CreateBeforeDestroy, DeposedKey: own.DeposedKey, Held: f.Held,
			Diagnosed: f.Diagnosed, Message: f.Message, Hash: own.Hash, inputs: in,
		})
	}
	return nil
}

// setProgress sets what an apply has written.
func (c *StoredChange) setProgress(p ledger.ChangeProgress) {
	c.State, c.HalfDone, c.Left, c.Held, c.StaleReason, c.Message, c.Diagnosed = p.State, p.HalfDone, p.Left, p.Held,
		p.StaleReason, p.Message, p.Diagnosed
	c.Begun = p.StartedAt != nil
	if p.FinishedAt != nil {
		c.FinishedAt = p.FinishedAt.Time
	}
}
