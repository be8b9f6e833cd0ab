package ledger

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
)

// normal writes attributes so that two forms of the same values are the same text: without members that are null or empty, with
// JSON in strings written in one way. Text that is not JSON is returned as it is.
func normal(attributes json.RawMessage) []byte {
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
				return []any{"json", document} // as it is: whoever wrote it may mean a null in it
			}
		}
		return v
	default:
		return v
	}
}

// decode reads one JSON value, and keeps its numbers as they are written.
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
