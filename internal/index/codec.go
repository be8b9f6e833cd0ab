package index

import (
	"encoding/binary"
	"errors"

	"github.com/google/uuid"
)

// This file encodes and decodes numbers and texts, of which entries.go makes the entries of a snapshot.

// blockBytes is the size at which an encoder begins another block. An entry is in one block, so a block may be larger.
const blockBytes = 256 << 10

// encoder appends values to a block.
type encoder struct {
	block []byte
	// shared holds the numbers of the texts that many entries have.
	shared map[string]uint64
}

func newEncoder() *encoder {
	return &encoder{block: make([]byte, 0, blockBytes+blockBytes/8), shared: map[string]uint64{}}
}

func (e *encoder) uint(n uint64) { e.block = binary.AppendUvarint(e.block, n) }
func (e *encoder) int(n int64)   { e.block = binary.AppendVarint(e.block, n) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.block = append(e.block, s...)
}

// share encodes a text that other entries have, too: after the first time, as its number.
func (e *encoder) share(s string) {
	n, ok := e.shared[s]
	if ok {
		e.uint(n)
		return
	}
	e.shared[s] = uint64(len(e.shared)) + 1
	e.uint(0)
	e.text(s)
}

// uid encodes a UID, which is nearly always a UUID.
func (e *encoder) uid(s string) {
	if id, err := uuid.Parse(s); err == nil && id.String() == s {
		e.uint(0)
		e.block = append(e.block, id[:]...)
		return
	}
	e.uint(1)
	e.text(s)
}

// bits encodes flags as one number.
func (e *encoder) bits(flags ...bool) {
	var n uint64
	for i, set := range flags {
		if set {
			n |= 1 << i
		}
	}
	e.uint(n)
}

func encodeList[T any](e *encoder, list []T, one func(T)) {
	e.uint(uint64(len(list)))
	for _, v := range list {
		one(v)
	}
}

// errDamaged says that a snapshot has another form than an encoder gives it.
var errDamaged = errors.New("the content has an unexpected form")

// decoder reads what an encoder wrote. After an error, all values are zero.
type decoder struct {
	block  []byte
	shared []string
	err    error
}

func (d *decoder) fail() { d.block, d.err = nil, errDamaged }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.block)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.block = d.block[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.block)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.block = d.block[size:]
	return n
}

func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.block)) {
		d.fail()
		return nil
	}
	out := d.block[:n]
	d.block = d.block[n:]
	return out
}

func (d *decoder) text() string { return string(d.bytes(d.uint())) }

func (d *decoder) share() string {
	n := d.uint()
	switch {
	case n == 0:
		s := d.text()
		d.shared = append(d.shared, s)
		return s
	case n > uint64(len(d.shared)):
		d.fail()
		return ""
	}
	return d.shared[n-1]
}

func (d *decoder) uid() string {
	if d.uint() != 0 {
		return d.text()
	}
	id, err := uuid.FromBytes(d.bytes(16))
	if err != nil {
		d.fail()
		return ""
	}
	return id.String()
}

func (d *decoder) bits(flags ...*bool) {
	n := d.uint()
	for i, f := range flags {
		*f = n&(1<<i) != 0
	}
}

// index returns a number below n.
func (d *decoder) index(n int) int {
	i := d.uint()
	if i >= uint64(n) {
		d.fail()
		return 0
	}
	return int(i)
}

// decodeList returns nil for an empty list. Each element has at least one byte.
func decodeList[T any](d *decoder, one func() T) []T {
	n := d.uint()
	if n > uint64(len(d.block)) {
		d.fail()
	}
	if n == 0 || d.err != nil {
		return nil
	}
	out := make([]T, n)
	for i := range out {
		out[i] = one()
	}
	return out
}
