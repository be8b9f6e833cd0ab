package kinds

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// maxKeys is the maximum number of keys of a map in an object. Kubernetes' managed fields insert each key into a sorted
// list. So the time of a write grows with the square of this number: 60,000 keys took ten seconds.
const maxKeys = 10_000

// limitKeys returns an error for a body with a map of more than maxKeys keys. It leaves the body unread.
func limitKeys(r *http.Request) error {
	body, err := peekBody(r)
	if err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("read request body: %v", err))
	}
	if len(body) > MaxRequestBodyBytes {
		return nil // the decoder refuses it
	}
	if n := largestMap(body); n > maxKeys {
		return apierrors.NewRequestEntityTooLargeError(
			fmt.Sprintf("a map in the object has %d keys, and the limit is %d; use several objects", n, maxKeys))
	}
	return nil
}

// peekBody returns the beginning of a body, up to one byte more than a body may have, and leaves the body unread.
func peekBody(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxRequestBodyBytes+1))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), r.Body), r.Body}
	return body, err
}

// largestMap returns the number of keys of the largest map in a JSON or YAML document; 0 if it is neither.
func largestMap(document []byte) int {
	if !json.Valid(document) { // YAML may begin with a brace, too
		converted, err := yaml.YAMLToJSON(document)
		if err != nil {
			return 0
		}
		document = converted
	}
	most, quoted := 0, false
	var open []int // the number of keys so far of each map and list that contains the current place
	for i := 0; i < len(document); i++ {
		switch c := document[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			open = append(open, 0)
		case len(open) == 0:
		case c == '}' || c == ']':
			open = open[:len(open)-1]
		case c == ':':
			open[len(open)-1]++
			most = max(most, open[len(open)-1])
		}
	}
	return most
}

// tooManyKeys returns an error for each map of more than maxKeys keys in a value. Patches can make such a map in
// several requests.
func tooManyKeys(value any, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch v := value.(type) {
	case map[string]any:
		if len(v) > maxKeys {
			return field.ErrorList{field.TooMany(path, len(v), maxKeys)}
		}
		for key, inner := range v {
			errs = append(errs, tooManyKeys(inner, path.Child(key))...)
		}
	case []any:
		for i, inner := range v {
			errs = append(errs, tooManyKeys(inner, path.Index(i))...)
		}
	}
	return errs
}
