package fieldnames

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Mistyped is a field whose value its type cannot have.
type Mistyped struct {
	// Path is the path of the field in Kubernetes' format.
	Path string
	// Problem is the text after the path. It has no value, because the value may be secret.
	Problem string
}

// Error returns the path and the expected form.
func (m Mistyped) Error() string { return m.Path + ": " + m.Problem }

// CheckValues returns the fields of an object whose values its type cannot have. It ignores unknown fields and null.
func CheckValues(object map[string]any, t reflect.Type) []Mistyped {
	return checkValue(object, t, "", nil)
}

// forms has the expected values of the types that decode themselves.
var forms = map[reflect.Type]string{
	reflect.TypeFor[metav1.Duration]():    `a duration, such as "5m"`,
	reflect.TypeFor[metav1.Time]():        `a time, such as "2006-01-02T15:04:05Z"`,
	reflect.TypeFor[metav1.MicroTime]():   `a time, such as "2006-01-02T15:04:05.000000Z"`,
	reflect.TypeFor[intstr.IntOrString](): `a whole number or a percentage, such as 3 or "10%"`,
}

func checkValue(v any, t reflect.Type, path string, out []Mistyped) []Mistyped {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if v == nil {
		return out
	}
	if !reflect.PointerTo(t).Implements(unmarshaler) {
		object, isObject := v.(map[string]any)
		list, isList := v.([]any)
		switch {
		case isObject && t.Kind() == reflect.Struct:
			known := fields(t)
			for _, name := range slices.Sorted(maps.Keys(object)) {
				if f, ok := known[name]; ok {
					out = checkValue(object[name], f, join(path, name), out)
				}
			}
			return out
		case isObject && t.Kind() == reflect.Map:
			for _, key := range slices.Sorted(maps.Keys(object)) {
				out = checkValue(object[key], t.Elem(), join(path, key), out)
			}
			return out
		case isList && t.Kind() == reflect.Slice:
			for i, e := range list {
				out = checkValue(e, t.Elem(), fmt.Sprintf("%s[%d]", path, i), out)
			}
			return out
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return out
	}
	if err = json.Unmarshal(raw, reflect.New(t).Interface()); err == nil {
		return out
	}
	form, textual := forms[t], true
	if form == "" {
		if _, isType := errors.AsType[*json.UnmarshalTypeError](err); !isType {
			return append(out, Mistyped{path, err.Error()}) // the type's own explanation
		}
		form = formOf(t)
		textual = form == base64Form
	}
	text, isText := v.(string)
	if !isText || !textual { // a text in another form is a string, too
		form += butIs(v)
	}
	if isText && strings.Contains(text, "${") {
		form += "; this field takes no expression"
	} else if isText && json.Unmarshal([]byte(text), reflect.New(t).Interface()) == nil {
		form += "; write it without quotes"
	}
	return append(out, Mistyped{path, "must be " + form})
}

// base64Form is the expected value of bytes.
const base64Form = "a string in base64"

// formOf returns the expected value of a type that has the JSON form of its kind.
func formOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer of %d bits, at least 0", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return base64Form
		}
		return "a list"
	}
	return "an object"
}

// butIs names the form that a value has.
func butIs(v any) string {
	switch v.(type) {
	case string:
		return ", but is a string"
	case bool:
		return ", but is a boolean"
	case float64, int64:
		return ", but is a number"
	case []any:
		return ", but is a list"
	}
	return ", but is an object"
}
