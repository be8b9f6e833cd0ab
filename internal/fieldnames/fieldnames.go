// Package fieldnames finds the fields of an object that its Go type lacks, and suggests similar names. It also finds
// the values that the type cannot have. It imports only internal/suggest and apimachinery.
package fieldnames

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/hykube/hykube/internal/suggest"
)

// Unknown is a field that a type lacks.
type Unknown struct {
	// Path is the path of the field in Kubernetes' format: spec.secretRefs[0].nmae.
	Path string
	// Hint suggests another field, or explains why there is none; it may be empty.
	Hint string
}

// Error returns Kubernetes' message with the hint.
func (u Unknown) Error() string {
	if u.Hint == "" {
		return fmt.Sprintf("unknown field %q", u.Path)
	}
	return fmt.Sprintf("unknown field %q (%s)", u.Path, u.Hint)
}

// DidYouMean returns a hint that suggests a field, or "" for none.
func DidYouMean(field string) string {
	if field == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", field)
}

// maxListed is the maximum number of fields of a struct that a hint lists.
const maxListed = 8

// Check returns the fields of an object that a type lacks.
func Check(object map[string]any, t reflect.Type) []Unknown { return check(object, t, "", nil) }

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func check(v any, t reflect.Type, path string, out []Unknown) []Unknown {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return out
	}
	switch v := v.(type) {
	case map[string]any:
		switch t.Kind() {
		case reflect.Struct:
			return checkStruct(v, t, path, out)
		case reflect.Map:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				out = check(v[key], t.Elem(), join(path, key), out)
			}
		}
	case []any:
		if t.Kind() == reflect.Slice {
			for i, e := range v {
				out = check(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), out)
			}
		}
	}
	return out
}

func checkStruct(v map[string]any, t reflect.Type, path string, out []Unknown) []Unknown {
	known := fields(t)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if f, ok := known[name]; ok {
			out = check(v[name], f, join(path, name), out)
			continue
		}
		near := suggest.Nearest(name, slices.Sorted(maps.Keys(known)))
		if spec, ok := known["spec"]; ok && near == "" && fields(spec)[name] != nil {
			near = "spec." + name
		}
		hint := DidYouMean(near)
		switch {
		case name == "true" || name == "false":
			hint = "YAML reads on, yes, off and no without quotes as true and false; kubectl explain lists the fields"
		case near == "" && len(known) <= maxListed:
			hint = "the fields are " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
		}
		out = append(out, Unknown{join(path, name), hint})
	}
	return out
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// fields maps the JSON names of a struct's fields, including those of embedded structs, to their types.
func fields(t reflect.Type) map[string]reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	out := map[string]reflect.Type{}
	if t.Kind() != reflect.Struct {
		return out
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			maps.Copy(out, fields(f.Type))
		case name != "" && name != "-":
			out[name] = f.Type
		}
	}
	return out
}
