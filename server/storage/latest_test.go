package storage

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

var buckets = kschema.GroupResource{Group: scanned, Resource: "sim_bucket"}

// putBucket writes a version of the object "a" and returns its revision.
func putBucket(t *testing.T, s *Store, version int, revision int64) int64 {
	t.Helper()
	key := keyOf(buckets, "team", "a")
	data := fmt.Appendf(nil, `{"kind":"Bucket","metadata":{"namespace":"team","name":"a","labels":{"version":"%d"}}}`, version)
	data, err := s.encryption.transformer(buckets).TransformToStorage(t.Context(), data, value.DefaultContext(key))
	if err != nil {
		t.Fatal(err)
	}
	return put(t, s, key, string(data), revision)
}

// sharedVersion returns the version of the object "a" as Shared returns it; -1 without one.
func sharedVersion(o *Objects, t *testing.T) (int, error) {
	obj, err := o.Shared(t.Context(), buckets, "team", "a")
	if err != nil || obj == nil {
		return -1, err
	}
	return strconv.Atoi(obj.Object.GetLabels()["version"])
}

// TestSharedSeesEveryWrite reads an object while it is written. Each read must see all writes that ended before it.
func TestSharedSeesEveryWrite(t *testing.T) {
	s := openStore(t)
	o := s.Objects()
	if v, err := sharedVersion(o, t); v != -1 || err != nil {
		t.Fatalf("before the first write: version %d, %v", v, err)
	}
	var ended atomic.Int64
	revision := putBucket(t, s, 0, 0)
	var readers errgroup.Group
	var stop atomic.Bool
	for range 8 {
		readers.Go(func() error {
			for !stop.Load() {
				least := int(ended.Load())
				if v, err := sharedVersion(o, t); err != nil || v < least {
					return fmt.Errorf("read version %d after the write of version %d: %v", v, least, err)
				}
			}
			return nil
		})
	}
	for version := 1; version <= 500; version++ {
		revision = putBucket(t, s, version, revision)
		ended.Store(int64(version))
	}
	stop.Store(true)
	if err := readers.Wait(); err != nil {
		t.Error(err)
	}
	if _, _, _, err := s.backend.Delete(t.Context(), keyOf(buckets, "team", "a"), revision); err != nil {
		t.Fatal(err)
	}
	if v, err := sharedVersion(o, t); v != -1 || err != nil {
		t.Errorf("after the deletion: version %d, %v", v, err)
	}
}

// TestLatestKeepsNoReplacedObject writes a key at each moment of a read of it.
func TestLatestKeepsNoReplacedObject(t *testing.T) {
	for _, test := range []struct {
		name         string
		before, late func(l *latest) // during the read: before and after it reads the old object
		kept         bool
	}{
		{name: "no write", before: func(*latest) {}, late: func(*latest) {}, kept: true},
		{name: "a write of another key", before: func(l *latest) { l.write("b")() }, late: func(l *latest) { l.write("b") }, kept: true},
		{name: "a write during the read", before: func(*latest) {}, late: func(l *latest) { l.write("a")() }},
		{name: "a write that begins during the read", before: func(*latest) {}, late: func(l *latest) { l.write("a") }},
	} {
		l, old := newLatest(), &SharedObject{}
		read := func() (*SharedObject, error) {
			test.before(l)
			test.late(l)
			return old, nil
		}
		if got, err := l.get("a", read); got != old || err != nil {
			t.Fatalf("%s: got %v, %v", test.name, got, err)
		}
		if _, kept := l.objects.Get("a"); kept != test.kept {
			t.Errorf("%s: the object is kept: %v, want %v", test.name, kept, test.kept)
		}
	}
	l := newLatest()
	end := l.write("a")
	if _, err := l.get("a", func() (*SharedObject, error) { end(); return &SharedObject{}, nil }); err != nil || l.objects.Len() != 0 {
		t.Errorf("a read that began before the end of a write left %d objects, %v", l.objects.Len(), err)
	}
}

// TestSinceReadsNothingWithoutWrites takes the table away, so that a read would fail.
func TestSinceReadsNothingWithoutWrites(t *testing.T) {
	s := openQuiet(t)
	o := s.Objects()
	revision := putBucket(t, s, 1, 0)
	since := func(from int64) (n int, current int64) {
		t.Helper()
		changes, current, _, err := o.Since(t.Context(), from, 10)
		if err != nil {
			t.Fatal(err)
		}
		return len(changes), current
	}
	_, current := since(revision)
	since(current)
	table := o.table
	o.table = nil
	if n, again := since(current); n != 0 || again != current {
		t.Errorf("without a write: %d changes, continues at %d, want none at %d", n, again, current)
	}
	o.table = table
	putBucket(t, s, 2, revision)
	if n, _ := since(current); n != 1 {
		t.Errorf("after a write: %d changes, want 1", n)
	}
}
