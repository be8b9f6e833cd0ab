package storage

import (
	"bytes"
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/aes"
)

func testCipher(t *testing.T) *cipher {
	t.Helper()
	c, err := newCipher(bytes.Repeat([]byte("k"), keyBytes))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rowAt(i int) value.DefaultContext { return value.DefaultContext(fmt.Sprint("row ", i)) }

// TestACipherDerivesFewKeys encrypts many rows, and decrypts the first and the last of each derived key.
func TestACipherDerivesFewKeys(t *testing.T) {
	c, keys, nonces := testCipher(t), map[string]int{}, map[string]bool{}
	const rows = 3*cipherRows + 1
	encrypted := make([][]byte, rows)
	for i := range encrypted {
		var err error
		if encrypted[i], err = c.TransformToStorage(t.Context(), fmt.Append(nil, "content ", i), rowAt(i)); err != nil {
			t.Fatal(err)
		}
		keys[string(encrypted[i][:infoSize])]++
		nonces[string(encrypted[i][:infoSize+12])] = true
	}
	if len(keys) != 4 || len(nonces) != rows {
		t.Errorf("%d keys and %d nonces for %d rows", len(keys), len(nonces), rows)
	}
	for text, n := range keys {
		if n > cipherRows {
			t.Errorf("the key of %x encrypts %d rows", text, n)
		}
	}
	for _, i := range []int{0, cipherRows - 1, cipherRows, rows - 1} {
		decrypted, _, err := testCipher(t).TransformFromStorage(t.Context(), encrypted[i], rowAt(i))
		if err != nil || string(decrypted) != fmt.Sprint("content ", i) {
			t.Errorf("row %d is %q: %v", i, decrypted, err)
		}
		if _, _, err := c.TransformFromStorage(t.Context(), encrypted[i], rowAt(i+1)); err == nil {
			t.Errorf("row %d decrypts as another one", i)
		}
		changed := bytes.Clone(encrypted[i])
		changed[len(changed)-1] ^= 1
		if _, _, err := c.TransformFromStorage(t.Context(), changed, rowAt(i)); err == nil {
			t.Errorf("row %d decrypts after it was changed", i)
		}
	}
}

// TestACipherHasTheFormatOfKubernetes exchanges rows with the transformer of Kubernetes, which wrote those of earlier versions
// with a key each. The cipher does not remember all of these keys.
func TestACipherHasTheFormatOfKubernetes(t *testing.T) {
	theirs, err := aes.NewHKDFExtendedNonceGCMTransformer(bytes.Repeat([]byte("k"), keyBytes))
	if err != nil {
		t.Fatal(err)
	}
	ours := testCipher(t)
	for i := range 2*maxDerived + 1 {
		for name, pair := range map[string][2]value.Transformer{"from Kubernetes": {theirs, ours}, "to Kubernetes": {ours, theirs}} {
			encrypted, err := pair[0].TransformToStorage(t.Context(), []byte("content"), rowAt(i))
			if err != nil {
				t.Fatal(err)
			}
			if decrypted, _, err := pair[1].TransformFromStorage(t.Context(), encrypted, rowAt(i)); err != nil || string(decrypted) != "content" {
				t.Fatalf("%s: %q, %v", name, decrypted, err)
			}
		}
		if len(ours.reads) > maxDerived {
			t.Fatalf("%d keys are remembered", len(ours.reads))
		}
	}
	if _, _, err := ours.TransformFromStorage(t.Context(), make([]byte, infoSize-1), rowAt(0)); err == nil {
		t.Error("a row without a key decrypts")
	}
}

func TestACipherNeedsALongSecret(t *testing.T) {
	if _, err := newCipher([]byte("short")); err == nil {
		t.Error("a short secret is taken")
	}
}
