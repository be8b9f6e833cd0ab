package server

import (
	"context"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
)

// withholdValues removes the values of each change whose object the user may not get. It keeps the addresses and
// actions.
func withholdValues(ctx context.Context, asker *store.Asker, kindOf func(kschema.GroupVersionKind) (kinds.Kind, bool), list *v1alpha1.PlanChangeList) error {
	for i := range list.Items {
		c := &list.Items[i]
		gvk := kschema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind)
		right := store.Right{Verb: store.VerbGet, Namespace: c.Object.Namespace, Group: gvk.Group, Resource: kinds.PluralOf(gvk.Kind), Name: c.Object.Name}
		if kind, ok := kindOf(gvk); ok { // otherwise the provider is not ready
			right.Resource = kind.GVR.Resource
		}
		ok, err := asker.May(ctx, right)
		if err != nil {
			return err
		}
		if !ok {
			withhold(c)
		}
	}
	return nil
}

// withhold removes each part of a change that is, or may repeat, a value of its object.
func withhold(c *v1alpha1.PlanChange) {
	c.ValuesWithheld = true
	if c.Importing != nil {
		c.Importing = &v1alpha1.PlanImport{}
	}
	c.Before, c.After, c.AfterUnknown, c.BeforeSensitive, c.AfterSensitive = nil, nil, nil, nil, nil
	c.ReplacePaths, c.SecretsChanged, c.Drift, c.Recorded, c.RecordedSensitive = nil, nil, nil, nil, nil
	c.Message, c.Diagnostics = "", nil
}
