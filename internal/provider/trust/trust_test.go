package trust

import (
	"errors"
	"strings"
	"testing"
)

func TestRules(t *testing.T) {
	p, err := parse([]byte(`
apiVersion: config.hykube.io/v1alpha1
kind: ProviderTrustPolicy
rules:
- {name: no-local, sources: [hashicorp/local, "*/*/external"], action: Deny}
- {name: ours, sources: ["registry.example.com/platform/*", "*.corp.example.com/*/*"], requireChecksums: true}
- {name: hashicorp, sources: ["hashicorp/*", random]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"registry.terraform.io/hashicorp/aws":       "hashicorp",
		"registry.terraform.io/hashicorp/local":     "!no-local",
		"registry.example.com/platform/external":    "!no-local",
		"registry.example.com/platform/cloud":       "ours",
		"registry.corp.example.com/a/b":             "ours",
		"registry.example.com/other/cloud":          "!",
		"registry.terraform.io/other/aws":           "!",
		"evil.example/hashicorp/aws":                "!",
		"registry.example.com.evil/platform/cloud":  "!",
		"registry.corp.example.com.evil.test/a/b":   "!",
		"registry.terraform.io/hashicorpevil/cloud": "!",
	} {
		a := strings.Split(source, "/")
		rule, err := p.Rule(a[0], a[1], a[2])
		refused, ok := errors.AsType[*RefusedError](err)
		switch name, deny := strings.CutPrefix(want, "!"); {
		case deny && (!ok || refused.Rule != name):
			t.Errorf("%s: %+v, %v; want a refusal by %q", source, rule, err, name)
		case !deny && (err != nil || rule.Name != want):
			t.Errorf("%s: %+v, %v; want the rule %q", source, rule, err, want)
		}
	}
	if _, err := (*Policy)(nil).Rule("a", "b", "c"); err != nil {
		t.Errorf("no policy: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "apiVersion: config.hykube.io/v1alpha1\nkind: ProviderTrustPolicy\n"
	for text, want := range map[string]string{
		"kind: Policy": "it must have apiVersion",
		head:           "no rules",
		head + "rules: [{name: a, sources: ['*'], requireSignatures: true}]":              "unknown field",
		head + "rules: [{sources: ['*']}]":                                                "needs a name",
		head + "rules: [{name: no, sources: ['*']}]":                                      "cannot unmarshal bool",
		head + "rules: [{name: a, sources: ['*', true]}]":                                 "cannot unmarshal bool",
		head + "rules: [{name: a, name: b, sources: ['*']}]":                              "already",
		head + "rules: [{name: a}]":                                                       "needs sources",
		head + "rules: [{name: a, sources: ['a/b/c/d']}]":                                 "not [HOST/]NAMESPACE/TYPE",
		head + "rules: [{name: a, sources: ['a//c']}]":                                    "not [HOST/]NAMESPACE/TYPE",
		head + "rules: [{name: a, sources: ['[a-z]/c']}]":                                 "characters",
		head + "rules: [{name: a, sources: ['*'], action: Refuse}]":                       "neither Allow nor Deny",
		head + "rules: [{name: a, sources: ['*'], action: Deny, requireSignature: true}]": "no requirements",
		head + "rules: [{name: a, sources: ['*'], signingKeys: [ABCD]}]":                  "fingerprint",
		head + "rules: [{name: a, sources: ['*']}, {name: a, sources: ['*']}]":            "occurs twice",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
