package ledger

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// normalize formats attributes so that equal values have equal texts: it omits null and empty members and normalizes
// JSON in strings. It returns text that is not JSON unchanged.
func normalize(attributes json.RawMessage) []byte {
	v, ok := decode(string(attributes))
	if !ok {
		return attributes
	}
	text, err := json.Marshal(normalValue(v))
	if err != nil {
		return attributes
	}
	return text
}

func normalValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			if member = normalValue(member); member != nil {
				out[name] = member
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case []any:
		if len(v) == 0 {
			return nil
		}
		out := make([]any, len(v))
		for i := range v {
			out[i] = normalValue(v[i])
		}
		return out
	case string:
		if inner := strings.TrimSpace(v); strings.HasPrefix(inner, "{") || strings.HasPrefix(inner, "[") {
			if document, ok := decode(inner); ok {
				return []any{"json", document} // keep it unchanged: a null in the document may have a meaning
			}
		}
		return v
	default:
		return v
	}
}

// decode decodes one JSON value and keeps the digits of its numbers.
func decode(text string) (any, bool) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}
