package access_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/server/access"
)

// TestAuthoritiesOfAnotherServer has two servers, of which the second takes the authorities of the first. The certificate of
// the second is then one of the common authority.
func TestAuthoritiesOfAnotherServer(t *testing.T) {
	first, second, now := t.TempDir(), t.TempDir(), time.Now()
	a, b := openCerts(t, first, now), openCerts(t, second, now)
	if bytes.Equal(a.ServerCA(), b.ServerCA()) {
		t.Fatal("two servers make the same authority")
	}
	common, err := access.Authorities(first)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if changed, err := access.UseAuthorities(second, common); err != nil || changed != want {
			t.Errorf("changed %t, want %t: %v", changed, want, err)
		}
	}
	if b = openCerts(t, second, now); !bytes.Equal(a.ServerCA(), b.ServerCA()) {
		t.Error("the second server keeps its own authority")
	}
	if _, err := access.UseAuthorities(second, []byte(`{"server-ca":{}}`)); err == nil || !strings.Contains(err.Error(), "server-ca") {
		t.Errorf("a damaged authority: %v", err)
	}
}

func TestAuthorityRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	if access.AuthorityRemoved(dir) {
		t.Error("a new directory lacks no authority")
	}
	openCerts(t, dir, time.Now())
	if access.AuthorityRemoved(dir) {
		t.Error("no authority is removed")
	}
	remove(t, filepath.Join(dir, "client-ca.crt"))
	if !access.AuthorityRemoved(dir) {
		t.Error("the client authority is removed")
	}
}
