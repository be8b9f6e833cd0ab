package planning

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

// TestAccountDigest expects another digest of the arguments of a provider for each later write, also of the same value. Of an argument
// that rotates, the user and the value count.
func TestAccountDigest(t *testing.T) {
	at := time.Now()
	lists := func(who string, after time.Duration) [][]v1alpha1.Contributor {
		return [][]v1alpha1.Contributor{{{Identity: v1alpha1.Identity{Username: who}, Wrote: []string{"endpoint"}, At: metav1.NewMicroTime(at.Add(after))}}}
	}
	args := func(lasting, rotating string) ledger.Configuration {
		return ledger.Configuration{Arguments: lasting, Rotating: rotating}
	}
	approved := accountDigest("v1", args("a", "r"), lists("eve", 0), lists("bot", 0))
	if approved == "" {
		t.Fatal("the account is unknown")
	}
	for why, tc := range map[string]struct {
		digest string
		same   bool
	}{
		"nobody wrote it again":                    {accountDigest("v1", args("a", "r"), lists("eve", 0), lists("bot", 0)), true},
		"the same user wrote the credential again": {accountDigest("v1", args("a", "r"), lists("eve", 0), lists("bot", time.Hour)), true},
		"the same user replaced the credential":    {accountDigest("v1", args("a", "s"), lists("eve", 0), lists("bot", 0)), false},
		"another user wrote the credential again":  {accountDigest("v1", args("a", "r"), lists("eve", 0), lists("mallory", time.Hour)), false},
		"the same user wrote the endpoint again":   {accountDigest("v1", args("a", "r"), lists("eve", time.Hour), lists("bot", 0)), false},
		"another user wrote the endpoint":          {accountDigest("v1", args("a", "r"), lists("mallory", 0), lists("bot", 0)), false},
		"other arguments":                          {accountDigest("v1", args("b", "r"), lists("eve", 0), lists("bot", 0)), false},
		"another ProviderConfig":                   {accountDigest("v2", args("a", "r"), lists("eve", 0), lists("bot", 0)), false},
	} {
		if (tc.digest == approved) != tc.same {
			t.Errorf("%s: the account is the approved one: %t", why, !tc.same)
		}
	}
	unnamed := [][]v1alpha1.Contributor{{{More: true}}}
	withoutTime := lists("eve", 0)
	withoutTime[0][0].At = metav1.MicroTime{}
	for why, digest := range map[string]string{
		"unknown arguments": accountDigest("v1", args("", "r"), lists("eve", 0), nil), "an unknown writer": accountDigest("v1", args("a", "r"), unnamed, nil),
		"an unknown writer of a credential": accountDigest("v1", args("a", "r"), nil, unnamed), "an unknown time": accountDigest("v1", args("a", "r"), withoutTime, nil),
	} {
		if digest != "" {
			t.Errorf("%s: the account has the digest %q", why, digest)
		}
	}
}
