package planning

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"k8s.io/apimachinery/pkg/types"
)

// This file lets a plan take over the reads and imports of the speculative plan that its user saw. A provider may answer each time
// with another value, as random does with the salt of a hash, and then the user would approve another plan than the one that was
// shown. All other parts of planning are the same: the selection, the rights, the rules of imports, and what the provider plans.

// readsLast is the maximum age of a plan whose reads another plan takes over.
const readsLast = time.Hour

// shownReads finds the answers to the reads and imports of a speculative plan.
type shownReads struct {
	ledger *ledger.Ledger
	plan   types.UID
	// changes holds the indexes of the changes by their requests.
	changes map[string]int32
}

// shownReads returns the reads of the plan in spec.readsOf. It returns nil if there are none: the plan is gone, too old, not
// speculative, or another user made it.
func (a *Planner) shownReads(ctx context.Context, po *v1alpha1.Plan) (*shownReads, error) {
	of := po.Spec.ReadsOf
	if of == nil || po.Spec.RefreshOnly {
		return nil, nil
	}
	shown, err := a.Plans.Get(ctx, po.Namespace, of.Name, of.UID)
	if errors.Is(err, store.ErrGone) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read plan %q of spec.readsOf: %w", of.Name, err)
	}
	theirs, ours := shown.Status.RequestedBy, po.Status.RequestedBy
	old := time.Since(shown.CreationTimestamp.Time) > readsLast
	if !shown.Spec.Speculative || old || theirs == nil || ours == nil || theirs.Username != ours.Username {
		return nil, nil
	}
	s := &shownReads{ledger: a.Ledger, plan: shown.UID, changes: map[string]int32{}}
	for c, err := range a.Ledger.Changes(ctx, shown.UID, 0) {
		if err != nil {
			return nil, err
		}
		if c.Asked != "" {
			s.changes[c.Address+"\x00"+c.Asked] = c.Index
		}
	}
	return s, nil
}

// answer returns the change of the speculative plan with the answer to a request; nil if there is none.
func (s *shownReads) answer(ctx context.Context, address, asked string) (*ledger.Change, error) {
	if s == nil || asked == "" {
		return nil, nil
	}
	i, has := s.changes[address+"\x00"+asked]
	if !has {
		return nil, nil
	}
	c, err := s.ledger.Change(ctx, s.plan, i)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, nil // a user deleted the plan meanwhile
	}
	return c, err
}

// requestOf identifies a request to a provider. It returns "" if the same request may reach something else, with unknown or
// ephemeral arguments.
func requestOf(p *provider.Package, l *scope.Lease, parts ...any) (string, error) {
	if !l.Known || l.Digest.Arguments == "" || l.Digest.Ephemeral {
		return "", nil
	}
	var meta json.RawMessage
	if l.Meta != cty.NilVal {
		v, _ := l.Meta.UnmarkDeep()
		if !v.IsWhollyKnown() {
			return "", nil
		}
		var err error
		if meta, err = ctyjson.Marshal(v, v.Type()); err != nil {
			return "", fmt.Errorf("identify a request: %w", err)
		}
	}
	text, err := json.Marshal(append([]any{l.Name, p.Source, p.Version, p.Checksum, l.Digest, meta}, parts...))
	if err != nil {
		return "", fmt.Errorf("identify a request: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// importRequest identifies an import.
func importRequest(p *provider.Package, l *scope.Lease, by instance.ImportBy) (string, error) {
	if by.ID != "" {
		return requestOf(p, l, "import", by.ID)
	}
	identity, err := l.EncodeIdentity(by.Identity)
	if err != nil {
		return "", err
	}
	return requestOf(p, l, "import by identity", identity)
}

// readRequest identifies the read of a recorded state.
func readRequest(p *provider.Package, l *scope.Lease, recorded instance.State) (string, error) {
	var s ledger.State
	if err := l.Record(&s, recorded); err != nil {
		return "", err
	}
	return requestOf(p, l, "read", s.SchemaVersion, s.Attributes, s.Sensitive, s.Private, s.Identity, s.Tainted)
}

// importOrShown imports a resource, or takes over the import of the plan that the user saw. shown is the recorded state of that
// one; nil for a new import.
func (pr *proposal) importOrShown(ctx context.Context, c *ledger.Change, l *scope.Lease, by instance.ImportBy, asked string) (found instance.State, shown *ledger.State, diags diag.Diagnostics, err error) {
	before, err := pr.shown.answer(ctx, c.Address, asked)
	if err != nil {
		return instance.State{}, nil, nil, err
	}
	if before != nil && before.Importing != nil && before.Refreshed.Exists() {
		found, err = l.Load(ctx, before.Refreshed)
		return found, before.Refreshed, nil, err
	}
	found, diags, err = l.Import(ctx, by)
	pr.noteAsked(c, asked, diags)
	return found, nil, diags, err
}

// readOrShown reads a resource, or takes over the read of the plan that the user saw. It reads again what that one did not find.
func (pr *proposal) readOrShown(ctx context.Context, c *ledger.Change, r *resource.Resource, l *scope.Lease, recorded instance.State) (instance.State, diag.Diagnostics, error) {
	var asked string
	var err error
	if pr.shown != nil || pr.plan.Spec.Speculative {
		if asked, err = readRequest(&r.Entry.Package, l, recorded); err != nil {
			return instance.State{}, nil, err
		}
	}
	before, err := pr.shown.answer(ctx, c.Address, asked)
	switch {
	case err != nil:
		return instance.State{}, nil, err
	case before != nil && before.Read && before.Refreshed == nil:
		return recorded, nil, nil
	case before != nil && before.Read && before.Refreshed.Exists():
		found, err := l.Load(ctx, before.Refreshed)
		found.Tainted = recorded.Tainted
		return found, nil, err
	}
	if err := pr.awaitRead(ctx); err != nil {
		return instance.State{}, nil, err
	}
	found, diags, err := l.Read(ctx, recorded)
	pr.noteAsked(c, asked, diags)
	return found, diags, err
}

// noteAsked notes the request of a speculative plan, for a later plan. An answer with warnings is not taken over, because the
// later plan would lack them.
func (pr *proposal) noteAsked(c *ledger.Change, asked string, diags diag.Diagnostics) {
	if pr.plan.Spec.Speculative && len(diags) == 0 {
		c.Asked = asked
	}
}
