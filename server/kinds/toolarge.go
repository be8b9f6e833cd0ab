package kinds

import (
	"fmt"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// minMeasuredBytes is the minimum size of a body, in bytes, for which refuseTooLarge estimates the size of the stored
// object.
const minMeasuredBytes = 256 << 10

// refuseTooLarge rejects a body whose stored object would be too large, because the server adds the name of each field
// to metadata.managedFields. Without this check, the server would compute these fields first, in a time quadratic in
// their number.
func refuseTooLarge(s *served, info *request.RequestInfo, r *http.Request) error {
	if r.ContentLength >= 0 && r.ContentLength < minMeasuredBytes {
		return nil
	}
	body, err := peekBody(r)
	if err != nil || len(body) < minMeasuredBytes || len(body) > MaxRequestBodyBytes {
		return nil // the handler reports the error
	}
	var object map[string]any
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "", runtime.ContentTypeJSON, string(types.MergePatchType):
		err = utiljson.Unmarshal(body, &object)
	case runtime.ContentTypeYAML, string(types.ApplyYAMLPatchType):
		err = yaml.Unmarshal(body, &object)
	}
	if err != nil {
		return nil
	}
	size := 0
	for _, field := range []string{"spec", "lifecycle"} {
		size += leastBytes(object[field], true)
	}
	if size <= MaxRequestBodyBytes {
		return nil
	}
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
		"%s %q would be at least %d bytes with the names of its fields in metadata.managedFields, and the limit is %d: move large values out of the object, or split it",
		s.GVR.GroupResource(), info.Name, size, MaxRequestBodyBytes))
}

// leastBytes returns the minimum size of a value in a stored object, in bytes. owned is true if metadata.managedFields
// lists the fields of the value; see newParseableType.
func leastBytes(v any, owned bool) int {
	size := 0
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				continue // in a patch, null removes the field
			}
			size += len(key) + len(`"":,`) + leastBytes(value, owned)
			if owned {
				size += len(key) + len(`"f:":{},`)
			}
		}
	case []any:
		for _, value := range v {
			size += 1 + leastBytes(value, false)
		}
	case string:
		size = len(v) + len(`""`)
	default:
		size = 1
	}
	return size
}
