package registry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/provider/trust"
)

func TestTrustOfWrites(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trust.yaml")
	if err := os.WriteFile(file, []byte(`{apiVersion: config.hykube.io/v1alpha1, kind: ProviderTrustPolicy, rules: [{name: ours, sources: [hashicorp/*], requireChecksums: true}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := trust.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	provider := func(source, version string, checksums ...string) *v1alpha1.Provider {
		return &v1alpha1.Provider{Spec: v1alpha1.ProviderSpec{Source: source, Version: version, Checksums: checksums}}
	}
	for _, tc := range []struct {
		why      string
		obj, old *v1alpha1.Provider
		want     string
	}{
		{"an allowed source", provider("hashicorp/time", "", "h1:x"), nil, ""},
		{"another source", provider("other/time", "", "h1:x"), nil, "no rule of the server's trust policy"},
		{"no checksums", provider("hashicorp/time", ""), nil, `the rule "ours"`},
		{"a changed spec of another source", provider("other/time", "2.0"), provider("other/time", "1.0"), "no rule of the server's trust policy"},
		{"the same spec of another source", provider("other/time", "1.0"), provider("other/time", "1.0"), ""},
	} {
		var old runtime.Object
		if tc.old != nil {
			old = tc.old
		}
		err := refuseUntrusted(policy)(t.Context(), tc.obj, old)
		if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.why, err, tc.want)
		}
		if err := refuseUntrusted(nil)(t.Context(), tc.obj, old); err != nil {
			t.Errorf("%s, without a policy: %v", tc.why, err)
		}
	}
}

func TestValidateTrust(t *testing.T) {
	h1 := "h1:" + strings.Repeat("A", 43) + "="
	for checksum, ok := range map[string]bool{
		h1: true, "zh:" + strings.Repeat("0", 64): true,
		"zh:" + strings.Repeat("A", 64): false, "zh:" + strings.Repeat("0", 63): false, h1 + "x": false, "md5:1": false, "": false,
	} {
		if errs := validateChecksums([]string{checksum}, field.NewPath("spec")); (len(errs) == 0) != ok {
			t.Errorf("%q: %v", checksum, errs)
		}
	}
	const secret = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nc2VjcmV0\n-----END PGP PRIVATE KEY BLOCK-----"
	errs := validateSigningKeys([]string{secret}, field.NewPath("spec"))
	if len(errs) != 1 || strings.Contains(errs.ToAggregate().Error(), "c2VjcmV0") {
		t.Errorf("a private key: %v", errs)
	}
}
