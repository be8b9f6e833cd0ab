package canary

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// secret is a canary: a text that cannot occur by chance.
type secret struct {
	// name is the place where the test wrote it.
	name string
	text string
	// spec is the object, as RESOURCE/NAME, whose spec has the secret in clear, as its author wrote it; "" means none.
	spec string
	// forms are the text and its encodings.
	forms [][]byte
}

// newSecret returns a secret with a text that is also valid as a name, a URL part and an environment variable.
func newSecret(name string) *secret {
	var random [15]byte
	rand.Read(random[:])
	return named(name, "c"+strings.ToLower(base32.StdEncoding.EncodeToString(random[:])))
}

// named returns a secret with a given text.
func named(name, text string) *secret {
	s := &secret{name: name, text: text}
	raw := []byte(text)
	s.forms = append(s.forms, raw, bytes.ToUpper(raw), []byte(hex.EncodeToString(raw)), []byte(strings.ToUpper(hex.EncodeToString(raw))))
	for before := range 3 {
		s.forms = append(s.forms, within(raw, before))
	}
	return s
}

// within returns the base64 of a text that follows a number of other bytes, without the characters that depend on its
// neighbours. Both alphabets of base64 are alike here, since they differ only in characters that no secret needs.
func within(text []byte, before int) []byte {
	encoded := base64.RawStdEncoding.EncodeToString(append(make([]byte, before), text...))
	from := (before*8 + 5) / 6
	return []byte(encoded[from : (before+len(text))*8/6])
}

// in reports whether data has the secret in any form.
func (s *secret) in(data []byte) bool {
	for _, form := range s.forms {
		if bytes.Contains(data, form) {
			return true
		}
	}
	return false
}
