package server_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/loopback"
)

// heardWarnings has the warnings in the responses to a client.
type heardWarnings []string

func (h *heardWarnings) HandleWarningHeader(_ int, _, text string) { *h = append(*h, text) }

// TestDeletionOfAStackWithPlans deletes a stack and expects a warning about each plan that the deletion ends.
func TestDeletionOfAStackWithPlans(t *testing.T) {
	i := startT(t, server.Config{DataDir: filepath.Join(t.TempDir(), "data")})
	ctx := t.Context()
	itself, err := loopback.NewClient(i.itself)
	if err != nil {
		t.Fatal(err)
	}
	var heard heardWarnings
	admin := rest.CopyConfig(i.admin())
	admin.WarningHandler = &heard
	stacks := objects(t, admin).Resource(v1alpha1.SchemeGroupVersion.WithResource("stacks")).Namespace("default")
	plan := func(name string, of types.UID, number int64, change func(*v1alpha1.Plan)) {
		t.Helper()
		p := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}}
		p.Name = name
		p.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
		p.Status.Stack = &v1alpha1.PlanStack{Stack: "web", StackUID: of, Number: number}
		if err := itself.Post().Namespace("default").Resource("plans").Body(p).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
		err := loopback.Update(ctx, itself, "plans", "default", name, "status", func(p *v1alpha1.Plan) error {
			change(p)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	planned := func(p *v1alpha1.Plan) {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPlanned})
	}
	for name, remove := range map[string]func(dynamic.ResourceInterface, metav1.DeleteOptions) error{
		"one": func(r dynamic.ResourceInterface, o metav1.DeleteOptions) error { return r.Delete(ctx, "web", o) },
		"all": func(r dynamic.ResourceInterface, o metav1.DeleteOptions) error {
			return r.DeleteCollection(ctx, o, metav1.ListOptions{})
		},
	} {
		s, err := stacks.Create(ctx, newObject("Stack", "web", map[string]any{"selector": map[string]any{"matchLabels": map[string]any{"stack": "web"}}}), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		plan(name+"-1", s.GetUID(), 1, func(p *v1alpha1.Plan) {
			planned(p)
			meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSuperseded})
		})
		plan(name+"-2", s.GetUID(), 2, planned)
		plan(name+"-3", s.GetUID(), 3, func(*v1alpha1.Plan) {})
		plan(name+"-of-another", "other", 1, planned)
		heard = nil
		if err := remove(stacks, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || len(heard) > 0 {
			t.Errorf("%s, dry run: warnings %q (%v)", name, heard, err)
		}
		if err := remove(stacks, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, text := range heard {
			first, rest, _ := strings.Cut(text, ". ")
			got = append(got, first)
			if !strings.HasPrefix(rest, "The resources of the stack and their infrastructure stay") || !strings.HasSuffix(rest, "kubectl hykube plan -n default") {
				t.Errorf("%s: the warning says %q", name, rest)
			}
		}
		want := []string{
			`stack "web": its plan ` + name + `-2 waits for a decision and will be discarded`,
			`stack "web": its plan ` + name + `-3 is being made and will be cancelled`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the warnings differ (-want +got):\n%s", name, diff)
		}
	}
}
