package server_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/direct"
	"github.com/hykube/hykube/server/loopback"
	"github.com/hykube/hykube/server/registry"
)

// TestStoredPlans writes the same status by a request of the server and without a request, and compares the Plans.
func TestStoredPlans(t *testing.T) {
	var plans *registry.StoredPlans
	i := startT(t, server.Config{DataDir: filepath.Join(t.TempDir(), "data"), Wire: func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		plans = h.Plans
		return testWiring(ctx, h)
	}})
	ctx := t.Context()
	itself, err := loopback.NewClient(i.itself)
	if err != nil {
		t.Fatal(err)
	}
	change := func(p *v1alpha1.Plan) error {
		p.Status.Digest = "d"
		p.Spec.Destroy = true // a write of the status does not change the spec
		p.Status.Conditions[0].Message = "m"
		return nil
	}
	var stored []*v1alpha1.Plan
	for _, name := range []string{"request", "direct"} {
		p := &v1alpha1.Plan{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "Plan"}}
		p.Name = name
		if err := itself.Post().Namespace("default").Resource("plans").Body(p).Do(ctx).Error(); err != nil {
			t.Fatal(err)
		}
		if name == "request" {
			err = loopback.Update(ctx, itself, "plans", "default", name, "status", change)
		} else {
			err = plans.UpdateStatus(ctx, "default", name, change)
		}
		if err != nil {
			t.Fatal(err)
		}
		if p, err = plans.Get(ctx, "default", name); err != nil {
			t.Fatal(err)
		}
		if p.Status.RequestedAt.IsZero() {
			t.Errorf("%s: the status has no time of the request", name)
		}
		p.Name, p.UID, p.ResourceVersion, p.CreationTimestamp, p.Status.RequestedAt = "", "", "", metav1.Time{}, nil
		for i := range p.Status.Conditions {
			p.Status.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		for i := range p.ManagedFields {
			p.ManagedFields[i].Time = nil
		}
		stored = append(stored, p)
	}
	if diff := cmp.Diff(stored[0], stored[1]); diff != "" || stored[1].Status.Digest != "d" || stored[1].Spec.Destroy {
		t.Errorf("(-request +direct):\n%s", diff)
	}

	before, err := plans.Get(ctx, "default", "direct")
	if err != nil {
		t.Fatal(err)
	}
	if err := plans.UpdateStatus(ctx, "default", "direct", func(*v1alpha1.Plan) error { return direct.ErrUnchanged }); err != nil {
		t.Error(err)
	}
	if after, err := plans.Get(ctx, "default", "direct"); err != nil || after.ResourceVersion != before.ResourceVersion {
		t.Errorf("an unchanged plan was written (%v)", err)
	}
	// The subresource "approval" writes the approval.
	err = plans.UpdateStatus(ctx, "default", "direct", func(p *v1alpha1.Plan) error {
		p.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved}
		return nil
	})
	after, gerr := plans.Get(ctx, "default", "direct")
	if err := errors.Join(err, gerr); err != nil || after.Status.Approval != nil {
		t.Errorf("approval %v (%v)", after.Status.Approval, err)
	}
	if err := plans.UpdateStatus(ctx, "default", "absent", change); !apierrors.IsNotFound(err) {
		t.Errorf("write of a plan that does not exist: %v", err)
	}
	if _, err := plans.Get(ctx, "default", "absent"); !apierrors.IsNotFound(err) {
		t.Errorf("read of a plan that does not exist: %v", err)
	}
}
