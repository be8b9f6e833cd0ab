package planning

import (
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
)

// This file makes the open changes of visited nodes.

// links connect the changes of a plan with each other and with the resources that the plan leaves out.
type links struct {
	// position returns the index of the change of an address.
	position      func(lang.Address) (int32, bool)
	leavesDeposed func(lang.Address) bool
	referrers     map[lang.Address][]ledger.Referrer
}

func (s *survey) linksOf(position func(lang.Address) (int32, bool)) links {
	visits := func(addr lang.Address) bool {
		_, ok := position(addr)
		return ok
	}
	return links{position, s.leavesDeposed(visits), s.referrers(visits)}
}

// addedChanges creates the open changes of nodes that Propose adds, whose indexes begin with first. A deposed instance
// that another plan just left is for the next plan.
func (s *survey) addedChanges(nodes []int, first int32) (out []*ledger.Change) {
	position := make(map[lang.Address]int32, len(nodes))
	for _, k := range nodes {
		position[s.nodes[k].Address] = int32(len(position))
	}
	l := s.linksOf(func(addr lang.Address) (int32, bool) {
		i, ok := position[addr]
		return i, ok
	})
	for _, k := range nodes {
		c := s.change(s.nodes[k], l)
		c.Index += first
		out = append(out, c)
	}
	return out
}

// change creates the open change of a visited node.
func (s *survey) change(n *node, l links) *ledger.Change {
	c := s.newChange(n, &n.record.State, texts(s.recordedReferences(n)))
	c.Index, _ = l.position(n.Address)
	c.Requested = n.Deleting || s.targets.selects(n.Address, n.Object.GetLabels())
	c.CreatesFirst = n.createsFirst || !n.wanted && n.record.CreateBeforeDestroy
	c.LeaveDeposed, c.Referrers = l.leavesDeposed(n.Address), l.referrers[n.Address]
	if !c.Requested {
		c.DestroyedWith = s.destroyedWith(n, l)
	}
	if n.movedFrom != nil {
		c.PreviousAddress = n.movedFrom.Address.String()
		c.Preconditions.From, c.Preconditions.FromState = &n.movedFrom.Ref, n.movedFrom.record.Digest()
	}
	s.addDependencies(c, n, l)
	c.TakenBack, c.Account = n.takenBack, n.account
	if n.Mode == v1alpha1.ModeManaged && n.Ref.Set == "" {
		c.Inputs = ledger.InputsOf(n.Object)
	}
	return c
}

// recordedReferences returns the addresses that the record of a node refers to: directly, and through the records of
// others.
func (s *survey) recordedReferences(n *node) []lang.Address {
	out := slices.Clone(n.requires)
	seen := map[lang.Address]bool{n.Address: true}
	for _, addr := range out {
		seen[addr] = true
	}
	for k := 0; k < len(out); k++ {
		for _, addr := range s.requiredBy(out[k]) {
			if !seen[addr] && s.exists(addr) {
				seen[addr] = true
				out = append(out, addr)
			}
		}
	}
	slices.SortFunc(out[len(n.requires):], lang.Address.Compare)
	return out
}

// requiredBy returns the addresses that the record of the resource with an address refers to.
func (o *outline) requiredBy(addr lang.Address) (out []lang.Address) {
	i, ok := o.Slot(addr)
	if !ok {
		return nil
	}
	for _, d := range o.requires(i) {
		if n := o.Nodes[d]; n.Object != nil {
			out = append(out, n.Object.Address())
		}
	}
	return out
}

// deposedChanges creates the open changes of the deposed instances of a visited node, without their indexes.
func (s *survey) deposedChanges(n *node) (out []*ledger.Change) {
	if s.spec.RefreshOnly || len(s.targets.named) > 0 && !s.spec.Destroy && !s.targets.named[n.Address] {
		return nil
	}
	for _, d := range n.deposed() {
		c := s.newChange(n, &d.State, d.Dependencies)
		c.Deposed = d.Key
		out = append(out, c)
	}
	return out
}

// newChange returns an open change of an instance of a node, whose recorded state and dependencies are given.
func (s *survey) newChange(n *node, state *ledger.State, requires []string) *ledger.Change {
	c := &ledger.Change{Requires: requires, Preconditions: ledger.Preconditions{
		State: state.Digest(), Content: resourceset.Content(n.Object), Deleting: n.Deleting, Destroys: s.spec.Destroy,
	}}
	c.Address, c.Type, c.Object = n.Address.String(), n.Address.Type, n.Ref
	if n.Mode != v1alpha1.ModeManaged {
		c.Mode = n.Mode
	}
	c.Provider, c.ProviderVersion = n.Entry.Package.Source.String(), n.Entry.Package.Version
	c.State, c.Contributors = v1alpha1.ChangePending, s.contributors(n)
	c.Basis = s.Basis(n.slot)
	return c
}

// addDependencies writes the dependencies of a node to its change.
func (s *survey) addDependencies(c *ledger.Change, n *node, l links) {
	for _, addr := range s.dependenciesWithChanges(n.DependsOn, v1alpha1.ModeEphemeral) {
		j, ok := l.position(addr)
		if !ok || !n.wanted {
			continue
		}
		c.DependsOn = append(c.DependsOn, j)
		if n.Mode == v1alpha1.ModeData && !slices.Contains(n.inherited, addr) {
			c.ReadAfter = append(c.ReadAfter, j)
		}
	}
	c.DependencyVersions, c.ConfigVersion = s.dependencyVersions(n), n.configVersion
	// The recorded dependencies order destroys, in which ephemeral resources and data sources have no part.
	recorded := s.dependenciesWithChanges(n.DependsOn, v1alpha1.ModeEphemeral, v1alpha1.ModeData)
	c.Dependencies = texts(slices.DeleteFunc(recorded, s.leaves))
}

// deposed returns the deposed instances of the node, or none if its record is moved.
func (n *node) deposed() []ledger.Deposed {
	if n.movedFrom != nil {
		return nil // they move with the record, and the next plan handles them
	}
	return n.record.Deposed
}
