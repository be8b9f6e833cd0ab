package registry

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/server/deletion"
	"github.com/hykube/hykube/server/kinds"
)

func newResourceSets(c Config) (*resourceREST, *statusREST, error) {
	strategy := kindStrategy[*v1alpha1.ResourceSet, v1alpha1.ResourceSetStatus]{
		ObjectTyper:   c.Codecs.Scheme,
		NameGenerator: names.SimpleNameGenerator,
		namespaced:    true,
		begin: func(ctx context.Context, s *v1alpha1.ResourceSet) {
			s.Status = v1alpha1.ResourceSetStatus{}
			s.Status.Contributors = addWriter(ctx, nil, v1alpha1.WroteSpec)
			condition.Set(&s.Status.Conditions, 0, v1alpha1.ConditionReady, false, v1alpha1.ReasonAwaitingPlan,
				"recorded; make a Plan to apply it")
			beginWithoutState(s)
		},
		prepareUpdate: func(ctx context.Context, s, old *v1alpha1.ResourceSet) {
			keepStateOnReplace(ctx, s, old)
			s.Status.Contributors = addWriter(ctx, s.Status.Contributors, writtenOfSet(s, old)...)
		},
		spec:       func(s *v1alpha1.ResourceSet) any { return s.Spec },
		status:     func(s *v1alpha1.ResourceSet) *v1alpha1.ResourceSetStatus { return &s.Status },
		conditions: func(s *v1alpha1.ResourceSetStatus) *[]metav1.Condition { return &s.Conditions },
		validate:   validateResourceSet,
		validateAgainst: func(ctx context.Context, s, old *v1alpha1.ResourceSet) field.ErrorList {
			if old == nil {
				errs := append(c.Kinds.ValidateTemplate(ctx, kinds.TemplateOf(s), nil),
					refuseTakenAddress(ctx, c, s)...)
				return append(errs, refuseTooMany(s, c.StoredObjects.Sets(ctx, s.Namespace))...)
			}
			errs := keepStateFinalizer(ctx, s, old, "instances", "set")
			if countOf(s) > countOf(old) {
				errs = append(errs, refuseTooMany(s, c.StoredObjects.Sets(ctx, s.Namespace))...)
			}
			before := kinds.TemplateOf(old)
			if changed := kinds.TemplateOf(s); !sameSpec(changed, before) {
				errs = append(errs, c.Kinds.ValidateTemplate(ctx, changed, &before)...)
				if changed.APIVersion != before.APIVersion || changed.Kind != before.Kind ||
					changed.Name != before.Name {
					errs = append(errs, refuseTakenAddress(ctx, c, s)...)
				}
			}
			return errs
		},
		warn: func(ctx context.Context, s *v1alpha1.ResourceSet) []string {
			return c.Kinds.TemplateWarnings(ctx, kinds.TemplateOf(s))
		},
		mayWriteStatus: func(ctx context.Context, _, _ *v1alpha1.ResourceSet) field.ErrorList {
			return statusByServer(ctx, "a ResourceSet")
		},
	}
	store, statusREST, err := newStore(c, "resourceset", new(v1alpha1.ResourceSet), new(v1alpha1.ResourceSetList),
		strategy, resourceSetTable)
	if err != nil {
		return nil, nil, err
	}
	store.DeleteStrategy = markSet{store.DeleteStrategy}
	return &resourceREST{
		Store: store, short: "rset",
		mayWrite: func(ctx context.Context, obj, old runtime.Object) error {
			before, _ := old.(*v1alpha1.ResourceSet)
			return mayWriteSet(ctx, c.Kinds, obj.(*v1alpha1.ResourceSet), before)
		},
		mayDelete: func(ctx context.Context, obj runtime.Object) error {
			return c.Kinds.AuthorizeDelete(ctx, kinds.TemplateOf(obj.(*v1alpha1.ResourceSet)))
		},
		warnDeleted: func(ctx context.Context, obj runtime.Object) { warnSetDeleted(ctx, obj.(*v1alpha1.ResourceSet)) },
	}, statusREST, nil
}

// warnSetDeleted adds warnings about the deletion of a set whose instances have infrastructure.
func warnSetDeleted(ctx context.Context, s *v1alpha1.ResourceSet) {
	if !slices.Contains(s.Finalizers, v1alpha1.FinalizerState) {
		return
	}
	what := "the next plan destroys its instances. Their infrastructure stays until you approve that plan"
	if lifecycle, err := resourceset.DecodeObject(s.Spec.Template.Lifecycle); err == nil &&
		lifecycle["destroy"] == false {
		what = "lifecycle.destroy of its template is false, so the next plan forgets its instances, and their infrastructure stays"
	}
	warning.AddWarning(ctx, "", fmt.Sprintf(
		"ResourceSet %q is marked for deletion: %s. Until then kubectl hykube undelete resourceset/%s -n %s takes the deletion back.", s.Name, what, s.Name, s.Namespace))
	warning.AddWarning(ctx, "", deletion.WarningWaits)
}

func validateResourceSet(s *v1alpha1.ResourceSet) field.ErrorList {
	errs := validateObjectName(s.Name)
	spec := field.NewPath("spec")
	given := 0
	for _, set := range []bool{s.Spec.Count != nil, s.Spec.ForEach != nil, s.Spec.ForEachFrom != nil} {
		if set {
			given++
		}
	}
	switch {
	case given == 0:
		errs = append(errs, field.Required(spec, "one of spec.count, spec.forEach and spec.forEachFrom"))
	case given > 1:
		errs = append(errs, field.Invalid(spec, field.OmitValueType{},
			"spec.count, spec.forEach and spec.forEachFrom exclude each other: remove all but one"))
	}
	if n := s.Spec.Count; n != nil && (*n < 0 || *n > resourceset.MaxCount) {
		errs = append(errs, field.Invalid(spec.Child("count"), *n,
			fmt.Sprintf("must be between 0 and %d; use several sets for more", resourceset.MaxCount)))
	}
	if from := s.Spec.ForEachFrom; from != nil {
		for _, msg := range validation.IsDNS1123Subdomain(from.ConfigMap.Name) {
			errs = append(errs, field.Invalid(spec.Child("forEachFrom", "configMap", "name"),
				shorten(from.ConfigMap.Name), msg))
		}
	}
	errs = append(errs, validateRollout(s.Spec.Rollout, spec.Child("rollout"))...)
	template := spec.Child("template")
	if name := s.Spec.Template.Metadata.Name; name != "" {
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(template.Child("metadata", "name"), shorten(name), msg))
		}
	}
	errs = append(errs, metav1validation.ValidateLabels(s.Spec.Template.Metadata.Labels,
		template.Child("metadata", "labels"))...)
	for name, raw := range map[string]*runtime.RawExtension{"spec": s.Spec.Template.Spec,
		"lifecycle": s.Spec.Template.Lifecycle} {
		if _, err := resourceset.DecodeObject(raw); err != nil {
			errs = append(errs, field.Invalid(template.Child(name), field.OmitValueType{}, err.Error()))
		}
	}
	if len(errs) > 0 {
		return errs
	}
	expanded, err := resourceset.New(s, 0, nil)
	if err != nil {
		return append(errs, field.Invalid(template, field.OmitValueType{}, err.Error()))
	}
	if expanded.Problem != "" && expanded.Source == "" {
		errs = append(errs, field.Invalid(spec.Child("forEach"), field.OmitValueType{}, expanded.Problem))
	}
	return append(errs, validateInstances(s, expanded)...)
}

func validateRollout(r *v1alpha1.ResourceSetRollout, at *field.Path) (errs field.ErrorList) {
	if r == nil {
		return nil
	}
	number := func(v intstr.IntOrString, least int, at *field.Path) {
		if err := resourceset.CheckNumber(v, least); err != nil {
			errs = append(errs, field.Invalid(at, shorten(v.String()), err.Error()))
		}
	}
	if r.MaxUnavailable != nil {
		number(*r.MaxUnavailable, 1, at.Child("maxUnavailable"))
	}
	if r.MaxFailures != nil {
		number(*r.MaxFailures, 0, at.Child("maxFailures"))
	}
	waves := at.Child("waves")
	if len(r.Waves) > resourceset.MaxWaves {
		return append(errs, field.TooMany(waves, len(r.Waves), resourceset.MaxWaves))
	}
	for i, w := range r.Waves {
		number(w, 1, waves.Index(i))
		if i > 0 && w.Type == r.Waves[i-1].Type && len(errs) == 0 && !ascending(r.Waves[i-1], w) {
			errs = append(errs, field.Invalid(waves.Index(i), w.String(),
				"must be greater than the wave before it: a wave counts the instances from the first one on"))
		}
	}
	switch pause := at.Child("pause"); {
	case r.Pause == nil:
	case r.Pause.Duration < 0 || r.Pause.Duration > resourceset.MaxPause:
		errs = append(errs, field.Invalid(pause, r.Pause.Duration.String(),
			fmt.Sprintf("must be between 0s and %s", resourceset.MaxPause)))
	case len(r.Waves) == 0:
		errs = append(errs, field.Invalid(pause, r.Pause.Duration.String(),
			"is between two waves: add spec.rollout.waves, such as [1]"))
	}
	return errs
}

// ascending reports whether the second of two numbers, or of two percentages, is greater. Both are valid.
func ascending(a, b intstr.IntOrString) bool {
	first, _ := intstr.GetScaledValueFromIntOrPercent(&a, 100, false)
	second, _ := intstr.GetScaledValueFromIntOrPercent(&b, 100, false)
	return second > first
}

// validateInstances validates the parts of a set that name single instances.
func validateInstances(s *v1alpha1.ResourceSet, expanded *resourceset.Set) field.ErrorList {
	var errs field.ErrorList
	imports, moved := field.NewPath("spec", "imports"), field.NewPath("spec", "moved")
	for i, by := range s.Spec.Imports {
		at := imports.Index(i)
		errs = append(errs, validateKey(expanded, by.Key, at.Child("key"))...)
		switch {
		case by.ID == "" && by.Identity == nil:
			errs = append(errs, field.Required(at, "id or identity of the existing resource"))
		case by.ID != "" && by.Identity != nil:
			errs = append(errs, field.Invalid(at, field.OmitValueType{},
				"id and identity exclude each other; remove one of the two"))
		}
		if _, err := resourceset.DecodeObject(by.Identity); err != nil {
			errs = append(errs, field.Invalid(at.Child("identity"), field.OmitValueType{}, err.Error()))
		} else if resourceset.HasTemplate(by.Identity) {
			errs = append(errs, field.Invalid(at.Child("identity"), field.OmitValueType{},
				"must not have an expression, because an import of an instance names a constant: write the values of the identity"))
		}
	}
	for i, m := range s.Spec.Moved {
		at := moved.Index(i)
		errs = append(errs, validateKey(expanded, m.Key, at.Child("key"))...)
		if a, err := lang.ParseAddress(m.From); err != nil || a.Namespace != "" || a.Mode != "" {
			errs = append(errs, field.Invalid(at.Child("from"), shorten(m.From),
				`must be the address of a managed resource in the same namespace, such as "sim_instance.web"`))
		}
	}
	return errs
}

// validateKey validates the form of the key of an instance. The set need not have the instance: an entry of
// spec.imports or spec.moved may stay when the instance leaves the set.
func validateKey(s *resourceset.Set, text string, path *field.Path) field.ErrorList {
	if s.Repeats != lang.RepeatCount {
		return nil
	}
	if i, err := strconv.Atoi(text); err != nil || i < 0 || strconv.Itoa(i) != text {
		return field.ErrorList{field.Invalid(path, shorten(text),
			"must be the index of an instance, because the set has spec.count")}
	}
	return nil
}

// refuseTakenAddress refuses a template with the address of an object or of another set.
func refuseTakenAddress(ctx context.Context, c Config, s *v1alpha1.ResourceSet) field.ErrorList {
	t := kinds.TemplateOf(s)
	path, address := field.NewPath("spec", "template", "metadata", "name"),
		lang.Address{Type: v1alpha1.TypeOf(t.Kind), Name: t.Name}
	kind, err := c.Kinds.TemplateKind(t)
	if err != nil {
		return nil // ValidateTemplate reports it
	}
	single, err := c.StoredObjects.Get(ctx, kind.Stored(), s.Namespace, t.Name)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if single != nil && single.GetDeletionTimestamp() == nil && !slices.ContainsFunc(s.Spec.Moved,
		func(m v1alpha1.InstanceMove) bool { return m.From == address.String() }) {
		return field.ErrorList{field.Invalid(path, t.Name,
			fmt.Sprintf("the object %s/%s has the address %s already: choose another name, or name the object in spec.moved and delete it", t.Kind, t.Name, address))}
	}
	left, err := c.Backend.FormerSet(ctx,
		v1alpha1.ObjectReference{APIVersion: t.APIVersion, Kind: t.Kind, Namespace: s.Namespace, Name: t.Name}, s.UID)
	if err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	if left != "" {
		return field.ErrorList{field.Invalid(path, t.Name,
			fmt.Sprintf("instances with the address %s left the ResourceSet %q and still have infrastructure: apply a Plan that destroys it first, or choose another name", address, left))}
	}
	for set, err := range c.StoredObjects.Sets(ctx, s.Namespace) {
		if err != nil {
			return field.ErrorList{field.InternalError(path, err)}
		}
		if set.Name == s.Name {
			continue
		}
		if set.Spec.Template.Kind == t.Kind && set.Spec.Template.APIVersion == t.APIVersion &&
			resourceset.NameOf(set) == t.Name {
			return field.ErrorList{field.Invalid(path, t.Name,
				fmt.Sprintf("the ResourceSet %q has instances with the address %s already: choose another name",
					set.Name, address))}
		}
	}
	return nil
}

// refuseTooMany refuses a count with which the sets of the namespace would have too many instances. The index holds
// each of them, so a user who may write sets could otherwise exhaust the memory of the server. all are the sets of the
// namespace.
func refuseTooMany(s *v1alpha1.ResourceSet, all iter.Seq2[*v1alpha1.ResourceSet, error]) field.ErrorList {
	path, wanted, others := field.NewPath("spec", "count"), countOf(s), int64(0)
	for set, err := range all {
		if err != nil {
			return field.ErrorList{field.InternalError(path, err)}
		}
		if set.Name != s.Name {
			others += countOf(set)
		}
	}
	if wanted+others <= resourceset.MaxTotal {
		return nil
	}
	return field.ErrorList{field.Invalid(path, wanted,
		fmt.Sprintf("the other sets of the namespace have %d instances, and all together may have %d: use another namespace", others, int64(resourceset.MaxTotal)))}
}

// countOf returns spec.count; 0 for a set with keys.
func countOf(s *v1alpha1.ResourceSet) int64 {
	if s.Spec.Count == nil {
		return 0
	}
	return int64(*s.Spec.Count)
}

// mayWriteSet checks the rights of a set's author on the kind of the template. old is nil for a new set.
func mayWriteSet(ctx context.Context, k *kinds.Kinds, s, old *v1alpha1.ResourceSet) error {
	t := kinds.TemplateOf(s)
	if old == nil {
		return k.AuthorizeTemplate(ctx, t, true, store.VerbCreate)
	}
	if sameSpec(s.Spec, old.Spec) {
		if maps.Equal(s.Labels, old.Labels) {
			return nil
		}
		return k.AuthorizeTemplate(ctx, t, false, store.VerbUpdate) // the instances have the labels of the set
	}
	before := kinds.TemplateOf(old)
	verbs := changeVerbs(s, old)
	if before.APIVersion != t.APIVersion || before.Kind != t.Kind || before.Name != t.Name {
		if err := k.AuthorizeDelete(ctx, before); err != nil {
			return err
		}
		verbs = append(verbs, store.VerbCreate)
	}
	return k.AuthorizeTemplate(ctx, t, true, verbs...)
}

// changeVerbs returns the verbs that the author of a change needs: to create instances, to update the others, and to
// delete those that leave the set. It does not read keys from a ConfigMap, so a change of such a set needs all verbs.
func changeVerbs(s, old *v1alpha1.ResourceSet) []string {
	verbs := []string{store.VerbUpdate}
	now, err := resourceset.New(s, 0, nil)
	before, oldErr := resourceset.New(old, 0, nil)
	if err != nil || oldErr != nil || now.Source != "" || before.Source != "" {
		return append(verbs, store.VerbCreate, store.VerbDelete)
	}
	if lacksAny(before, now) {
		verbs = append(verbs, store.VerbCreate)
	}
	if lacksAny(now, before) {
		verbs = append(verbs, store.VerbDelete)
	}
	return verbs
}

// lacksAny reports whether a set lacks an instance that another one has.
func lacksAny(set, other *resourceset.Set) bool {
	for i := range other.Len() {
		if !set.Has(other.Key(i)) {
			return true
		}
	}
	return false
}

// desired returns the number of instances that the spec asks for: that of the status, which may be older, if the keys
// say it.
func desired(s *v1alpha1.ResourceSet) int64 {
	if s.Spec.Count != nil {
		return int64(*s.Spec.Count)
	}
	return int64(s.Status.Instances)
}

var resourceSetTable = tableConvertor{
	columns: []metav1.TableColumnDefinition{
		nameColumn,
		column("Kind", "string", "Kind of the template.", 0),
		column("Desired", "integer", "Number of instances that the spec asks for; with the reason KeysUnknown, the last known number.", 0),
		column("Ready", "integer", "Number of instances that are applied and ready.", 0),
		reasonColumn, ageColumn,
		column("Failed", "integer", "Number of instances with a failure.", 1),
		column("Pending", "integer", "Number of instances that wait for a plan.", 1),
		column("Leaving", "integer", "Number of instances that the next plan destroys.", 1),
		whyColumn,
	},
	cells: func(obj runtime.Object) []any {
		s := obj.(*v1alpha1.ResourceSet)
		_, reason, message := readinessCells(s, s.Status.Conditions)
		return []any{s.Name, strings.TrimSpace(s.Spec.Template.Kind), desired(s), int64(s.Status.Ready), reason,
			age(s.CreationTimestamp),
			int64(s.Status.Failed), int64(s.Status.Pending), int64(s.Status.Leaving), message}
	},
}
