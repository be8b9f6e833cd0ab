package storage

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"

	"k8s.io/apiserver/pkg/storage/value"
)

// TestACipherKeepsFewRows encrypts more rows than a cipher keeps keys of, and decrypts the first and the last.
func TestACipherKeepsFewRows(t *testing.T) {
	c, err := newCipher(bytes.Repeat([]byte("k"), keyBytes))
	if err != nil {
		t.Fatal(err)
	}
	const rows = 8 * cipherRows
	used := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	at := func(i int) value.DefaultContext { return value.DefaultContext(fmt.Sprint("row ", i)) }
	var first, last []byte
	before := used()
	for i := range rows {
		if last, err = c.TransformToStorage(t.Context(), fmt.Append(nil, "content ", i), at(i)); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = last
		}
	}
	// The keys of all rows have 52 MB.
	if grown := int64(used() - before); grown > 16<<20 {
		t.Errorf("%d rows use %d bytes", rows, grown)
	}
	for i, row := range map[int][]byte{0: first, rows - 1: last} {
		clear, _, err := c.TransformFromStorage(t.Context(), row, at(i))
		if err != nil || string(clear) != fmt.Sprint("content ", i) {
			t.Errorf("row %d is %q: %v", i, clear, err)
		}
		if _, _, err := c.TransformFromStorage(t.Context(), row, at(i+1)); err == nil {
			t.Errorf("row %d decrypts as another one", i)
		}
	}
	runtime.KeepAlive(c)
}

func TestACipherNeedsALongSecret(t *testing.T) {
	if _, err := newCipher([]byte("short")); err == nil {
		t.Error("a short secret is taken")
	}
}
