package planning

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider/protocol"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"k8s.io/apimachinery/pkg/types"
)

// This file lets a plan of recorded objects follow from the speculative plan that its user saw. Both put the same
// questions to the providers, so the second one takes over the answers. Everything else is planned anew from the
// recorded objects: the selection, the rights, the contributors, the rules of imports and the preconditions. A question
// that differs in any way is asked.

// shownFor is the maximum age of a plan whose answers another plan takes over.
const shownFor = time.Hour

// shownTo returns the UID of the plan in spec.shown. It returns "" if there is none with answers for this plan: the
// plan is gone, too old, not speculative, or another user made it.
func (a *Planner) shownTo(ctx context.Context, po *v1alpha1.Plan) (types.UID, error) {
	if po.Spec.Shown == nil || po.Spec.Speculative {
		return "", nil
	}
	shown, err := a.Plans.Get(ctx, po.Namespace, po.Spec.Shown.Name, po.Spec.Shown.UID)
	if errors.Is(err, store.ErrGone) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read plan %q of spec.shown: %w", po.Spec.Shown.Name, err)
	}
	theirs, ours := shown.Status.RequestedBy, po.Status.RequestedBy
	old := time.Since(shown.CreationTimestamp.Time) > shownFor
	if !shown.Spec.Speculative || old || theirs == nil || ours == nil || !contributor.SameUser(*theirs, *ours) {
		return "", nil
	}
	return shown.UID, nil
}

// answers are the answers of a provider with one configuration about a change.
type answers struct {
	change *ledger.Change
	// of identifies the provider and its arguments.
	of string
	// kept is true for a speculative plan, which keeps the answers. Any other plan recalls them.
	kept bool
}

// withAnswers returns the context for the calls to a provider about a change. It returns ctx itself if the plan neither
// keeps nor recalls answers.
func (pr *proposal) withAnswers(ctx context.Context, c *ledger.Change, r *resource.Resource,
	l *session.Session) context.Context {
	if !pr.plan.Spec.Speculative && pr.shown == "" {
		return ctx
	}
	p := r.Entry.Package
	of := fmt.Sprintf("%q %q %q %q %q", p.Source, p.Version, p.Checksum, p.Grants.Key(), l.Key)
	return protocol.WithAnswers(ctx, &answers{c, of, pr.plan.Spec.Speculative})
}

// key identifies a question to the provider.
func (a *answers) key(method string, request []byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %s", a.of, method, request))
	return base64.RawStdEncoding.EncodeToString(sum[:])
}

// Recall implements protocol.Answers.
func (a *answers) Recall(method string, request []byte) ([]byte, bool) {
	if a.kept {
		return nil, false
	}
	answer, ok := a.change.Answers[a.key(method, request)]
	return answer, ok
}

// Keep implements protocol.Answers.
func (a *answers) Keep(method string, request, answer []byte) {
	if !a.kept {
		return
	}
	if a.change.Answers == nil {
		a.change.Answers = map[string][]byte{}
	}
	a.change.Answers[a.key(method, request)] = answer
}
