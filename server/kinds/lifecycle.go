package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
)

// lifecycleField is one of the meta-arguments.
type lifecycleField struct {
	name        string
	typ         lifecycleType
	description string
	// check looks at one string; nil accepts any.
	check func(block *schema.Block, value string) string
	// unsupported looks for a value that plans do not act on yet; it is refused, since who writes it relies on it. Nil accepts all.
	unsupported func(value any) bool
}

type lifecycleType int

const (
	lifecycleString lifecycleType = iota
	lifecycleBool
	lifecycleStrings
)

// lifecycleFields are Terraform's meta-arguments, in the order of their names.
func lifecycleFields() []lifecycleField {
	return []lifecycleField{
		{"createBeforeDestroy", lifecycleBool, "Create the replacement before the old resource is destroyed. Only false is supported so far.", nil, is(true)},
		{"dependsOn", lifecycleStrings, `Resources that must be in place first, as Terraform addresses such as "sim_network.main", where no expression says so already.`, checkAddress, nil},
		{"destroy", lifecycleBool, "Whether deleting the object destroys the infrastructure (the default). Only true is supported so far.", nil, is(false)},
		{"ignoreChanges", lifecycleStrings, `Arguments whose changes are ignored, such as "tags" or "rule[0].port"; "all" for every one.`, checkIgnored, nil},
		{"preventDestroy", lifecycleBool, "Block every change that would destroy or replace the infrastructure; the rest of a plan goes on.", nil, nil},
		{"providerConfig", lifecycleString, `Name of the ProviderConfig to use. When it is left out: "default" if that is one of this provider, else the one named like the provider, else none.`, checkConfigName, nil},
		{"replaceTriggeredBy", lifecycleStrings, `Replace the resource when one of these changes: addresses, or attributes such as "sim_network.main.id". Not supported so far.`, checkAddress, notEmpty},
	}
}

func is(refused bool) func(any) bool { return func(v any) bool { return v == refused } }

func notEmpty(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) > 0
}

func checkAddress(_ *schema.Block, s string) string {
	if _, err := plan.ParseAddress(s); err != nil {
		return err.Error()
	}
	return ""
}

func checkIgnored(block *schema.Block, s string) string {
	if s == "all" {
		return ""
	}
	first, _, _ := strings.Cut(s, ".")
	first, _, _ = strings.Cut(first, "[")
	if block.Attribute(first) == nil && block.NestedBlock(first) == nil {
		return fmt.Sprintf("there is no argument %q; name an argument of spec, without %q before it, or \"all\"", first, "spec.")
	}
	return ""
}

func checkConfigName(_ *schema.Block, s string) string {
	if msgs := apivalidation.NameIsDNSSubdomain(s, false); len(msgs) > 0 {
		return "must be the name of a ProviderConfig: " + msgs[0]
	}
	return ""
}

// validateLifecycle checks names and types, and what can be known of values.
func (s *served) validateLifecycle(u *unstructured.Unstructured) field.ErrorList {
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
	known := map[string]bool{}
	for _, f := range lifecycleFields() {
		known[f.name] = true
		if v, ok := m[f.name]; ok && v != nil {
			errs = append(errs, f.validate(s.Schema.Block, path.Child(f.name), v)...)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !known[name] {
			errs = append(errs, field.Invalid(path.Child(name), m[name], unknownField("lifecycle."+name, lifecycleHint(name)).Error()))
		}
	}
	return errs
}

func (f lifecycleField) validate(block *schema.Block, path *field.Path, v any) field.ErrorList {
	one := func(path *field.Path, v any) field.ErrorList {
		s, ok := v.(string)
		if !ok {
			return field.ErrorList{field.Invalid(path, v, "must be a string, got "+describe(v))}
		}
		if f.check != nil {
			if msg := f.check(block, s); msg != "" {
				return field.ErrorList{field.Invalid(path, v, msg)}
			}
		}
		return nil
	}
	if f.unsupported != nil && f.unsupported(v) {
		return field.ErrorList{field.Forbidden(path, fmt.Sprintf("this version of Hykube does not act on %s: %v yet; remove it", f.name, v))}
	}
	switch f.typ {
	case lifecycleBool:
		if _, ok := v.(bool); !ok {
			return field.ErrorList{field.Invalid(path, v, "must be true or false, got "+describe(v))}
		}
		return nil
	case lifecycleStrings:
		list, ok := v.([]any)
		if !ok {
			return field.ErrorList{field.Invalid(path, v, "must be a list of strings, got "+describe(v))}
		}
		var errs field.ErrorList
		for i, v := range list {
			errs = append(errs, one(path.Index(i), v)...)
		}
		return errs
	default:
		return one(path, v)
	}
}

// unknownLifecycle names the unknown fields of lifecycle.
func unknownLifecycle(u *unstructured.Unstructured) []error {
	m, _ := u.Object["lifecycle"].(map[string]any)
	var out []error
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if !slices.ContainsFunc(lifecycleFields(), func(f lifecycleField) bool { return f.name == name }) {
			out = append(out, unknownField("lifecycle."+name, lifecycleHint(name)))
		}
	}
	return out
}

// lifecycleHint finds the field that somebody meant who wrote it as in Terraform ("prevent_destroy").
func lifecycleHint(name string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
	for _, f := range lifecycleFields() {
		if plain(f.name) == plain(name) {
			return "lifecycle." + f.name
		}
	}
	return ""
}
