package changes

import (
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxSecrets is the maximum number of items in PlanChange.Secrets before the one for further arguments, and maxFrom
	// that of the objects in one item.
	maxSecrets = 63
	maxFrom    = 16
)

// Secret is a secret argument of a change.
type Secret struct {
	plan.SecretArgument
	// Disclosed are the origins whose secrets the provider does not have yet.
	Disclosed []lang.Origin
}

// NoteSecrets writes the secret arguments to a change of a plan in a namespace.
func NoteSecrets(c *ledger.Change, namespace string, secrets []Secret) error {
	var further v1alpha1.PlanSecret
	for i, s := range secrets {
		for _, o := range s.Origins {
			c.Origins = addOrigin(c.Origins, o)
		}
		for _, o := range s.Disclosed {
			c.Discloses = addOrigin(c.Discloses, o)
		}
		if i >= maxSecrets {
			further.From, further.Discloses = []string{lang.FurtherOrigins.Text(namespace)},
				further.Discloses || len(s.Disclosed) > 0
			continue
		}
		path, err := plan.RenderPath(s.Path)
		if err != nil {
			return err
		}
		item := v1alpha1.PlanSecret{Path: &runtime.RawExtension{Raw: path}, Discloses: len(s.Disclosed) > 0}
		for _, o := range lang.BoundOrigins(s.Origins, maxFrom) {
			item.From = append(item.From, o.Text(namespace))
		}
		c.Secrets = append(c.Secrets, item)
	}
	if further.From != nil {
		c.Secrets = append(c.Secrets, further)
	}
	return nil
}

// addOrigin adds the object of an origin, once.
func addOrigin(to []ledger.Origin, o lang.Origin) []ledger.Origin {
	if object := ledger.Origin(o.Address); !slices.Contains(to, object) {
		return append(to, object)
	}
	return to
}

// SecretRights returns the rights to read the secrets of objects.
func SecretRights(src *scope.Sources, of []ledger.Origin) (rights []store.Right, err error) {
	for _, o := range of {
		more, err := src.RightsToSecrets(lang.Address(o))
		if err != nil {
			return nil, err
		}
		rights = append(rights, more...)
	}
	return rights, nil
}

// causes returns the users who caused a change: its contributors, the requester of the plan, and the user who requested
// the drift check that made the plan. A contributor whom the server did not record has no name.
func causes(po *v1alpha1.Plan, contributors []v1alpha1.Contributor) []v1alpha1.Contributor {
	users := slices.Clone(contributors)
	add := func(who *v1alpha1.Identity) {
		if who != nil && !slices.ContainsFunc(users,
			func(c v1alpha1.Contributor) bool { return contributor.SameUser(c.Identity, *who) }) {
			users = append(users, v1alpha1.Contributor{Identity: *who})
		}
	}
	add(po.Status.RequestedBy)
	if of := po.Status.Stack; of != nil {
		add(of.CheckRequestedBy)
	}
	return users
}

// CausesOf returns the users who caused what a change of a plan records: the contributors of the plan and of the
// change, the requester, and the user who requested the drift check that made the plan. The author of a stack requests
// its plans, and whoever makes a plan reads the data sources, so these users count only if nobody contributed.
func CausesOf(po *v1alpha1.Plan, c *ledger.Change) []v1alpha1.Contributor {
	users := contributor.Merge(po.Status.Contributors, c.Contributors)
	if c.Mode == v1alpha1.ModeData {
		users = c.Contributors
	}
	if len(users) == 0 || po.Status.Stack == nil && c.Mode != v1alpha1.ModeData {
		users = causes(po, users)
	}
	now := metav1.NowMicro()
	users = slices.Clone(users)
	for i := range users {
		users[i].Wrote, users[i].At = nil, now
	}
	return users
}

// LackSecretRights returns the first user who caused a change and may not read the secrets that it gives to a provider,
// and the missing rights. It returns no rights if all users may.
func LackSecretRights(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan,
	c *ledger.Change) (who v1alpha1.Contributor, missing []store.Right, err error) {
	rights, err := SecretRights(src, c.Discloses)
	if err != nil || len(rights) == 0 {
		return who, nil, err
	}
	for _, who := range causes(po, c.Contributors) {
		asker := store.Asker{Access: src.Access, Who: who.Identity}
		if missing, err := asker.Missing(ctx, rights); err != nil || len(missing) > 0 {
			return who, missing, err
		}
	}
	return who, nil, nil
}

// UnplannedOrigins returns the objects whose secrets arguments of a configuration have, although the planned value of
// the change has none of theirs there. A value that planning did not know may come from other objects than its
// expression showed.
func UnplannedOrigins(c *ledger.Change, block *schema.Block, planned, config cty.Value) (of []ledger.Origin) {
	for _, s := range plan.SecretArguments(block, config) {
		for _, o := range s.Origins {
			noted := s.WriteOnly && slices.Contains(c.Origins, ledger.Origin(o.Address))
			if !noted && !plan.Gives(planned, s.Path, o.Address) {
				of = addOrigin(of, o)
			}
		}
	}
	return of
}
