package lockfile

import "testing"

func TestFullSource(t *testing.T) {
	for in, want := range map[string]string{"aws": "registry.terraform.io/hashicorp/aws", "Other/aws": "registry.terraform.io/other/aws", "example.com/a/b": "example.com/a/b"} {
		if got := fullSource(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
