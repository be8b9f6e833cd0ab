package record

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ChangedError is the error for an object of the files that changed after the plan was shown.
type ChangedError struct {
	Object *unstructured.Unstructured
	Cause  error
}

func (e *ChangedError) Error() string { return e.Cause.Error() }

func (e *ChangedError) Unwrap() error { return e.Cause }

// ChangedObjects returns the objects of the files that changed after the plan was shown. It returns none if there is also
// another error.
func ChangedObjects(err error) []*ChangedError {
	if m, ok := err.(*ChangedError); ok {
		return []*ChangedError{m}
	}
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var out []*ChangedError
		for _, one := range e.Unwrap() {
			ms := ChangedObjects(one)
			if len(ms) == 0 {
				return nil
			}
			out = append(out, ms...)
		}
		return out
	case interface{ Unwrap() error }:
		return ChangedObjects(errors.Unwrap(err))
	}
	return nil
}
