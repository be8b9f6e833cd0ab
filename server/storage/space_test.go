package storage_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hykube/hykube/server/storage"
)

func TestHasSpace(t *testing.T) {
	for name, test := range map[string]struct {
		free  uint64
		err   error
		wants bool
	}{
		"plenty":                   {free: 1 << 30, wants: true},
		"nearly full":              {free: 255 << 20},
		"full":                     {},
		"an error of the system":   {err: errors.New("no such file system"), wants: true},
		"exactly what is reserved": {free: 256 << 20, wants: true},
	} {
		dir := t.TempDir()
		store, err := storage.Open(t.Context(), storage.Config{DataDir: dir, FreeBytes: func(asked string) (uint64, error) {
			if asked != dir {
				t.Errorf("asked for %q, want %q", asked, dir)
			}
			return test.free, test.err
		}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{store.HasSpace(), store.KV().HasSpace()} {
			if full, is := errors.AsType[*storage.SpaceError](err); is == test.wants || is && (full.Free != test.free || !strings.Contains(err.Error(), "free some space")) {
				t.Errorf("%s: %v, want space: %t", name, err, test.wants)
			}
		}
		_ = store.Close()
	}
}
