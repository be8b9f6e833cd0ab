package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/fieldnames"
	"github.com/hykube/hykube/internal/suggest"
)

// lifecycleField is a field of lifecycle.
type lifecycleField struct {
	name        string
	description string
	typ         lifecycleType
	// modes lists the modes whose objects have the field.
	modes []v1alpha1.Mode
	// check validates one string, or the whole value of a structured type; nil accepts any value.
	check func(ctx context.Context, s *served, u *unstructured.Unstructured, path *field.Path,
		value any) field.ErrorList
}

type lifecycleType int

const (
	lifecycleString lifecycleType = iota
	lifecycleBool
	lifecycleStrings
	lifecycleChecks
	lifecycleImport
	lifecycleMoved
)

// Names of fields that code outside of lifecycleFields uses.
const (
	fieldImport         = "import"
	fieldMoved          = "moved"
	fieldPreconditions  = "preconditions"
	fieldPostconditions = "postconditions"
)

// lifecycleFields returns the fields of lifecycle, Terraform's meta-arguments, sorted by name.
func lifecycleFields() []lifecycleField {
	managed := []v1alpha1.Mode{v1alpha1.ModeManaged}
	all := modes()
	results := []v1alpha1.Mode{v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeEphemeral}
	return []lifecycleField{
		{"createBeforeDestroy", "Create the replacement before the old instance is destroyed. Dependencies of the resource are replaced in the same order.",
			lifecycleBool, managed, nil},
		{"dependsOn", `Addresses of objects to create or read first, such as "sim_network.main" or "data.sim_image.base", where no expression refers to them.`,
			lifecycleStrings, all, checkDependency},
		{"destroy", "Whether deleting the object, or replacing it, destroys the infrastructure (the default). With false Hykube removes its record and keeps the infrastructure.",
			lifecycleBool, managed, nil},
		{"ignoreChanges", `Arguments whose changes are ignored, such as "tags" or "rule[0].port"; ["all"] for every one.`,
			lifecycleStrings, managed, checkIgnored},
		{fieldImport, "ID or identity of existing infrastructure to import. Ignored if the object has infrastructure.",
			lifecycleImport, managed, checkImport},
		{fieldMoved, "Take over the record of another object, to rename a resource or to change its type.",
			lifecycleMoved, managed, checkMoved},
		{fieldPostconditions, "Conditions that are checked after the change; self is the resource. A false one fails the change and stops the changes that depend on it.",
			lifecycleChecks, results, checkCondition},
		{fieldPreconditions, "Conditions that are checked before the provider is called. A false one fails the change.",
			lifecycleChecks, all, checkCondition},
		{"preventDestroy", "Block each change that would destroy or replace the infrastructure. A partial approval applies the rest of the plan.",
			lifecycleBool, managed, nil},
		{"providerConfig", `Name of the ProviderConfig. Defaults to "default" if it belongs to this provider, else to the one with the Provider's name, else to none.`,
			lifecycleString, all, checkConfigName},
		{"replaceTriggeredBy", `Replace the resource when one of these changes: resources, or attributes of them, such as "sim_network.main", "sim-network/main" or "sim_network.main.id".`,
			lifecycleStrings, managed, checkTrigger},
	}
}

func (f lifecycleField) in(mode v1alpha1.Mode) bool { return slices.Contains(f.modes, mode) }

func checkConfigName(_ context.Context, _ *served, _ *unstructured.Unstructured, path *field.Path,
	v any) field.ErrorList {
	if msgs := apivalidation.NameIsDNSSubdomain(v.(string), false); len(msgs) > 0 {
		return field.ErrorList{field.Invalid(path, v, "must be the name of a ProviderConfig: "+msgs[0])}
	}
	return nil
}

// validateLifecycle checks the names and types of the fields, and their values as far as possible without other
// objects.
func (s *served) validateLifecycle(ctx context.Context, u *unstructured.Unstructured) field.ErrorList {
	raw, ok := u.Object["lifecycle"]
	if !ok || raw == nil {
		return nil
	}
	path := field.NewPath("lifecycle")
	m, ok := raw.(map[string]any)
	if !ok {
		return field.ErrorList{field.Invalid(path, raw, "must be an object, got "+describe(raw))}
	}
	var errs field.ErrorList
	for _, f := range lifecycleFields() {
		if v := m[f.name]; v != nil && f.in(s.Mode) {
			errs = append(errs, f.validate(ctx, s, u, path.Child(f.name), v)...)
		}
	}
	errs = append(errs, unknownFieldErrors(s.unknownLifecycle(u))...)
	return errs
}

func (f lifecycleField) validate(ctx context.Context, s *served, u *unstructured.Unstructured, path *field.Path,
	v any) field.ErrorList {
	check := func(path *field.Path, v any) field.ErrorList {
		if f.check == nil {
			return nil
		}
		return f.check(ctx, s, u, path, v)
	}
	each := func(words string, one func(*field.Path, any) field.ErrorList) field.ErrorList {
		list, ok := v.([]any)
		if !ok {
			hint := ""
			if text, ok := v.(string); ok && f.typ == lifecycleStrings {
				hint = fmt.Sprintf("; write [%q]", text)
			}
			return field.ErrorList{field.Invalid(path, v, "must be a list of "+words+", got "+describe(v)+hint)}
		}
		if len(list) > maxLifecycleItems {
			return field.ErrorList{field.TooMany(path, len(list), maxLifecycleItems)}
		}
		var errs field.ErrorList
		for i, v := range list {
			errs = append(errs, one(path.Index(i), v)...)
		}
		return errs
	}
	text := func(path *field.Path, v any) field.ErrorList {
		if _, ok := v.(string); !ok {
			return field.ErrorList{field.Invalid(path, v, "must be a string, got "+describe(v))}
		}
		return check(path, v)
	}
	switch f.typ {
	case lifecycleBool:
		if _, ok := v.(bool); !ok {
			return field.ErrorList{field.Invalid(path, v, "must be true or false, got "+describe(v))}
		}
		return check(path, v)
	case lifecycleStrings:
		return each("strings", text)
	case lifecycleChecks:
		return each("conditions", check)
	case lifecycleString:
		return text(path, v)
	default:
		return check(path, v)
	}
}

// maxLifecycleItems is the maximum length of each list in a lifecycle.
const maxLifecycleItems = 1000

// unknownLifecycle returns the unknown fields of lifecycle.
func (s *served) unknownLifecycle(u *unstructured.Unstructured) []fieldnames.Unknown {
	m, _ := u.Object["lifecycle"].(map[string]any)
	var out []fieldnames.Unknown
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(lifecycleFields(),
			func(f lifecycleField) bool { return f.name == name && f.in(s.Mode) }) {
			out = append(out, s.unknownLifecycleField(name))
		}
	}
	return out
}

// unknownLifecycleField returns the error for an unknown field. It has a hint if other modes have the field.
func (s *served) unknownLifecycleField(name string) fieldnames.Unknown {
	for _, f := range lifecycleFields() {
		if f.name == name {
			return fieldnames.Unknown{Path: "lifecycle." + name, Hint: map[v1alpha1.Mode]string{
				v1alpha1.ModeData:      "a data source has no such argument, because plans only read it",
				v1alpha1.ModeEphemeral: "an ephemeral resource has no such argument, because Hykube only opens and closes it",
				v1alpha1.ModeAction:    "an action has no such argument, because it has no infrastructure",
			}[s.Mode]}
		}
	}
	return fieldnames.Unknown{Path: "lifecycle." + name, Hint: fieldnames.DidYouMean(s.lifecycleHint(name))}
}

// lifecycleHint returns the field for a name in Terraform's spelling ("prevent_destroy", "precondition").
func (s *served) lifecycleHint(name string) string {
	plain := func(s string) string {
		return strings.TrimSuffix(strings.ToLower(strings.ReplaceAll(s, "_", "")), "s")
	}
	for _, f := range lifecycleFields() {
		if f.in(s.Mode) && plain(f.name) == plain(name) {
			return "lifecycle." + f.name
		}
	}
	switch plain(name) {
	case "provider":
		return "lifecycle.providerConfig"
	case "condition", "check":
		return "lifecycle." + fieldPreconditions
	}
	var names []string
	for _, f := range lifecycleFields() {
		if f.in(s.Mode) {
			names = append(names, f.name)
		}
	}
	if near := suggest.Nearest(name, names); near != "" {
		return "lifecycle." + near
	}
	return ""
}
