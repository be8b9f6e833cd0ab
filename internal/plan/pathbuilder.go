package plan

import (
	"github.com/hykube/hykube/internal/diag"

	"fmt"

	"github.com/zclconf/go-cty/cty"
)

// pathBuilder is a path as a linked list of steps back to the root. A walk extends it without copying; only an error
// builds the cty.Path.
type pathBuilder struct {
	up   *pathBuilder
	step cty.PathStep
}

func (t *pathBuilder) attr(name string) *pathBuilder {
	return &pathBuilder{up: t, step: cty.GetAttrStep{Name: name}}
}

func (t *pathBuilder) index(key cty.Value) *pathBuilder {
	return &pathBuilder{up: t, step: cty.IndexStep{Key: key}}
}

func (t *pathBuilder) path() cty.Path {
	n := 0
	for s := t; s != nil; s = s.up {
		n++
	}
	p := make(cty.Path, n)
	for s := t; s != nil; s = s.up {
		n--
		p[n] = s.step
	}
	return p
}

// errorf returns a cty.PathError. Its text names the path, too, so that printing the error alone shows it.
func (t *pathBuilder) errorf(format string, args ...any) error {
	p := t.path()
	err := fmt.Errorf(format, args...)
	if len(p) > 0 {
		err = fmt.Errorf("%s: %w", diag.PathField("", p), err)
	}
	return p.NewError(err)
}

// problems is a list of errors with their paths.
type problems []error

func (p *problems) add(at *pathBuilder, format string, args ...any) {
	*p = append(*p, at.errorf(format, args...))
}
