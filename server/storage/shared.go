package storage

import (
	"bytes"
	"io"
	goruntime "runtime"
	"sync"
	"weak"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sharedObject is the object of an event, shared by all watches of it. It is decoded once, and encoded once for each
// requested encoding. Otherwise each watch of a kind would hold a copy of every event.
type sharedObject struct {
	decode sync.Once
	object runtime.Object
	err    error

	mu      sync.Mutex
	encoded map[runtime.Identifier]*encoding
}

// encoding is one encoded form of an object.
type encoding struct {
	once sync.Once
	data []byte
	err  error
}

var _ runtime.CacheableObject = (*sharedObject)(nil)

func (o *sharedObject) CacheEncode(id runtime.Identifier, encode func(runtime.Object, io.Writer) error,
	w io.Writer) error {
	form := o.form(id)
	form.once.Do(func() {
		var buf bytes.Buffer
		form.err = encode(o.GetObject(), &buf)
		form.data = buf.Bytes()
	})
	if form.err != nil {
		return form.err
	}
	_, err := w.Write(form.data)
	return err
}

func (o *sharedObject) form(id runtime.Identifier) *encoding {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.encoded[id] == nil {
		if o.encoded == nil {
			o.encoded = map[runtime.Identifier]*encoding{}
		}
		o.encoded[id] = new(encoding)
	}
	return o.encoded[id]
}

// GetObject implements runtime.CacheableObject. It returns a copy, because encoders may change the object.
func (o *sharedObject) GetObject() runtime.Object { return o.object.DeepCopyObject() }

func (o *sharedObject) GetObjectKind() schema.ObjectKind { return o.object.GetObjectKind() }

func (o *sharedObject) DeepCopyObject() runtime.Object { return o.GetObject() }

// objectKey identifies the object of an event: the value of a store's key at a revision, or its previous value.
type objectKey struct {
	store    *uncached
	revision int64
	previous bool
}

// sharedObjects holds the objects that watches currently use. Weak pointers let the garbage collector free an object
// that no watch uses.
type sharedObjects struct {
	mu    sync.Mutex
	known map[objectKey]weak.Pointer[sharedObject]
}

// forgotten is an entry of sharedObjects whose object was freed.
type forgotten struct {
	key    objectKey
	object weak.Pointer[sharedObject]
}

func newSharedObjects() *sharedObjects {
	return &sharedObjects{known: map[objectKey]weak.Pointer[sharedObject]{}}
}

// get returns the shared object, and decodes it if no other watch has.
func (s *sharedObjects) get(key objectKey, decode func() (runtime.Object, error)) (*sharedObject, error) {
	one := s.find(key)
	one.decode.Do(func() { one.object, one.err = decode() })
	return one, one.err
}

func (s *sharedObjects) find(key objectKey) *sharedObject {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one := s.known[key].Value(); one != nil {
		return one
	}
	one := new(sharedObject)
	entry := forgotten{key, weak.Make(one)}
	s.known[key] = entry.object
	goruntime.AddCleanup(one, s.forget, entry)
	return one
}

func (s *sharedObjects) forget(entry forgotten) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known[entry.key] == entry.object {
		delete(s.known, entry.key)
	}
}
