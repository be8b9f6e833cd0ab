package server

import (
	"cmp"
	"context"
	"errors"
	"strings"

	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/rights"
)

// rightsToTemplate returns the rights to read the expressions of an instance: those of its ResourceSet, or of the files
// of its Module.
func rightsToTemplate(ref v1alpha1.ObjectReference) []store.Right {
	if v1alpha1.OwnerKind(ref.Name) == "Module" {
		return rightsToFiles(ref.Namespace, ref.Set)
	}
	return []store.Right{{Verb: store.VerbGet, Namespace: ref.Namespace, Group: v1alpha1.GroupName,
		Resource: "resourcesets", Name: ref.Set}}
}

// rightsToFiles returns the rights to read the files of a Module. A plan does not name their ConfigMap.
func rightsToFiles(namespace, module string) []store.Right {
	return []store.Right{
		{Verb: store.VerbGet, Namespace: namespace, Group: v1alpha1.GroupName, Resource: "modules", Name: module},
		{Verb: store.VerbGet, Namespace: namespace, Resource: "configmaps"},
	}
}

// rightsToDiagnostics returns the rights to read a diagnostic about an instance, besides the one to get it. It may
// quote the template and, as each.value, a ConfigMap that it does not name. rightsToDiagnostics returns nil for another
// object. set may be empty.
func rightsToDiagnostics(namespace, name, set string) []store.Right {
	if !v1alpha1.IsInstanceName(name) && !v1alpha1.InModule(name) {
		return nil
	}
	return append(rightsToTemplate(v1alpha1.ObjectReference{Namespace: namespace, Name: name, Set: set}),
		store.Right{Verb: store.VerbGet, Namespace: namespace, Resource: "configmaps"})
}

// withholdDiagnostics removes the diagnostics of instances from users who may not read the template and the ConfigMaps
// behind them.
func withholdDiagnostics(ctx context.Context, asker *store.Asker, list *v1alpha1.PlanChangeList) error {
	for i := range list.Items {
		c := &list.Items[i]
		if len(c.Diagnostics) == 0 && c.Message == "" {
			continue
		}
		missing, err := asker.Missing(ctx, rightsToDiagnostics(c.Object.Namespace, c.Object.Name, c.Object.Set))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			c.Message, c.Diagnostics = "", nil
		}
	}
	return nil
}

// withholdValues removes the values of each change whose object the user may not get. It keeps the addresses and
// actions. Of an instance whose ResourceSet the user may not get, it removes the expressions, which are those of the
// template.
func withholdValues(ctx context.Context, asker *store.Asker, kindOf func(kschema.GroupVersionKind) (kinds.Kind, bool),
	list *v1alpha1.PlanChangeList) error {
	for i := range list.Items {
		c := &list.Items[i]
		gvk := kschema.FromAPIVersionAndKind(c.Object.APIVersion, c.Object.Kind)
		right := store.Right{Verb: store.VerbGet, Namespace: c.Object.Namespace, Group: gvk.Group,
			Resource: kinds.PluralOf(gvk.Kind), Name: c.Object.Name}
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
		if c.Object.Set == "" || len(c.Expressions) == 0 {
			continue
		}
		missing, err := asker.Missing(ctx, rightsToTemplate(c.Object))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			c.Expressions = nil
		}
	}
	return nil
}

// mayRead is the registry.ReaderFunc of the server. The requester of a plan reads its diagnostics of ProviderConfigs:
// planning needs the verb "use" on them, and not "get". Of instances, the requester needs the right to get them alone,
// because planning evaluates the template with the requester's rights.
func (s *Server) mayRead(ctx context.Context) (func(p *v1alpha1.Plan, address string) (bool, error), error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, errors.New("read plans: the request has no user")
	}
	asker, reader := s.asker(who), rights.IdentityOf(who)
	type read struct {
		namespace, address string
		own                bool
	}
	known := map[read]bool{} // the plans of a list often have the same addresses
	return func(p *v1alpha1.Plan, address string) (bool, error) {
		key := read{p.Namespace, address, requested(&reader, p)}
		if key.own && strings.HasPrefix(address, scope.ProviderConfigAddress) {
			return true, nil
		}
		may, ok := known[key]
		if ok {
			return may, nil
		}
		missing, err := asker.Missing(ctx, rightsToRead(s.kinds.ByType, p.Namespace, address, key.own))
		may = len(missing) == 0
		known[key] = may
		return may, err
	}, nil
}

// requested reports whether a reader is the requester of a plan.
func requested(reader *v1alpha1.Identity, p *v1alpha1.Plan) bool {
	return p.Status.RequestedBy != nil && reader.Within(p.Status.RequestedBy)
}

// rightsToRead returns the rights to read a diagnostic about the object with an address. If several providers have its
// type, the user needs the right to the kind of each. If none has it, the user needs the right to all kinds. own is
// true for the requester of the plan.
func rightsToRead(byType func(v1alpha1.Mode, string) []kinds.Kind, namespace, address string, own bool) []store.Right {
	all := []store.Right{{Verb: store.VerbGet, Namespace: namespace, Group: "*", Resource: "*"}}
	if name, ok := strings.CutPrefix(address, scope.ProviderConfigAddress); ok {
		return []store.Right{{Verb: store.VerbGet, Namespace: namespace, Group: v1alpha1.GroupName,
			Resource: "providerconfigs", Name: name}}
	}
	if rights, ok := rightsToModule(namespace, address); ok {
		return rights
	}
	addr, err := lang.ParseAddress(address)
	if err != nil {
		return all
	}
	found := byType(addr.Mode, addr.Type)
	if len(found) == 0 {
		return all
	}
	namespace = cmp.Or(addr.Namespace, namespace)
	var rights []store.Right
	for _, kind := range found {
		rights = append(rights, store.Right{Verb: store.VerbGet, Namespace: namespace, Group: kind.GVR.Group,
			Resource: kind.GVR.Resource, Name: addr.ObjectName()})
	}
	if own {
		return rights
	}
	return append(rights, rightsToDiagnostics(namespace, addr.ObjectName(), "")...)
}

// rightsToModule returns the rights to read what a plan says about a Module, its check blocks or its outputs, by an
// address such as "module.shop" or "module.shop.url". The status of the Module has the values of outputs, too; the
// other texts may quote its files, and the values in them. ok is false for another address.
func rightsToModule(namespace, address string) (rights []store.Right, ok bool) {
	path, rest, ok := v1alpha1.CutModulePath(address)
	if !ok {
		return nil, false
	}
	rights = rightsToFiles(namespace, v1alpha1.RootModule(path))
	if strings.Count(rest, ".") == 1 { // an output; the address of a resource has the type and the name
		return rights[:1], true
	}
	return rights, rest == "" || strings.HasPrefix(rest, ".check.")
}

// withhold removes each part of a change that is, or may repeat, a value of its object.
func withhold(c *v1alpha1.PlanChange) {
	c.ValuesWithheld = true
	if c.Importing != nil {
		c.Importing = &v1alpha1.PlanImport{}
	}
	c.Before, c.After, c.AfterUnknown, c.BeforeSensitive, c.AfterSensitive = nil, nil, nil, nil, nil
	c.Secrets, c.ProviderArguments, c.Expressions = nil, nil, nil
	c.ReplacePaths, c.SecretsChanged, c.Drift, c.Recorded, c.RecordedSensitive = nil, nil, nil, nil, nil
	c.Message, c.Diagnostics = "", nil
}
