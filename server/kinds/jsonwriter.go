package kinds

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
)

// jsonWriter writes JSON as a stream. The document of a large provider has about 10 MB, and would need ten times that
// as a tree of Go values.
type jsonWriter struct {
	w *bufio.Writer
	// first has an entry for each open object or list. It is true until the first element is written.
	first []bool
	err   error
}

func newJSONWriter(w io.Writer) *jsonWriter { return &jsonWriter{w: bufio.NewWriterSize(w, 64<<10)} }

func (j *jsonWriter) raw(s string) {
	if _, err := j.w.WriteString(s); err != nil && j.err == nil {
		j.err = err
	}
}

// next writes the comma before an element unless it is the first.
func (j *jsonWriter) next() {
	if n := len(j.first); n > 0 {
		if !j.first[n-1] {
			j.raw(",")
		}
		j.first[n-1] = false
	}
}

func (j *jsonWriter) open(bracket string) {
	j.raw(bracket)
	j.first = append(j.first, true)
}

func (j *jsonWriter) close(bracket string) {
	j.first = j.first[:len(j.first)-1]
	j.raw(bracket)
}

// key writes the key of a member of the open object. The value must follow.
func (j *jsonWriter) key(name string) {
	j.next()
	j.quote(name)
	j.raw(":")
}

func (j *jsonWriter) quote(s string) {
	b, err := json.Marshal(s)
	if err != nil && j.err == nil {
		j.err = err
	}
	j.raw(string(b))
}

// object writes a member whose value is an object.
func (j *jsonWriter) object(name string, body func()) {
	j.key(name)
	j.open("{")
	body()
	j.close("}")
}

// value writes a member with any JSON value.
func (j *jsonWriter) value(name string, v any) {
	b, err := json.Marshal(v)
	if err != nil && j.err == nil {
		j.err = err
	}
	j.key(name)
	j.raw(string(b))
}

func (j *jsonWriter) string(name, value string) {
	j.key(name)
	j.quote(value)
}

func (j *jsonWriter) number(name string, value int64) {
	j.key(name)
	j.raw(strconv.FormatInt(value, 10))
}

func (j *jsonWriter) true(name string) {
	j.key(name)
	j.raw("true")
}

// flush flushes the output and returns the first error of all writes.
func (j *jsonWriter) flush() error {
	if err := j.w.Flush(); err != nil && j.err == nil {
		j.err = err
	}
	return j.err
}
