package kinds

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/internal/fieldnames"
	"github.com/hykube/hykube/internal/suggest"
)

// topFields are the fields of every object.
var topFields = []string{"apiVersion", "kind", "metadata", "spec", "lifecycle", "status"}

// topField reports whether objects have the top-level field.
func topField(name string) bool { return slices.Contains(topFields, name) }

// unknownFieldErrors converts unknown fields to validation errors.
func unknownFieldErrors(unknown []fieldnames.Unknown) field.ErrorList {
	var errs field.ErrorList
	for _, e := range unknown {
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: e.Path, Detail: e.Error()})
	}
	return errs
}

// prune removes unknown fields outside of spec and lifecycle from an object and returns them. It also normalizes
// metadata, as decoding into Go types would.
func (s *served) prune(u *unstructured.Unstructured) ([]fieldnames.Unknown, error) {
	unknown := s.unknownTop(u)
	for _, name := range slices.Sorted(maps.Keys(u.Object)) {
		if !topField(name) {
			delete(u.Object, name)
		}
	}
	inMeta, err := pruneMetadata(u)
	return append(unknown, inMeta...), err
}

// unknownTop returns the unknown top-level fields.
func (s *served) unknownTop(u *unstructured.Unstructured) []fieldnames.Unknown {
	var out []fieldnames.Unknown
	for _, name := range slices.Sorted(maps.Keys(u.Object)) {
		if topField(name) {
			continue
		}
		hint := ""
		if a := s.Schema.Block.Attribute(name); a != nil && a.Configurable() ||
			s.Schema.Block.NestedBlock(name) != nil {
			hint = "spec." + name
		} else if s.lifecycleHint(name) == "lifecycle."+name {
			hint = "lifecycle." + name
		} else {
			hint = suggest.Nearest(name, topFields)
		}
		out = append(out, fieldnames.Unknown{Path: name, Hint: fieldnames.DidYouMean(hint)})
	}
	return out
}

// pruneMetadata normalizes metadata and returns its unknown fields.
func pruneMetadata(u *unstructured.Unstructured) ([]fieldnames.Unknown, error) {
	raw, ok := u.Object["metadata"]
	if !ok || raw == nil {
		delete(u.Object, "metadata")
		return nil, nil
	}
	m, unknown, err := decodeMetadata(raw)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("decode metadata: %v", err))
	}
	// GetFinalizers and similar methods read the map, so it must equal the struct.
	canonical, err := runtime.DefaultUnstructuredConverter.ToUnstructured(m)
	if err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	if m.CreationTimestamp.IsZero() {
		delete(canonical, "creationTimestamp")
	}
	u.Object["metadata"] = canonical
	return unknown, nil
}

// decodeMetadata decodes metadata and returns its unknown fields.
func decodeMetadata(raw any) (*metav1.ObjectMeta, []fieldnames.Unknown, error) {
	m, ok := raw.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("must be an object, got %s", describe(raw))
	}
	var out metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &out); err != nil {
		return nil, nil, err
	}
	unknown := fieldnames.Check(m, reflect.TypeFor[metav1.ObjectMeta]())
	for i := range unknown {
		unknown[i].Path = "metadata." + unknown[i].Path
	}
	return &out, unknown, nil
}

// describe returns the JSON type of a value.
func describe(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}
