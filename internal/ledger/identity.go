package ledger

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
)

// ID returns the value of the attribute "id", the digits of a number. It returns "" if there is none, or if it is
// neither a string nor a number.
func (s *State) ID() string {
	if s == nil {
		return ""
	}
	var recorded struct {
		ID json.RawMessage `json:"id"`
	}
	if json.Unmarshal(s.Attributes, &recorded) != nil {
		return ""
	}
	return textOf(recorded.ID)
}

// Text returns the value of an attribute, the digits of a number. It returns "" if there is none, or if it is neither a
// string nor a number.
func (s *State) Text(attribute string) string {
	var recorded map[string]json.RawMessage
	if json.Unmarshal(s.Attributes, &recorded) != nil {
		return ""
	}
	return textOf(recorded[attribute])
}

func textOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(raw, &number) == nil {
		return number.String()
	}
	return ""
}

// SameID reports whether two IDs or identities may name one resource. Some clouds ignore case, such as Azure, so SameID
// does, too.
func SameID(a, b string) bool { return FoldID(a) == FoldID(b) }

// FoldID returns the normal form of an ID or identity. SameID compares the normal forms.
func FoldID(id string) string { return strings.ToLower(strings.TrimSpace(id)) }

// IdentityText returns the identity as a text for comparisons; see CanonicalIdentity. It returns "" if there is none.
func (s *State) IdentityText() string {
	if s == nil || len(s.Identity) == 0 {
		return ""
	}
	return CanonicalIdentity(s.Identity)
}

// CanonicalIdentity normalizes an identity, so that equal identities have equal texts. It omits nulls, and returns ""
// for an identity without values, which identifies nothing.
func CanonicalIdentity(identity json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(identity))
	d.UseNumber()
	var values map[string]any
	if d.Decode(&values) != nil {
		return string(identity)
	}
	maps.DeleteFunc(values, func(_ string, v any) bool { return v == nil })
	if len(values) == 0 {
		return ""
	}
	out, err := json.Marshal(values) // json.Marshal sorts keys
	if err != nil {
		return string(identity)
	}
	return string(out)
}
