package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/server/kinds"
)

// tally counts users of an object and keeps the name of the first.
type tally struct {
	n       int
	example string
}

func (t *tally) add(kind, namespace, name string) {
	if t.n++; t.n == 1 {
		t.example = fmt.Sprintf("%s/%s in the namespace %q", kind, name, namespace)
	}
}

// InUse counts the existing resources that need a Namespace, Provider, ProviderConfig, Secret or ConfigMap, and returns
// the name of one. All objects of a Provider's kinds need the Provider, because they would be inaccessible without it.
// Otherwise, data sources, ephemeral resources and actions do not count, since nothing is lost with them.
func (a *Answers) InUse(ctx context.Context, obj metav1.Object) (n int, example string, err error) {
	t := &tally{}
	namespace, name := obj.GetNamespace(), obj.GetName()
	switch obj.(type) {
	case *corev1.Namespace:
		err = a.countRecords(ctx, t, name, func(rec *ledger.Instance) bool { return hasInfrastructure(rec, "") })
	case *v1alpha1.Provider:
		err = a.ofProvider(ctx, name, t.add)
	case *v1alpha1.ProviderConfig:
		err = a.countRecords(ctx, t, namespace, func(rec *ledger.Instance) bool { return hasInfrastructure(rec, name) })
	case *corev1.Secret:
		err = a.read(ctx, t, lang.Address{Namespace: namespace, Type: lang.TypeSecret, Name: name})
	case *corev1.ConfigMap:
		err = a.read(ctx, t, lang.Address{Namespace: namespace, Type: lang.TypeConfigMap, Name: name})
	default:
		err = fmt.Errorf("find users of a %T: unknown kind", obj)
	}
	return t.n, t.example, err
}

// ofProvider calls add for each object of a Provider's kinds, for each ResourceSet of them, and for each Module with
// one of them.
func (a *Answers) ofProvider(ctx context.Context, provider string, add func(kind, namespace, name string)) error {
	group := v1alpha1.ProviderGroup(provider)
	for o, err := range a.Stored.List(ctx, group, "") {
		if err != nil {
			return err
		}
		add(o.GetKind(), o.GetNamespace(), o.GetName())
	}
	for set, err := range a.Stored.Sets(ctx, "") {
		if err != nil {
			return err
		}
		if groupOf(set) == group {
			add("ResourceSet", set.Namespace, set.Name)
		}
	}
	return a.inModules(ctx, group, add)
}

// inModules calls add for each Module with resources in an API group. If the resources of a Module are not known,
// because of an error, those count that have infrastructure. Otherwise each broken Module would keep every Provider.
func (a *Answers) inModules(ctx context.Context, group string, add func(kind, namespace, name string)) error {
	recorded := map[types.UID]bool{} // the owners of infrastructure
	for rec, err := range a.Ledger.Instances(ctx, "") {
		if err != nil {
			return err
		}
		if rec.Object.SetUID != "" && groupOfVersion(rec.Object.APIVersion) == group && hasInfrastructure(rec, "") {
			recorded[rec.Object.SetUID] = true
		}
	}
	for m, err := range a.Stored.Modules(ctx, "") {
		if err != nil {
			return err
		}
		uses := recorded[m.UID]
		if !uses && a.Modules != nil {
			of, err := a.Modules.ModuleAt(ctx, m.Namespace, m.Name)
			if err != nil {
				return err
			}
			in := func(s *resourceset.Set) bool { return groupOfVersion(s.APIVersion) == group }
			uses = of != nil && slices.ContainsFunc(of.Sets, in)
		}
		if uses {
			add("Module", m.Namespace, m.Name)
		}
	}
	return nil
}

// Named reports whether any object names the given one: an object of a Provider's kinds, a resource of the same
// provider in a ProviderConfig's namespace, or a reference to a Secret or ConfigMap. Each Module of the namespace
// counts, because it may have resources of any provider.
func (a *Answers) Named(ctx context.Context, obj metav1.Object) (bool, error) {
	group, namespace := "", obj.GetNamespace()
	switch o := obj.(type) {
	case *v1alpha1.Provider:
		group = v1alpha1.ProviderGroup(o.Name)
	case *v1alpha1.ProviderConfig:
		group = v1alpha1.ProviderGroup(o.Spec.Provider)
	case *corev1.Secret:
		return a.isRead(ctx, lang.Address{Namespace: namespace, Type: lang.TypeSecret, Name: o.Name})
	case *corev1.ConfigMap:
		return a.isRead(ctx, lang.Address{Namespace: namespace, Type: lang.TypeConfigMap, Name: o.Name})
	default:
		return false, fmt.Errorf("find objects that name a %T: unknown kind", obj)
	}
	for _, err := range a.Stored.List(ctx, group, namespace) {
		return err == nil, err
	}
	for set, err := range a.Stored.Sets(ctx, namespace) {
		if err != nil || groupOf(set) == group {
			return err == nil, err
		}
	}
	for _, err := range a.Stored.Modules(ctx, namespace) {
		return err == nil, err
	}
	return false, nil
}

// groupOf returns the API group of the template of a ResourceSet.
func groupOf(set *v1alpha1.ResourceSet) string {
	return groupOfVersion(set.Spec.Template.APIVersion)
}

func groupOfVersion(apiVersion string) string {
	return kschema.FromAPIVersionAndKind(apiVersion, "").Group
}

// isRead reports whether a ProviderConfig, or an object in the same namespace, reads a Secret or ConfigMap.
func (a *Answers) isRead(ctx context.Context, what lang.Address) (bool, error) {
	configs, err := a.configs(ctx)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(configs, func(cfg v1alpha1.ProviderConfig) bool { return reads(&cfg, what) }) {
		return true, nil
	}
	readers, err := a.readers(ctx, what)
	return len(readers) > 0, err
}

// countRecords counts the managed resources of a namespace for which pick returns true.
func (a *Answers) countRecords(ctx context.Context, t *tally, namespace string,
	pick func(*ledger.Instance) bool) error {
	for rec, err := range a.Ledger.Instances(ctx, namespace) {
		if err != nil {
			return err
		}
		picked := rec.Mode != v1alpha1.ModeData && pick(rec)
		if !picked && rec.Mode != v1alpha1.ModeData {
			if picked, err = a.halfReplaced(ctx, rec, pick); err != nil {
				return err
			}
		}
		if picked {
			t.add(rec.Object.Kind, rec.Object.Namespace, rec.Object.Name)
		}
	}
	return nil
}

// halfReplaced reports whether a replacement is between its destroy and its create, which needs the same objects as an
// existing resource.
func (a *Answers) halfReplaced(ctx context.Context, rec *ledger.Instance,
	pick func(*ledger.Instance) bool) (bool, error) {
	if rec.LastOutcome == nil || !rec.LastOutcome.Destroy || rec.Exists() {
		return false, nil
	}
	c, err := a.Ledger.Change(ctx, rec.LastOutcome.Plan, rec.LastOutcome.Change)
	if errors.Is(err, ledger.ErrNotFound) {
		return false, nil
	}
	if err != nil || c.State != v1alpha1.ChangeRunning {
		return false, err
	}
	begun := *rec
	begun.Intent = &ledger.Intent{Action: v1alpha1.ActionCreate} // the create is about to begin
	return pick(&begun), nil
}

// read counts the existing resources that read a Secret or ConfigMap. They read it through their ProviderConfig in any
// namespace, or directly in the same namespace. A resource that reads it directly from another namespace can be
// destroyed without it.
func (a *Answers) read(ctx context.Context, t *tally, what lang.Address) error {
	configs, err := a.configs(ctx)
	if err != nil {
		return err
	}
	through := map[string][]string{} // the ProviderConfigs that read it, by namespace
	for i := range configs {
		if reads(&configs[i], what) {
			through[configs[i].Namespace] = append(through[configs[i].Namespace], configs[i].Name)
		}
	}
	direct, err := a.readers(ctx, what)
	if err != nil {
		return err
	}
	if _, ok := through[what.Namespace]; !ok && len(direct) > 0 {
		through[what.Namespace] = nil
	}
	for namespace, names := range through {
		err := a.countRecords(ctx, t, namespace, func(rec *ledger.Instance) bool {
			return slices.ContainsFunc(names, func(name string) bool { return hasInfrastructure(rec, name) }) ||
				namespace == what.Namespace && (direct[rec.Object.UID] || direct[rec.Object.SetUID]) &&
					hasInfrastructure(rec, "")
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// configs returns all ProviderConfigs.
func (a *Answers) configs(ctx context.Context) ([]v1alpha1.ProviderConfig, error) {
	if a.Client == nil {
		return nil, nil
	}
	list := &v1alpha1.ProviderConfigList{}
	if err := a.Client.Get().Resource("providerconfigs").Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("list provider configurations: %w", err)
	}
	return list.Items, nil
}

// reads reports whether a ProviderConfig reads a Secret or ConfigMap.
func reads(cfg *v1alpha1.ProviderConfig, what lang.Address) bool {
	if what.Type == lang.TypeSecret && what.Namespace == cfg.Namespace &&
		slices.ContainsFunc(cfg.Spec.SecretRefs,
			func(ref v1alpha1.SecretArgument) bool { return ref.Name == what.Name }) {
		return true
	}
	return slices.ContainsFunc(catalog.References(cfg),
		func(ref lang.Reference) bool { return ref.Address == what.In(cfg.Namespace) })
}

// readers returns the UIDs of the objects whose expressions read a Secret or ConfigMap of their namespace. ResourceSets
// whose template or keys read it count, too.
func (a *Answers) readers(ctx context.Context, what lang.Address) (map[types.UID]bool, error) {
	if a.Kinds == nil {
		return nil, nil
	}
	out := map[types.UID]bool{}
	for u, err := range a.Stored.OfProviders(ctx, what.Namespace) {
		if err != nil {
			return nil, err
		}
		if spec, err := json.Marshal([]any{u.Object["spec"], u.Object["lifecycle"]}); err != nil ||
			!bytes.Contains(spec, []byte(what.Type+".")) {
			continue // parsing expressions is the slowest part
		}
		if _, ok := a.Kinds.References(u)[what.In(what.Namespace)]; ok {
			out[u.GetUID()] = true
		}
	}
	for set, err := range a.Stored.Sets(ctx, what.Namespace) {
		if err != nil {
			return nil, err
		}
		from := set.Spec.ForEachFrom
		keys := from != nil && what.Type == lang.TypeConfigMap && from.ConfigMap.Name == what.Name
		if _, ok := a.Kinds.References(kinds.TemplateOf(set).Object())[what.In(what.Namespace)]; ok || keys {
			out[set.UID] = true
		}
	}
	for m, err := range a.Stored.Modules(ctx, what.Namespace) {
		if err != nil {
			return nil, err
		}
		files := what.Type == lang.TypeConfigMap && m.Spec.Source.ConfigMap == what.Name
		if files || slices.ContainsFunc(kinds.ModuleReferences(m),
			func(r lang.Reference) bool { return r.Address == what.In(what.Namespace) }) {
			out[m.UID] = true
		}
	}
	return out, nil
}

// hasInfrastructure reports whether infrastructure exists, or may exist, that was created with a ProviderConfig; an
// empty name means any.
func hasInfrastructure(rec *ledger.Instance, config string) bool {
	if (rec.Exists() || rec.Intent != nil) && (config == "" || rec.ProviderConfig == config) {
		return true
	}
	return slices.ContainsFunc(rec.Deposed,
		func(d ledger.Deposed) bool { return config == "" || d.ProviderConfig == config })
}
