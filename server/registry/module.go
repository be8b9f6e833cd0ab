package registry

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/server/deletion"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/speculation"
)

func newModules(c Config) (*resourceREST, *statusREST, error) {
	store, statusREST, err := newStore(c, "module", new(v1alpha1.Module), new(v1alpha1.ModuleList), moduleStrategy(c),
		moduleTable)
	if err != nil {
		return nil, nil, err
	}
	store.DeleteStrategy = markSet{store.DeleteStrategy}
	return &resourceREST{
		Store: store, short: "mod",
		mayWrite: func(ctx context.Context, obj, old runtime.Object) error {
			m := obj.(*v1alpha1.Module)
			if before, ok := old.(*v1alpha1.Module); ok && sameSpec(m.Spec, before.Spec) {
				return nil
			}
			return c.Kinds.AuthorizeModule(ctx, m)
		},
		warnDeleted: func(ctx context.Context, obj runtime.Object) { c.warnModuleDeleted(ctx, obj.(*v1alpha1.Module)) },
	}, statusREST, nil
}

func moduleStrategy(c Config) kindStrategy[*v1alpha1.Module, v1alpha1.ModuleStatus] {
	return kindStrategy[*v1alpha1.Module, v1alpha1.ModuleStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin: func(ctx context.Context, m *v1alpha1.Module) {
			m.Status = v1alpha1.ModuleStatus{Author: requester(ctx)}
			m.Status.Contributors = addWriter(ctx, nil, v1alpha1.WroteSpec)
			if by, ok := rights.Writer(ctx); ok {
				m.Status.Writers = contributor.CreateKeys(contributor.Write{By: by, At: time.Now()})
			}
			condition.Set(&m.Status.Conditions, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingPlan,
				"recorded; make a Plan to apply it")
			beginWithoutState(m)
		},
		prepareUpdate: func(ctx context.Context, m, old *v1alpha1.Module) {
			keepStateOnReplace(ctx, m, old)
			m.Status.Contributors = addWriter(ctx, m.Status.Contributors, writtenOfModule(m, old)...)
			if !sameSpec(m.Spec, old.Spec) {
				m.Status.Author = requester(ctx)
			}
			if by, ok := rights.Writer(ctx); ok {
				m.Status.Writers = writeKeys(m.Status.Writers, by, partsOfModule(&m.Spec), partsOfModule(&old.Spec))
			}
		},
		spec:       func(m *v1alpha1.Module) any { return m.Spec },
		status:     func(m *v1alpha1.Module) *v1alpha1.ModuleStatus { return &m.Status },
		conditions: func(s *v1alpha1.ModuleStatus) *[]metav1.Condition { return &s.Conditions },
		validate:   validateModule,
		validateAgainst: func(ctx context.Context, m, old *v1alpha1.Module) (errs field.ErrorList) {
			if old != nil {
				errs = keepStateFinalizer(ctx, m, old, "resources", "Module")
				if sameSpec(m.Spec, old.Spec) {
					return errs
				}
			}
			return append(errs, c.validateFiles(ctx, m)...)
		},
		warn: func(ctx context.Context, m *v1alpha1.Module) []string { return c.warnFiles(ctx, m) },
		mayWriteStatus: func(ctx context.Context, _, _ *v1alpha1.Module) field.ErrorList {
			return statusByServer(ctx, "a Module")
		},
	}
}

// warnModuleDeleted adds warnings about the deletion of a Module whose resources have infrastructure. An error does not
// prevent it.
func (c Config) warnModuleDeleted(ctx context.Context, m *v1alpha1.Module) {
	if !slices.Contains(m.Finalizers, v1alpha1.FinalizerState) {
		return
	}
	what := "the next plan destroys its resources. Their infrastructure stays until you approve that plan"
	if m.Spec.Mode == v1alpha1.ModuleObserve {
		what = "the next plan forgets its resources, because its spec.mode is Observe. Their infrastructure stays"
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(
		"Module %q is marked for deletion: %s. Until you approve it, kubectl hykube undelete module/%s -n %s takes the deletion back.", m.Name, what, m.Name, m.Namespace))
	if d, err := c.Backend.ModuleDeletion(ctx, m); err == nil {
		d.WarnReferrers(ctx)
	}
	warning.AddWarning(ctx, "", deletion.WarningWaits)
}

// writtenOfModule returns the parts of a Module that a write changes, and that plans depend on.
func writtenOfModule(m, old *v1alpha1.Module) (parts []string) {
	if !sameSpec(m.Spec, old.Spec) {
		parts = append(parts, v1alpha1.WroteSpec)
	}
	if !maps.Equal(m.Labels, old.Labels) {
		parts = append(parts, v1alpha1.WroteLabels)
	}
	return parts
}

// partsOfModule returns the parts of a spec that the values of outputs depend on, with a text of each. An attribute of
// an object in an input is a part, because a patch may write it alone.
func partsOfModule(spec *v1alpha1.ModuleSpec) map[string]string {
	parts := map[string]string{"source.configMap": spec.Source.ConfigMap}
	for _, item := range spec.Source.Items {
		parts[partName("source.items", item.Path)] = item.Key
	}
	for name, config := range spec.Providers {
		parts[partName("providers", name)] = config
	}
	for name, input := range spec.Inputs {
		var value any
		decoder := json.NewDecoder(bytes.NewReader(input.Raw))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			value = string(input.Raw)
		}
		addParts(parts, partName("inputs", name), value)
	}
	return parts
}

func addParts(parts map[string]string, name string, value any) {
	if object, ok := value.(map[string]any); ok && len(object) > 0 {
		for key, v := range object {
			addParts(parts, partName(name, key), v)
		}
		return
	}
	text, err := json.Marshal(value)
	if err != nil { // a decoded value can always be encoded
		text = fmt.Append(nil, value)
	}
	parts[name] = string(text)
}

// maxPartName bounds the names of parts, in bytes: the status has them. A longer one has a digest for a name.
const maxPartName = 200

func partName(of, name string) string {
	text := fmt.Sprintf("%s[%q]", of, name)
	if len(text) > maxPartName {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(text)))
	}
	return text
}

// Limits on a Module.
const (
	maxModuleItems  = 1000
	maxModuleInputs = 1000
)

func validateModule(m *v1alpha1.Module) field.ErrorList {
	errs := validateObjectName(m.Name)
	if strings.Contains(m.Name, ".") {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), shorten(m.Name),
			"must not have a dot: it is the name of the module in Terraform's addresses, as in module.shop.sim_network.main"))
	}
	spec := field.NewPath("spec")
	source := spec.Child("source")
	for _, msg := range validation.IsDNS1123Subdomain(m.Spec.Source.ConfigMap) {
		errs = append(errs, field.Invalid(source.Child("configMap"), shorten(m.Spec.Source.ConfigMap), msg))
	}
	if len(m.Spec.Source.Items) > maxModuleItems {
		errs = append(errs, field.TooMany(source.Child("items"), len(m.Spec.Source.Items), maxModuleItems))
	}
	paths := map[string]bool{}
	for i, item := range m.Spec.Source.Items {
		at := source.Child("items").Index(i)
		for _, msg := range validation.IsConfigMapKey(item.Key) {
			errs = append(errs, field.Invalid(at.Child("key"), shorten(item.Key), msg))
		}
		if item.Path == "" {
			errs = append(errs, field.Required(at.Child("path"),
				"path of the file in the module, such as modules/net/main.tf"))
		}
		if paths[item.Path] {
			errs = append(errs, field.Duplicate(at.Child("path"), shorten(item.Path)))
		}
		paths[item.Path] = true
	}
	if len(m.Spec.Inputs) > maxModuleInputs {
		errs = append(errs, field.TooMany(spec.Child("inputs"), len(m.Spec.Inputs), maxModuleInputs))
	}
	if m.Spec.Mode != "" {
		errs = append(errs, validateEnum(m.Spec.Mode, spec.Child("mode"), v1alpha1.ModuleManage,
			v1alpha1.ModuleObserve)...)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Spec.Providers)) {
		for _, msg := range validation.IsDNS1123Subdomain(m.Spec.Providers[name]) {
			errs = append(errs, field.Invalid(spec.Child("providers").Key(name), shorten(m.Spec.Providers[name]),
				"name of a ProviderConfig: "+msg))
		}
	}
	return errs
}

// filesToCheck returns the content of the ConfigMap of a Module that a user writes; nil if there is nothing to check. A
// client may create the ConfigMap later. A speculative plan may have another version of it, and expands the Module
// itself. What is wrong with the files quotes them, so who may not write the Module gets only that answer: the store
// asks mayWrite after the validation.
func (c Config) filesToCheck(ctx context.Context,
	m *v1alpha1.Module) (data map[string][]byte, missing bool, err error) {
	if speculation.Is(ctx) {
		return nil, false, nil
	}
	if err := c.Kinds.AuthorizeModule(ctx, m); apierrors.IsForbidden(err) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	data, _, err = c.StoredObjects.ConfigMap(ctx, m.Namespace, m.Spec.Source.ConfigMap)
	return data, err == nil && data == nil, err
}

// validateFiles expands a Module as the index will.
func (c Config) validateFiles(ctx context.Context, m *v1alpha1.Module) field.ErrorList {
	source := field.NewPath("spec", "source")
	data, _, err := c.filesToCheck(ctx, m)
	if err != nil {
		return field.ErrorList{field.InternalError(source, err)}
	}
	if data == nil {
		return nil
	}
	expanded, err := resourceset.NewModule(m, 0, data,
		resourceset.Environment{Provider: anyProvider, Budget: lang.BudgetOf(ctx)}, nil)
	if err != nil {
		return field.ErrorList{field.InternalError(source, err)}
	}
	if expanded.Problem == "" {
		return nil
	}
	if len(expanded.Diagnostics) == 0 {
		return field.ErrorList{field.Invalid(source, field.OmitValueType{}, expanded.Problem)}
	}
	var errs field.ErrorList
	for _, d := range expanded.Diagnostics {
		at, text := source.String(), diag.Text(d)
		if strings.HasPrefix(d.Attribute, "spec.") { // a field of the Module, and no position in a file
			at, d.Attribute = d.Attribute, ""
			text = diag.Text(d)
		}
		errs = append(errs, field.Invalid(field.NewPath(at), field.OmitValueType{}, text))
	}
	return errs
}

// anyProvider is for the check of a Module, whose Providers may be installed later.
func anyProvider(v1alpha1.Mode, string, string) (string, error) { return "any", nil }

// warnFiles returns the warnings of the loader.
func (c Config) warnFiles(ctx context.Context, m *v1alpha1.Module) (out []string) {
	data, missing, err := c.filesToCheck(ctx, m)
	if err != nil {
		return nil
	}
	if missing {
		return []string{fmt.Sprintf("spec.source.configMap: there is no ConfigMap %q in the namespace yet. No plan of the namespace is possible until it exists.", m.Spec.Source.ConfigMap)}
	}
	files, err := resourceset.FilesOf(&m.Spec.Source, data)
	if err != nil {
		return nil
	}
	tree, diags := resourceset.LoadModule(lang.BudgetOf(ctx), files, nil)
	if tree == nil {
		return nil
	}
	for id, p := range tree.Root.Providers {
		if name := m.Spec.Providers[id.String()]; name != "" && len(p.Spec) > 0 {
			out = append(out, fmt.Sprintf(
				"spec.providers[%q]: the arguments of the provider block at %s are not used, because the ProviderConfig %q has them", id, p.Range, name))
		}
	}
	slices.Sort(out)
	for _, d := range diags {
		if d.Severity == v1alpha1.SeverityWarning {
			out = append(out, fmt.Sprintf("%s: %s: %s", d.Attribute, d.Summary, d.Detail))
		}
	}
	return out
}

var moduleTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Source", "string", "Name of the ConfigMap with the files.", 0),
		column("Resources", "integer", "Number of resources of the module.", 0),
		column("Ready", "integer", "Number of resources that are applied and ready.", 0),
		reasonColumn,
		column("Mode", "string", "Whether plans may change the resources: Manage or Observe.", 0),
		ageColumn,
		column("Failed", "integer", "Number of resources with a failure.", 1),
		column("Pending", "integer", "Number of resources that wait for a plan.", 1),
		column("Leaving", "integer", "Number of resources that the next plan destroys.", 1),
		whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		m := obj.(*v1alpha1.Module)
		s := &m.Status
		_, reason, message := readinessCells(m, s.Conditions)
		return []any{m.Name, m.Spec.Source.ConfigMap, int64(s.Instances), int64(s.Ready), reason,
			string(cmp.Or(m.Spec.Mode, v1alpha1.ModuleManage)), age(m.CreationTimestamp),
			int64(s.Failed), int64(s.Pending), int64(s.Leaving), message}
	},
}
