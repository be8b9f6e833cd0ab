package changes

import (
	"context"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

const (
	// maxSecrets is the maximum number of items in PlanChange.Secrets before the one for further arguments, and maxFrom that
	// of the objects in one item.
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
			further.From, further.Discloses = []string{lang.FurtherOrigins.Text(namespace)}, further.Discloses || len(s.Disclosed) > 0
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

// LackSecretRights reports whether the plan's requester may not read a secret that the change gives to a provider.
func LackSecretRights(ctx context.Context, src *scope.Sources, po *v1alpha1.Plan, c *ledger.Change) (bool, error) {
	rights, err := SecretRights(src, c.Discloses)
	if err != nil || len(rights) == 0 {
		return false, err
	}
	requester := src.RequesterOf(po)
	if requester == nil {
		return true, nil
	}
	missing, err := requester.Missing(ctx, rights)
	return len(missing) > 0, err
}

// UnplannedOrigin returns an origin of a secret in a configuration that the change's plan did not show; ok is false if there
// is none. A value that planning did not know may come from other objects than its expression showed.
func UnplannedOrigin(c *ledger.Change, config cty.Value) (o lang.Origin, ok bool) {
	for _, o := range lang.OriginsOf(config) {
		if !slices.Contains(c.Origins, ledger.Origin(o.Address)) {
			return o, true
		}
	}
	return lang.Origin{}, false
}
