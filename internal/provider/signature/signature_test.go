package signature

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
)

var document = []byte("00  package.zip\n")

func newKey(t *testing.T, config *packet.Config) *openpgp.Entity {
	t.Helper()
	k, err := openpgp.NewEntity("Publisher", "", "publisher@example.com", config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func armored(t *testing.T, kind string, write func(w *bytes.Buffer) error) string {
	t.Helper()
	var raw, text bytes.Buffer
	if err := write(&raw); err != nil {
		t.Fatal(err)
	}
	w, err := armor.Encode(&text, kind, nil)
	if err == nil {
		_, err = w.Write(raw.Bytes())
		err = errors.Join(err, w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func public(t *testing.T, k *openpgp.Entity) string {
	return armored(t, openpgp.PublicKeyType, func(w *bytes.Buffer) error { return k.Serialize(w) })
}

func private(t *testing.T, k *openpgp.Entity) string {
	return armored(t, openpgp.PrivateKeyType, func(w *bytes.Buffer) error { return k.SerializePrivate(w, nil) })
}

func sign(t *testing.T, k *openpgp.Entity, at time.Time) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := openpgp.DetachSign(&b, k, bytes.NewReader(document), &packet.Config{Time: func() time.Time { return at }}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unlimited returns a copy of a key that signs although the key has expired or was revoked.
func unlimited(k *openpgp.Entity) *openpgp.Entity {
	forever := uint32(0)
	out := *k
	out.Revocations, out.Identities = nil, map[string]*openpgp.Identity{}
	for name, id := range k.Identities {
		own, sig := *id, *id.SelfSignature
		sig.KeyLifetimeSecs, own.SelfSignature = &forever, &sig
		out.Identities[name] = &own
	}
	return &out
}

func TestVerify(t *testing.T) {
	made := time.Now().Add(-10 * 24 * time.Hour)
	key, other := newKey(t, nil), newKey(t, nil)
	expired := newKey(t, &packet.Config{Time: func() time.Time { return made }, KeyLifetimeSecs: 3600})
	revoked := newKey(t, nil)
	now := time.Now() // the keys exist since then
	beforeRevocation := sign(t, revoked, now)
	if err := revoked.RevokeKey(packet.KeyCompromised, "stolen", nil); err != nil {
		t.Fatal(err)
	}
	fingerprint := func(k *openpgp.Entity) string { return fmt.Sprintf("%x", k.PrimaryKey.Fingerprint) }
	for _, tc := range []struct {
		why      string
		trusted  string // empty: any offered key
		offered  []string
		document []byte
		sig      []byte
		want     Problem // -1: none
	}{
		{"the trusted key", public(t, key), nil, document, sign(t, key, now), -1},
		{"an offered key", "", []string{"not a key", public(t, key)}, document, sign(t, key, now), -1},
		{"the fingerprint of an offered key", fingerprint(key), []string{public(t, other), public(t, key)}, document, sign(t, key, now), -1},
		{"the fingerprint of another offered key", fingerprint(other), []string{public(t, other), public(t, key)}, document, sign(t, key, now), UnknownKey},
		{"a fingerprint without the key", fingerprint(key), nil, document, sign(t, key, now), UnknownKey},
		{"another key than the trusted one", public(t, other), []string{public(t, key)}, document, sign(t, key, now), UnknownKey},
		{"no signature", public(t, key), nil, document, nil, Unsigned},
		{"a changed document", public(t, key), nil, []byte("11  package.zip\n"), sign(t, key, now), BadSignature},
		{"something else than a signature", public(t, key), nil, document, []byte("<html>"), BadSignature},
		{"a key that expired after it signed", public(t, expired), nil, document, sign(t, expired, made.Add(time.Minute)), -1},
		{"a key that expired before it signed", public(t, expired), nil, document, sign(t, unlimited(expired), now), BadSignature},
		{"a key that was revoked", public(t, revoked), nil, document, beforeRevocation, BadSignature},
	} {
		var signer Signer
		var err error
		if tc.trusted == "" {
			signer, err = VerifyOffered(tc.offered, tc.document, tc.sig)
		} else {
			keys, kerr := ParseKeys([]string{tc.trusted})
			if kerr != nil {
				t.Fatalf("%s: %v", tc.why, kerr)
			}
			signer, err = keys.Verify(tc.offered, tc.document, tc.sig)
		}
		e, ok := errors.AsType[*Error](err)
		switch {
		case tc.want < 0 && (err != nil || len(signer.KeyID) != 16 || signer.Name != "Publisher <publisher@example.com>"):
			t.Errorf("%s: %+v, %v", tc.why, signer, err)
		case tc.want >= 0 && (!ok || e.Problem != tc.want):
			t.Errorf("%s: %+v, %v; want problem %d", tc.why, signer, err, tc.want)
		}
	}
}

func TestKeys(t *testing.T) {
	k := newKey(t, nil)
	secret := private(t, k)
	for text, want := range map[string]string{
		"":                      "public key",
		"0xABCD":                "fingerprint",
		strings.Repeat("a", 16): "fingerprint", // a key ID is too short to trust
		secret:                  "must not be a private key",
		"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nAAAA\n-----END PGP PUBLIC KEY BLOCK-----": "not a usable public key",
	} {
		err := CheckKey(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
		if err != nil && len(text) > 100 && strings.Contains(err.Error(), text[60:80]) {
			t.Errorf("the error repeats the key: %v", err)
		}
	}
	for _, text := range []string{public(t, k), "  " + public(t, k) + "\n", strings.Repeat("AB ", 20), strings.Repeat("0", 64)} {
		if err := CheckKey(text); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
