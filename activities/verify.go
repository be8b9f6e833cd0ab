package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// This file looks, before anything of a plan is applied, whether its changes are still those that were planned.

// Verification lists the changes that an approval would apply now, and those that it would not.
type Verification struct {
	// Blocked are the changes that lifecycle.preventDestroy forbids, and Stale those that moved after the plan was made.
	Blocked, Stale []Obstacle
	// Needing is the number of other changes that need one of those two, and Left that of the changes that can be made without them.
	Needing, Left int
}

// Obstacle is a change that cannot be made.
type Obstacle struct {
	Address string
	Why     string
}

// Verify looks at the changes of a plan that waits for its approval.
func (a *Activities) Verify(ctx context.Context, po *v1alpha1.Plan) (Verification, error) {
	w, err := a.loadWork(ctx, po.UID)
	if err != nil {
		return Verification{}, err
	}
	moved, err := a.moved(ctx, po, w)
	if err != nil {
		return Verification{}, err
	}
	var found Verification
	held := plan.Held(w.planned, w.obstacles(moved))
	for i, c := range w.changes {
		if c.Prevented {
			found.Blocked = append(found.Blocked, Obstacle{c.Address, c.Blocked})
		}
		if moved[i] != "" {
			found.Stale = append(found.Stale, Obstacle{c.Address, moved[i]})
		}
		switch {
		case changesNothing(c), c.Prevented, moved[i] != "":
		case held[i].Reason == plan.NotHeld:
			found.Left++
		default:
			found.Needing++
		}
	}
	return found, nil
}

// obstacles are the changes that cannot be made: those that are blocked, and those that moved.
func (w *work) obstacles(moved []string) []int {
	var stopped []int
	for i, c := range w.changes {
		if c.Prevented || moved[i] != "" {
			stopped = append(stopped, i)
		}
	}
	return stopped
}

// moved says for each change of a plan, none of which was begun, why it is not the one that was planned any more; empty when it is.
func (a *Activities) moved(ctx context.Context, po *v1alpha1.Plan, w *work) ([]string, error) {
	refreshed := map[lang.Address]cty.Value{}
	for _, c := range w.changes {
		addr, value, ok, err := a.refreshed(ctx, c)
		if err != nil {
			return nil, err
		}
		if ok {
			refreshed[addr] = value
		}
	}
	v := &verifier{Activities: a, plan: po, configs: a.providerConfigs(ctx, po), functions: a.signatures()}
	v.scope = a.newScope(po, po.Namespace, func(addr lang.Address) (cty.Value, bool) {
		value, ok := refreshed[addr]
		return value, ok
	})
	why := make([]string, len(w.changes))
	tracker := graph.NewTracker(len(w.changes), func(int) []int { return nil })
	err := run(ctx, tracker, width, func(ctx context.Context, i int) (bool, error) {
		if changesNothing(w.changes[i]) {
			return true, nil
		}
		err := v.verify(ctx, w.changes[i])
		if se, ok := errors.AsType[*staleError](err); ok {
			why[i] = se.what
			return true, nil
		}
		return err == nil, err
	})
	return why, err
}

// refreshed is what a resource that the plan leaves alone is recorded as once the plan is begun: what was read of it. ok is false
// when it is recorded already, or moved.
func (a *Activities) refreshed(ctx context.Context, c *ledger.Change) (addr lang.Address, v cty.Value, ok bool, err error) {
	if !changesNothing(c) || c.Mode != "" || !c.Refreshed.Exists() {
		return addr, v, false, nil
	}
	rec, err := a.Ledger.Instance(ctx, c.Object)
	if err != nil || rec.Intent != nil || rec.Digest() != c.Preconditions.State {
		return addr, v, false, err
	}
	if addr, err = lang.ParseAddress(c.Address); err != nil {
		return addr, v, false, err
	}
	block := a.block(addr)
	if block == nil {
		return addr, v, false, nil
	}
	v, err = promised(c, block)
	return addr, v, err == nil, err
}

// verifier holds the changes of a plan to what they are bound to.
type verifier struct {
	*Activities
	plan      *v1alpha1.Plan
	functions lang.Functions
	scope     *scope

	// mu guards configs.
	mu      sync.Mutex
	configs *providerConfigCache
}

// verify returns a *staleError when a change is not the one that was planned any more.
func (v *verifier) verify(ctx context.Context, c *ledger.Change) error {
	obj, err := v.Objects.Get(ctx, c.Object)
	if errors.Is(err, ErrGone) {
		return &staleError{"the object was deleted after the plan was made"}
	}
	if err != nil {
		return err
	}
	r, err := resourceOf(obj, v.Catalog)
	if err != nil {
		return &staleError{err.Error()}
	}
	n := &node{resource: r, record: &ledger.Instance{Object: r.ref}, wanted: !r.deleting && !v.plan.Spec.Destroy && c.Deposed == ""}
	s := &stepRun{Activities: v.Activities, plan: v.plan, change: c, destroy: true, resource: r}
	if r.mode == v1alpha1.ModeManaged {
		if n.record, err = v.Ledger.Instance(ctx, c.Object); err != nil {
			return err
		}
		if rec := n.record; rec.Intent != nil {
			if _, err := s.takesOverIntent(ctx, rec); err != nil {
				return err
			}
		}
	}
	switch {
	case c.Deposed != "":
		return v.verifyOld(ctx, c, n)
	case r.mode != v1alpha1.ModeManaged:
		err = s.checkStale(r, nil)
	default:
		if err = s.checkStale(r, n.record); err == nil {
			err = v.verifyFrom(ctx, c)
		}
		if err == nil {
			err = v.verifyNamespace(ctx, c)
		}
	}
	if err != nil || c.Action == v1alpha1.ActionForget || c.Action == v1alpha1.ActionRead && c.Mode == "" {
		return err // what is only written down takes no provider
	}
	if err := v.verifyConfig(ctx, c, n); err != nil || !n.wanted || len(c.Referred) == 0 {
		return err
	}
	n.parse(v.functions)
	return v.verifyReferred(ctx, c, n)
}

// verifyNamespace refuses a destroy that only the deletion of the namespace asked for, once that was taken back. Such a change was
// planned before its object was marked.
func (v *verifier) verifyNamespace(ctx context.Context, c *ledger.Change) error {
	if c.Action != v1alpha1.ActionDelete || c.Preconditions.Deleting || v.plan.Spec.Destroy {
		return nil
	}
	terminating, err := v.Configs.Terminating(ctx, v.plan.Namespace)
	if err == nil && !terminating {
		err = &staleError{"the deletion of the namespace was taken back after the plan was made"}
	}
	return err
}

// verifyOld looks at the change of an old instance, which a replace left behind.
func (v *verifier) verifyOld(ctx context.Context, c *ledger.Change, n *node) error {
	old := n.record.FindDeposed(c.Deposed)
	switch {
	case old == nil:
		return &staleError{"another plan destroyed it"}
	case old.Digest() != c.Preconditions.State:
		return &staleError{"the recorded state moved after the plan was made"}
	case n.entry.Package.Version != c.ProviderVersion:
		return &staleError{fmt.Sprintf("the provider is now version %s, and the plan was made with %s", n.entry.Package.Version, c.ProviderVersion)}
	case c.Action == v1alpha1.ActionForget:
		return nil
	}
	return v.configured(ctx, old.ProviderConfig)
}

// verifyFrom looks at the record that a change takes over.
func (v *verifier) verifyFrom(ctx context.Context, c *ledger.Change) error {
	if c.Preconditions.From == nil {
		return nil
	}
	from, err := v.Ledger.Instance(ctx, *c.Preconditions.From)
	if err != nil {
		return err
	}
	if from.Digest() != c.Preconditions.FromState || from.Intent != nil {
		return &staleError{fmt.Sprintf("the state of %s moved after the plan was made", c.PreviousAddress)}
	}
	return v.checkMovedFrom(ctx, c)
}

// configured wants a ProviderConfig to be there with which an instance was made.
func (v *verifier) configured(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	cfg, err := v.Configs.Get(ctx, v.plan.Namespace, name)
	if err == nil && cfg == nil {
		err = &staleError{fmt.Sprintf("the ProviderConfig %q, which it was made with, does not exist any more", name)}
	}
	return err
}

// verifyConfig looks at the ProviderConfig that a change is made with, and of a replace at the one that the old instance was made
// with.
func (v *verifier) verifyConfig(ctx context.Context, c *ledger.Change, n *node) error {
	v.mu.Lock()
	found, err := v.configs.forNode(n)
	if err == nil {
		err = n.configure(v.configs) // what it refers to is part of what the change refers to
	}
	v.mu.Unlock()
	if err != nil {
		return err
	}
	name := ""
	if found != nil && found.cfg != nil {
		name = found.cfg.Name
	}
	switch {
	case name == "" && c.ProviderConfig != "":
		return &staleError{fmt.Sprintf("the ProviderConfig %q, which the plan was made with, does not exist any more", c.ProviderConfig)}
	case name != c.ProviderConfig:
		return &staleError{fmt.Sprintf("it would be made with the ProviderConfig %q, and the plan was made with %q", name, c.ProviderConfig)}
	case found != nil && found.versionKnown && c.ConfigVersion != "" && found.version != c.ConfigVersion:
		return configMoved(name)
	case c.Action == v1alpha1.ActionReplace && n.record.Exists():
		return v.configured(ctx, n.record.ProviderConfig)
	}
	return nil
}

// verifyReferred looks at the values that a change refers to, as far as the plan itself does not change them.
func (v *verifier) verifyReferred(ctx context.Context, c *ledger.Change, n *node) error {
	refs := n.referred()
	for _, addr := range slices.SortedFunc(maps.Keys(refs), lang.Address.Compare) {
		planned, ok := c.Referred[addr.String()]
		if !ok {
			continue
		}
		now, err := v.scope.digestOf(ctx, addr, refs[addr])
		_, absent := errors.AsType[*absentError](err)
		_, forbidden := errors.AsType[*ForbiddenError](err)
		switch {
		case absent, forbidden:
			return &staleError{err.Error()}
		case err != nil:
			return err
		case now == "":
			return &staleError{fmt.Sprintf("%s, which it refers to, is not there any more", addr)}
		case now != planned:
			return &staleError{fmt.Sprintf("%s, which it refers to, was changed after the plan was made", addr)}
		}
	}
	return nil
}

// refer notes the values that a change refers to and that the plan does not change: when one of them is another one, so may the
// change be.
func (pr *proposal) refer(ctx context.Context, c *ledger.Change, r *resource) error {
	c.Referred = nil
	if changesNothing(c) || c.Deposed != "" || r.deleting || pr.plan.Spec.Destroy || pr.plan.Spec.RefreshOnly {
		return nil
	}
	pr.configuring.Lock()
	if pr.configs == nil {
		pr.configs, pr.functions = pr.providerConfigs(ctx, pr.plan), pr.signatures()
	}
	n := &node{resource: r, record: &ledger.Instance{Object: r.ref}, wanted: true}
	err := n.configure(pr.configs)
	pr.configuring.Unlock()
	if err != nil {
		return err
	}
	n.parse(pr.functions)
	changing := map[string]bool{}
	for _, j := range c.DependsOn {
		changing[pr.all[j].Address] = changing[pr.all[j].Address] || !changesNothing(pr.all[j])
	}
	for addr, refs := range n.referred() {
		if changing[addr.String()] {
			continue
		}
		digest, err := pr.scope.digestOf(ctx, addr, refs)
		if err != nil {
			return err
		}
		if digest == "" {
			continue // it is not known yet, or not there
		}
		if c.Referred == nil {
			c.Referred = map[string]string{}
		}
		c.Referred[addr.String()] = digest
	}
	return nil
}

// referred are the references of a node, of its ProviderConfig too, that have a value which lasts.
func (n *node) referred() map[lang.Address][]lang.Reference {
	refs := map[lang.Address][]lang.Reference{}
	all := n.references
	if n.setting != nil {
		all = slices.Concat(all, n.setting.references)
	}
	for _, ref := range all {
		if ref.Mode == v1alpha1.ModeData || ref.Mode == v1alpha1.ModeManaged || ref.Mode == "" {
			refs[ref.Address] = append(refs[ref.Address], ref)
		}
	}
	return refs
}

// digestOf identifies the attributes of something that references name; empty when they are not known, or nothing is there.
func (s *scope) digestOf(ctx context.Context, addr lang.Address, refs []lang.Reference) (string, error) {
	v, ok, err := s.value(ctx, addr)
	if err != nil || !ok {
		return "", err
	}
	v, _ = v.UnmarkDeep()
	var attributes []string
	for _, ref := range refs {
		if ref.Attribute == "" || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(ref.Attribute) {
			attributes = nil
			break
		}
		attributes = append(attributes, ref.Attribute)
	}
	slices.Sort(attributes)
	values := []cty.Value{v}
	if len(attributes) > 0 {
		values = nil
		for _, name := range slices.Compact(attributes) {
			values = append(values, v.GetAttr(name))
		}
	}
	h := sha256.New()
	for _, v := range values {
		if !v.IsWhollyKnown() {
			return "", nil
		}
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			return "", fmt.Errorf("encode what %s is: %w", addr, err)
		}
		fmt.Fprintf(h, "%d %s\n", len(raw), raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
