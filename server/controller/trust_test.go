package controller

import (
	"archive/zip"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/signature"
	"github.com/hykube/hykube/internal/provider/trust"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
)

// TestConditionsOfTrust expects each outcome of a verification in its condition, with its own reason.
func TestConditionsOfTrust(t *testing.T) {
	signer := signature.Signer{KeyID: "34365D9472D7468F", Name: "HashiCorp"}
	text := func(conditions []metav1.Condition, kind string) string {
		c := meta.FindStatusCondition(conditions, kind)
		if c == nil {
			return "none"
		}
		return string(c.Status) + " " + c.Reason
	}
	for _, tc := range []struct {
		v              provider.Verification
		checks, signed string
	}{
		{provider.Verification{KnownFrom: provider.FromSpec}, "True ChecksumListed", "Unknown SignatureUnknown"},
		{provider.Verification{KnownFrom: provider.FromSpec, Signer: signer, SignedBy: "registry a"}, "True ChecksumListed", "True Signed"},
		{provider.Verification{KnownFrom: provider.FromSignedList, Signer: signer, SignedBy: "registry a"}, "True ChecksumSigned", "True Signed"},
		{provider.Verification{KnownFrom: provider.FromMirror}, "True ChecksumFromMirror", "Unknown SignatureUnknown"},
		{provider.Verification{}, "Unknown ChecksumUnknown", "Unknown SignatureUnknown"},
	} {
		var conditions []metav1.Condition
		verified(&conditions, 1, tc.v)
		if checks, signed := text(conditions, v1alpha1.ConditionVerified), text(conditions, v1alpha1.ConditionSigned); checks != tc.checks || signed != tc.signed {
			t.Errorf("%+v: Verified %s, Signed %s; want %s, %s", tc.v, checks, signed, tc.checks, tc.signed)
		}
	}
	problem := func(p signature.Problem) error {
		return &provider.VerificationError{Err: &provider.SignatureError{Problem: p}}
	}
	for _, tc := range []struct {
		err                    error
		reason, checks, signed string
	}{
		{&provider.VerificationError{Err: &provider.ChecksumError{}}, "VerificationFailed", "False ChecksumMismatch", "none"},
		{problem(signature.Unsigned), "VerificationFailed", "none", "False Unsigned"},
		{problem(signature.UnknownKey), "VerificationFailed", "none", "False UnknownKey"},
		{problem(signature.BadSignature), "VerificationFailed", "none", "False BadSignature"},
		{&trust.RefusedError{}, "SourceRefused", "none", "none"},
	} {
		var conditions []metav1.Condition
		reason := unverified(&conditions, &v1alpha1.Provider{}, tc.err)
		if checks, signed := text(conditions, v1alpha1.ConditionVerified), text(conditions, v1alpha1.ConditionSigned); reason != tc.reason || checks != tc.checks || signed != tc.signed {
			t.Errorf("%T: %s, Verified %s, Signed %s; want %s, %s, %s", tc.err, reason, checks, signed, tc.reason, tc.checks, tc.signed)
		}
		if !distrusted(fmt.Errorf("install: %w", tc.err)) {
			t.Errorf("%T is not distrusted", tc.err)
		}
	}
	if distrusted(errors.New("the network is down")) {
		t.Error("a network error is distrusted")
	}
}

// TestDistrustedPackageIsNotUsed has an installed provider whose spec lists the checksum of another package.
func TestDistrustedPackageIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	inMirror(t, dir)
	installer := provider.NewInstaller(provider.InstallerConfig{Dir: t.TempDir(), MirrorDirs: []string{dir}})
	pkg, err := installer.Install(t.Context(), provider.Source{Hostname: "registry.terraform.io", Namespace: "hykube", Type: "sim"}, "", provider.Trust{})
	if err != nil {
		t.Fatal(err)
	}
	obj := &v1alpha1.Provider{
		ObjectMeta: metav1.ObjectMeta{Name: "sim", Generation: 2},
		Spec:       v1alpha1.ProviderSpec{Source: "hykube/sim", Checksums: []string{"zh:" + strings.Repeat("0", 64)}},
		Status:     v1alpha1.ProviderStatus{ObservedGeneration: 1, Version: "1.0.0", Checksum: pkg.Checksum},
	}
	cat := catalog.New(nil)
	cat.Put(catalog.Entry{Name: "sim", Package: pkg, Schema: &schema.Provider{}})
	served, err := kinds.New(kinds.Config{RESTOptions: generic.RESTOptions{}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Providers{
		Client: serving(t, obj), Installer: installer, Catalog: cat, Kinds: served, Schemas: Schemas(t.TempDir()),
		Logger: slog.New(slog.DiscardHandler), Changed: func(string) {},
	}
	p.start()
	if err := p.informer.GetStore().Add(obj.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	if err := p.reconcile(t.Context(), cache.ObjectName{Name: "sim"}); err != nil {
		t.Fatal(err)
	}
	if c := meta.FindStatusCondition(obj.Status.Conditions, v1alpha1.ConditionInstalled); c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ReasonVerificationFailed {
		t.Errorf("Installed is %+v", c)
	}
	if _, ok := cat.Get("sim"); ok {
		t.Error("plans can use the package")
	}
	if err := pkg.Verify(); err != nil {
		t.Errorf("the installed files: %v", err)
	}
}

// inMirror puts a package of the provider sim into a mirror.
func inMirror(t *testing.T, dir string) {
	t.Helper()
	at := filepath.Join(dir, "registry.terraform.io/hykube/sim")
	if err := os.MkdirAll(at, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(at, "terraform-provider-sim_1.0.0_"+runtime.GOOS+"_"+runtime.GOARCH+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	if _, err := z.Create("terraform-provider-sim"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}
