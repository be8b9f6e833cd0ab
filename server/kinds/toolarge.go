package kinds

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"
)

// measuredBytes is the size of a body from which it is measured before anything else looks at it.
const measuredBytes = 256 << 10

// refuseTooLarge refuses a body of which the stored object would be too large: the server adds the name of each field to
// metadata.managedFields. To find that out otherwise takes a time that grows with the square of the number of fields.
func refuseTooLarge(s *served, info *request.RequestInfo, r *http.Request) error {
	if r.ContentLength >= 0 && r.ContentLength < measuredBytes {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxRequestBodyBytes+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	if err != nil || len(body) < measuredBytes || len(body) > MaxRequestBodyBytes {
		return nil // the handler says what is wrong with it
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

// leastBytes is how many bytes a value takes at least once it is stored. owned is true where the fields of maps have owners; see
// newParseableType.
func leastBytes(v any, owned bool) int {
	size := 0
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if value == nil {
				continue // in a patch it removes the field
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
