package provider

import (
	"strings"
	"testing"
)

func TestParseSource(t *testing.T) {
	for _, tc := range []struct{ in, want, why string }{
		{"hashicorp/time", "registry.terraform.io/hashicorp/time", "the host has a default"},
		{"time", "registry.terraform.io/hashicorp/time", "so has the namespace"},
		{"HashiCorp/Time", "registry.terraform.io/hashicorp/time", "case does not count"},
		{"registry.example.com/team/cloud", "registry.example.com/team/cloud", "all three parts"},
		{"registry.example.com:8443/team/cloud", "registry.example.com:8443/team/cloud", "a port"},
		{"127.0.0.1:8443/team/cloud", "127.0.0.1:8443/team/cloud", "an address"},
		{"Испытание.com/team/cloud", "xn--80akhbyknj4f.com/team/cloud", "punycode"},
		{"-/aws", "!before Terraform 0.13", "a legacy namespace"},
		{"", "!source", "nothing"},
		{"a/b/c/d", "!source", "too many parts"},
		{"/aws", "!source", "an empty part"},
		{"hashicorp/terraform-provider-aws", `!Did you mean "hashicorp/aws"?`, "a repository's name"},
		{"hashicorp/../../etc/passwd", "!source", "a path"},
		{"../time", "!source", "a path"},
		{"hashicorp/ti me", "!source", "a space"},
		{"hashicorp/time;rm", "!source", "a shell's character"},
		{"hashicorp/a--b", "!source", "two dashes"},
		{"exa mple.com/a/b", "!source", "a host that is none"},
		{"registry.terraform.io./hashicorp/local", "!ends with a dot", "a host with a trailing dot"},
		{"registry.terraform.io.:8443/hashicorp/local", "!ends with a dot", "a trailing dot before the port"},
		{"registry.terraform.io。/hashicorp/local", "!ends with a dot", "a trailing dot of another script"},
		{"https://registry.terraform.io/hashicorp/time", "!source", "a URL"},
		{"terraform.io/builtin/terraform", "terraform.io/builtin/terraform", "the built-in provider"},
		{"terraform.io/builtin/test", "!part of Terraform", "another built-in provider"},
		{strings.Repeat("a", 100_000), "!longer than", "an absurd length"},
		{"hashicorp/\x00", "!source", "a control character"},
	} {
		t.Run(tc.why, func(t *testing.T) {
			got, err := ParseSource(tc.in)
			if want, ok := strings.CutPrefix(tc.want, "!"); ok {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "write it as") {
					t.Fatalf("ParseSource(%.40q) = %v, %v; want an error with %q", tc.in, got, err, want)
				}
				if len(err.Error()) > 700 || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error is not one readable line: %q", err)
				}
				return
			}
			if err != nil || got.String() != tc.want {
				t.Errorf("ParseSource(%q) = %q, %v; want %q", tc.in, got, err, tc.want)
			}
		})
	}
}
