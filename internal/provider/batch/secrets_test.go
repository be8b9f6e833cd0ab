package batch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hykube/hykube/sdk/batch/batchv1"
	"github.com/hykube/hykube/sdk/batch/tfplugin6"
)

// secret is the only secret of a call.
type secret string

func (s secret) Hide(text string) string { return strings.ReplaceAll(text, string(s), "(hidden)") }

// TestNoCallShowsTheSecretsOfOthers makes batches whose calls all get one text, which has the secrets of two of them.
func TestNoCallShowsTheSecretsOfOthers(t *testing.T) {
	t.Parallel()
	const text = "refused: hunter22, then correct-horse"
	for what, answer := range map[string]func(stream grpc.ServerStream, names []string) error{
		"diagnostics": func(s grpc.ServerStream, names []string) error {
			b, err := proto.Marshal(&tfplugin6.ApplyResourceChange_Response{Diagnostics: []*tfplugin6.Diagnostic{{Summary: text, Detail: "Detail: " + text}, {Summary: "Plain"}}})
			if err != nil {
				return err
			}
			for i := range names {
				if err := s.SendMsg(&batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Response{Response: b}}); err != nil {
					return err
				}
			}
			return nil
		},
		"errors": func(s grpc.ServerStream, names []string) error {
			for i := range names {
				if err := s.SendMsg(&batchv1.Call_Response{Index: int32(i), Answer: &batchv1.Call_Response_Error{Error: &batchv1.Call_Error{Code: int32(codes.Internal), Message: text}}}); err != nil {
					return err
				}
			}
			return nil
		},
		"the error of the batch": func(grpc.ServerStream, []string) error { return status.Error(codes.Internal, text) },
	} {
		p := &plugin{limits: thing(3), answer: answer}
		c := p.dial(t).(*Conn)
		c.queues[Kind{batchv1.Method_APPLY_RESOURCE_CHANGE, "thing"}] = &queue{running: 1, delay: time.Hour} // all calls are in one batch
		got := make(chan string)
		for _, s := range []Secrets{secret("hunter22"), secret("correct-horse"), nil} {
			go func() {
				ctx, resp := t.Context(), new(tfplugin6.ApplyResourceChange_Response)
				if s != nil {
					ctx = WithSecrets(ctx, s)
				}
				err := c.Invoke(ctx, applyMethod, &tfplugin6.ApplyResourceChange_Request{TypeName: "thing"}, resp)
				got <- fmt.Sprint(err, resp.Diagnostics)
			}()
		}
		for range 3 {
			if text := <-got; strings.Contains(text, "hunter22") || strings.Contains(text, "correct-horse") || !strings.Contains(text, "refused: (hidden), then (hidden)") {
				t.Errorf("%s: %s", what, text)
			}
		}
		if len(p.batches) != 1 {
			t.Errorf("%s: %d batches, want one", what, len(p.batches))
		}
	}
}

func TestAnErrorWithoutSecretsStaysAsItIs(t *testing.T) {
	t.Parallel()
	err := context.DeadlineExceeded
	for _, h := range []*hidden{nil, secretsOfAll([]*call{{}}), secretsOfAll([]*call{{secrets: secret("hunter22")}})} {
		if got := h.inError(err); got != err {
			t.Errorf("error %v, want the same", got)
		}
	}
}
