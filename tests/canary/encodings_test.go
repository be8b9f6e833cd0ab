package canary

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestEachEncodingIsFound(t *testing.T) {
	s := newSecret("test")
	quoted, _ := json.Marshal("a \"" + s.text + "\"\n")
	for name, text := range map[string]string{
		"plain":          "before " + s.text + " after",
		"JSON":           string(quoted),
		"URL":            url.QueryEscape("?&" + s.text + "="),
		"hex":            hex.EncodeToString([]byte("x" + s.text)),
		"HEX":            strings.ToUpper(hex.EncodeToString([]byte(s.text))),
		"base64":         base64.StdEncoding.EncodeToString([]byte(s.text)),
		"base64 after 1": base64.StdEncoding.EncodeToString([]byte("?" + s.text + "!")),
		"base64 after 2": base64.URLEncoding.EncodeToString([]byte("??" + s.text + "!!")),
		"base64 after 3": base64.StdEncoding.EncodeToString([]byte("???" + s.text + "!!!")),
	} {
		if !s.in([]byte(text)) {
			t.Errorf("%s: %q is not found in %q", name, s.text, text)
		}
	}
	if s.in([]byte("c" + strings.Repeat("a", 24))) {
		t.Error("another text is found")
	}
}
