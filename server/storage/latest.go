package storage

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/internal/recent"
)

const (
	// maxLatest is the maximum number of objects that latest holds.
	maxLatest = 256
	// keepLatest is the maximum time for which latest holds an object, which may be a Secret.
	keepLatest = time.Minute
)

// SharedObject is a stored object that several callers use. They must not change it.
type SharedObject struct {
	Object *unstructured.Unstructured

	mu    sync.Mutex
	typed runtime.Object
}

// Typed returns the object in the type of into. It converts the object once, and sets the caller's copy in into.
func Typed[T any, P interface {
	*T
	runtime.Object
	DeepCopyInto(*T)
}](o *SharedObject, into P) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.typed.(P)
	if !ok {
		known = P(new(T))
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object.Object, known); err != nil {
			return fmt.Errorf("decode %s %q: %w", o.Object.GetKind(), o.Object.GetName(), err)
		}
		o.typed = known
	}
	known.DeepCopyInto(into)
	return nil
}

// latest holds objects as the database has them, for readers that read the same few objects again and again. It
// requires that this process makes all writes to the database, and that it learns of each: a read never returns an
// object that a write, which ended before the read began, has replaced.
type latest struct {
	mu sync.Mutex
	// begun and ended are the numbers of writes that have begun and ended. writing has those of each key that have not
	// ended.
	begun, ended uint64
	writing      map[string]int
	// reading has the running reads of keys, of which no write has begun meanwhile.
	reading map[string]*latestRead
	// objects has nil for a key that does not exist.
	objects *recent.Map[string, *SharedObject]
}

// latestRead is a read of a key. Each has an address of its own, so it must have a size.
type latestRead struct{ _ byte }

func newLatest() *latest {
	return &latest{writing: map[string]int{}, reading: map[string]*latestRead{},
		objects: recent.New[string, *SharedObject](maxLatest, keepLatest)}
}

// write notes the begin of a write of a key. The caller must call end when the write has ended, with any result.
func (l *latest) write(key string) (end func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun++
	l.writing[key]++
	delete(l.reading, key)
	l.objects.Delete(key)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended++
		if l.writing[key]--; l.writing[key] == 0 {
			delete(l.writing, key)
		}
	}
}

// quiet returns the number of writes so far. ok is false while there are writes that have not ended.
func (l *latest) quiet() (writes uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended, l.begun == l.ended
}

// get returns the object of a key, or nil if there is none. It calls read if it does not hold the object.
func (l *latest) get(key string, read func() (*SharedObject, error)) (*SharedObject, error) {
	l.mu.Lock()
	if known, ok := l.objects.Get(key); ok {
		l.mu.Unlock()
		return known, nil
	}
	this := l.reading[key]
	if this == nil && l.writing[key] == 0 {
		this = new(latestRead)
		l.reading[key] = this
	}
	l.mu.Unlock()
	object, err := read()
	l.mu.Lock()
	defer l.mu.Unlock()
	if this == nil || l.reading[key] != this {
		return object, err // a write has begun meanwhile, or another reader was faster
	}
	delete(l.reading, key)
	if err == nil {
		l.objects.Put(key, object)
	}
	return object, err
}
