package starter

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
)

func keyed(key string) Signer {
	return Signer{Key: func(context.Context) ([]byte, error) { return []byte(key), nil }}
}

func TestStamps(t *testing.T) {
	s, ctx := keyed("key"), t.Context()
	who := v1alpha1.Identity{Username: "alice", Groups: []string{"dev"}, Through: []v1alpha1.WorkflowUser{{Username: "flow"}}}
	sign := func(by Signer, kind Kind, namespace, id string) string {
		text, err := by.Sign(ctx, Stamp{Kind: kind, Namespace: namespace, ID: id, For: who})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	own := sign(s, OfRun, "prod", "www")
	if got, err := s.Verify(ctx, own, OfRun, "prod", "www"); err != nil || !cmp.Equal(got, who) {
		t.Errorf("the own stamp: %+v, %v", got, err)
	}
	body, mac, _ := strings.Cut(own, ".")
	other, _, _ := strings.Cut(sign(s, OfRun, "prod", "other"), ".")
	for why, text := range map[string]string{
		"another workflow":  sign(s, OfRun, "prod", "other"),
		"another namespace": sign(s, OfRun, "dev", "www"),
		"another kind":      sign(s, OfSchedule, "prod", "www"),
		"another key":       sign(keyed("other"), OfRun, "prod", "www"),
		"another body":      other + "." + mac,
		"no signature":      body,
		"nothing":           "",
	} {
		if got, err := s.Verify(ctx, text, OfRun, "prod", "www"); err == nil {
			t.Errorf("%s: %+v, want a refusal", why, got)
		}
	}
	task := sign(s, OfTask, "prod", "flow")
	if got, err := s.VerifyTask(ctx, task, "flow"); err != nil || got.Username != "alice" {
		t.Errorf("the worker's own: %+v, %v", got, err)
	}
	for why, text := range map[string]string{"another worker's": sign(s, OfTask, "prod", "other"), "a workflow's": sign(s, OfRun, "prod", "flow"), "changed": task + "x"} {
		if _, err := s.VerifyTask(ctx, text, "flow"); err == nil {
			t.Errorf("%s: no refusal", why)
		}
	}

	token, err := s.Seal(ctx, Task{Queue: "q", Users: []v1alpha1.WorkflowUser{{Username: "eve"}}, Token: []byte("token")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Unseal(ctx, token); err != nil || got.Queue != "q" || string(got.Token) != "token" || len(got.Users) != 1 {
		t.Errorf("a sealed token: %+v, %v", got, err)
	}
	for why, data := range map[string][]byte{"one of Temporal": []byte("token"), "another queue": bytes.Replace(token, []byte(`"q"`), []byte(`"p"`), 1),
		"another user": bytes.Replace(token, []byte(`"eve"`), []byte(`"bob"`), 1), "empty": nil} {
		if _, err := s.Unseal(ctx, data); err == nil {
			t.Errorf("%s: no refusal", why)
		}
	}
}
