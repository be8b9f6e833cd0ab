package plan

import (
	"testing"

	"github.com/hykube/hykube/internal/lang"
)

// TestSecretsAreFoundAsTheyAre has what a secret looks like in a message, and what only looks like one.
func TestSecretsAreFoundAsTheyAre(t *testing.T) {
	const key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nshort\n-----END KEY-----\n"
	for name, tc := range map[string]struct{ secret, text, want string }{
		"alone":                            {"test", "test", lang.Mask},
		"a short one within words":         {"test", "the latest test, tested", "the latest " + lang.Mask + ", tested"},
		"a short one in an address":        {"pw12", "https://me:pw12@db_pw12", "https://me:" + lang.Mask + "@db_" + lang.Mask},
		"a long one within words":          {"hunter2hunter2", "xhunter2hunter2y", "x" + lang.Mask + "y"},
		"a common word":                    {"default", "no default network", "no default network"},
		"a truth value":                    {"True", "want true, got True", "want true, got True"},
		"within quotes":                    {"pa\"ss\\word", `invalid: "pa\"ss\\word"`, `invalid: "` + lang.Mask + `"`},
		"in a query":                       {"a&b c=d", "GET /?p=a%26b+c%3Dd", "GET /?p=" + lang.Mask},
		"in a path":                        {"a/b c=d", "GET /a%2Fb%20c=d", "GET /" + lang.Mask},
		"a key, whole":                     {key, "bad key: " + key, "bad key: " + lang.Mask},
		"a line of a key":                  {key, "bad line MIIEvQIBADANBgkqhkiG9w0B, short", "bad line " + lang.Mask + ", short"},
		"a short line of a text":           {"user-one:hunter\nuser-two:hunter2\n", "line user-two:hunter2 is bad", "line " + lang.Mask + " is bad"},
		"beside letters that are no ASCII": {"pässword", "größerpässword: pässword", "größer" + lang.Mask + ": " + lang.Mask},
	} {
		t.Run(name, func(t *testing.T) {
			var s Secrets
			s.Add(tc.secret)
			if got := s.Hide(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	var s Secrets
	s.Add("hunter22")
	s.Add("hunter22-and-more")
	if got, want := s.Hide("hunter22-and-more, hunter22-and"), lang.Mask+", "+lang.Mask+"-and"; got != want {
		t.Errorf("one within another: got %q, want %q", got, want)
	}
}
