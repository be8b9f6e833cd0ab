package kinds

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/store"
)

// AuthorizeModule returns a Forbidden error if the author of a Module lacks the right to read what its inputs refer to,
// also the secrets in it, to read the ConfigMap with its files, or to use its ProviderConfigs. Rights to the kinds of
// its resources are those of the user who plans.
func (k *Kinds) AuthorizeModule(ctx context.Context, m *v1alpha1.Module) error {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return apierrors.NewInternalError(errors.New("authorize module: the request has no user"))
	}
	if who.GetName() == user.APIServerUser {
		return nil
	}
	asker := k.access.Asker(who)
	refs := append(ModuleReferences(m),
		lang.NewReference(lang.Address{Type: lang.TypeConfigMap, Name: m.Spec.Source.ConfigMap},
			"spec.source.configMap"))
	problems, err := k.mayRefer(ctx, asker, m.Namespace, refs, true)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Providers)) {
		use := store.UseOf(m.Namespace, m.Spec.Providers[name])
		may, err := asker.May(ctx, use)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if !may {
			problems = append(problems, fmt.Sprintf("%s: it needs the right to %s",
				field.NewPath("spec", "providers").Key(name), use))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return apierrors.NewForbidden(v1alpha1.Resource("modules"), m.Name, errors.New(strings.Join(problems, "; ")))
}

// ModuleReferences returns the references of the inputs of a Module. It ignores errors, which the validation reports.
func ModuleReferences(m *v1alpha1.Module) (refs []lang.Reference) {
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Inputs)) {
		var value any
		if utiljson.Unmarshal(m.Spec.Inputs[name].Raw, &value) != nil {
			continue
		}
		found, _ := lang.ExpressionOptions{Namespace: m.Namespace}.References(value, "spec.inputs."+name)
		refs = append(refs, found...)
	}
	return refs
}
