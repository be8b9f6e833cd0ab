package scope

import (
	"fmt"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
)

// TestWritersOfAddresses finds the users whose rights decide whether a ProviderConfig may take its keys from Secrets.
func TestWritersOfAddresses(t *testing.T) {
	key := func(argument, secret string, rotates bool, writers ...string) writtenKey {
		k := writtenKey{SecretArgument: v1alpha1.SecretArgument{Argument: argument, Name: secret, Key: argument, Rotates: rotates}}
		for _, who := range writers {
			k.writers = append(k.writers, v1alpha1.Contributor{Identity: v1alpha1.Identity{Username: who}, More: who == ""})
		}
		return k
	}
	for reason, test := range map[string]struct {
		keys []writtenKey
		want []string
	}{
		"one user wrote both keys":                {keys: []writtenKey{key("endpoint", "s", false, "ann"), key("token", "s", false, "ann")}},
		"another user wrote the endpoint":         {keys: []writtenKey{key("endpoint", "s", false, "low"), key("token", "s", true, "ann")}, want: []string{"low wrote endpoint, and gets [s]"}},
		"another user wrote a token that rotates": {keys: []writtenKey{key("endpoint", "s", false, "ann"), key("token", "s", true, "low")}, want: []string{"ann wrote endpoint, and gets [s]"}},
		"keys of two Secrets":                     {keys: []writtenKey{key("endpoint", "a", false, "low"), key("token", "b", true, "ann")}, want: []string{"low wrote endpoint, and gets [b]"}},
		"nobody knows who wrote the endpoint":     {keys: []writtenKey{key("endpoint", "s", false, ""), key("token", "s", true, "ann")}, want: []string{" wrote endpoint, and gets [s]"}},
		"Secrets from before the server knew":     {keys: []writtenKey{key("endpoint", "s", false), key("token", "s", false)}},
	} {
		var got []string
		for _, s := range writersOfAddresses(test.keys) {
			got = append(got, fmt.Sprintf("%s wrote %s, and gets %v", s.who.Username, s.key.Key, s.secrets))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", reason, diff)
		}
	}
}
