package batch

import (
	"context"
	"sync"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file hides the secrets of the calls of a batch in its answers. A provider may answer all calls with one text,
// which quotes the arguments of any of them. The caller of one call does not know the secrets of the others.

// Secrets replaces the secrets of a call in a text.
type Secrets interface{ Hide(text string) string }

type secretsKey struct{}

// WithSecrets returns a context for a call whose request has secrets. All calls of its batch hide them.
func WithSecrets(ctx context.Context, s Secrets) context.Context {
	return context.WithValue(ctx, secretsKey{}, s)
}

// secretsOf returns the secrets of a call; nil if it has none.
func secretsOf(ctx context.Context) Secrets {
	s, _ := ctx.Value(secretsKey{}).(Secrets)
	return s
}

// hidden hides the secrets of all calls of a batch. Nil hides nothing.
type hidden struct {
	all []Secrets

	mu sync.Mutex
	// known has the results, because the calls of a batch often have the same text.
	known map[string]string
}

// secretsOfAll returns nil if no call has secrets.
func secretsOfAll(batch []*call) *hidden {
	h := &hidden{known: map[string]string{}}
	for _, one := range batch {
		if one.secrets != nil {
			h.all = append(h.all, one.secrets)
		}
	}
	if len(h.all) == 0 {
		return nil
	}
	return h
}

// in returns a text without the secrets.
func (h *hidden) in(text string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if out, ok := h.known[text]; ok {
		return out
	}
	out := text
	for _, s := range h.all {
		out = s.Hide(out)
	}
	h.known[text] = out
	return out
}

// inError returns the error of a call without the secrets.
func (h *hidden) inError(err error) error {
	if h == nil {
		return err
	}
	s := status.Convert(err)
	text := h.in(s.Message())
	if text == s.Message() {
		return err
	}
	return status.Error(s.Code(), text)
}

// inDiagnostics hides the secrets in the diagnostics of an answer. It finds them by their names: a provider that serves
// batches has the generated types of the protocol from another package, and a program can have only one of the two.
func (h *hidden) inDiagnostics(answer proto.Message) {
	if h == nil {
		return
	}
	m := answer.ProtoReflect()
	field := m.Descriptor().Fields().ByName("diagnostics")
	if field == nil {
		return
	}
	list := m.Get(field).List()
	for i := range list.Len() {
		d := list.Get(i).Message()
		for _, name := range []protoreflect.Name{"summary", "detail"} {
			f := d.Descriptor().Fields().ByName(name)
			d.Set(f, protoreflect.ValueOfString(h.in(d.Get(f).String())))
		}
	}
}
