package contributor

import (
	"fmt"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file reads and writes lists of contributors in unstructured statuses. Each write of an object does both, and the
// converter of apimachinery takes ten times as long.

// Of returns the contributors in the status of an object; nil if there are none. If they cannot be read, anybody may
// have written it.
func Of(status any) []v1alpha1.Contributor {
	m, _ := status.(map[string]any)
	raw, ok := m["contributors"].([]any)
	if !ok || len(raw) == 0 {
		return nil
	}
	list := make([]v1alpha1.Contributor, len(raw))
	for i := range raw {
		var r reader
		if list[i] = r.contributor(raw[i]); r.err != nil {
			return []v1alpha1.Contributor{{More: true}}
		}
	}
	return list
}

// reader reads the fields of an entry. err is the first error.
type reader struct{ err error }

func (r *reader) contributor(raw any) (c v1alpha1.Contributor) {
	m := valueOf[map[string]any](r, raw)
	who := r.user(m)
	c.Username, c.Groups, c.TokenFile = who.Username, who.Groups, who.TokenFile
	for _, through := range valueOf[[]any](r, m["through"]) {
		c.Through = append(c.Through, r.user(valueOf[map[string]any](r, through)))
	}
	c.More, c.Wrote = valueOf[bool](r, m["more"]), r.texts(m["wrote"])
	if text := valueOf[string](r, m["at"]); text != "" {
		at, err := time.Parse(metav1.RFC3339Micro, text)
		if c.At = metav1.NewMicroTime(at.Local()); err != nil {
			r.err = err
		}
	}
	return c
}

func (r *reader) user(m map[string]any) v1alpha1.WorkflowUser {
	return v1alpha1.WorkflowUser{Username: valueOf[string](r, m["username"]), Groups: r.texts(m["groups"]),
		TokenFile: valueOf[bool](r, m["tokenFile"])}
}

func (r *reader) texts(raw any) (texts []string) {
	for _, text := range valueOf[[]any](r, raw) {
		texts = append(texts, valueOf[string](r, text))
	}
	return texts
}

// valueOf returns a value of a type; the zero value for nil, and for a value of another type.
func valueOf[T any](r *reader, raw any) (v T) {
	v, ok := raw.(T)
	if !ok && raw != nil {
		r.err = fmt.Errorf("%T instead of %T", raw, v)
	}
	return v
}

// ToList returns contributors in the form of an unstructured status.
func ToList(list []v1alpha1.Contributor) []any {
	out := make([]any, len(list))
	for i, c := range list {
		m := userMap(v1alpha1.WorkflowUser{Username: c.Username, Groups: c.Groups, TokenFile: c.TokenFile})
		if len(c.Through) > 0 {
			through := make([]any, len(c.Through))
			for k, u := range c.Through {
				through[k] = userMap(u)
			}
			m["through"] = through
		}
		if c.More {
			m["more"] = true
		}
		if len(c.Wrote) > 0 {
			m["wrote"] = textList(c.Wrote)
		}
		if m["at"] = nil; !c.At.IsZero() {
			m["at"] = c.At.UTC().Format(metav1.RFC3339Micro)
		}
		out[i] = m
	}
	return out
}

func userMap(u v1alpha1.WorkflowUser) map[string]any {
	m := map[string]any{"username": u.Username}
	if len(u.Groups) > 0 {
		m["groups"] = textList(u.Groups)
	}
	if u.TokenFile {
		m["tokenFile"] = true
	}
	return m
}

func textList(texts []string) []any {
	out := make([]any, len(texts))
	for i := range texts {
		out[i] = texts[i]
	}
	return out
}
