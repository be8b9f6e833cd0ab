package activitiestest

import (
	"context"
	"errors"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"

	"k8s.io/apimachinery/pkg/types"
)

// OnePlan is a plan store that holds one Plan object.
type OnePlan struct {
	mu   sync.Mutex
	Plan v1alpha1.Plan
	Got  int
}

func (p *OnePlan) Get(context.Context, string, string, types.UID) (*v1alpha1.Plan, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Got++
	return p.Plan.DeepCopy(), nil
}

func (p *OnePlan) Cancelled(context.Context, string, string, types.UID) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Got++
	return p.Plan.Status.Cancel != nil, nil
}

func (p *OnePlan) UpdateStatus(_ context.Context, _, _ string, _ types.UID, change func(*v1alpha1.PlanStatus)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.Plan.Status)
	return nil
}

func (p *OnePlan) Approve(context.Context, string, string, types.UID, v1alpha1.PlanApproval) error {
	return errors.New("no user approves here")
}

func (p *OnePlan) Cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Plan.Status.Cancel = &v1alpha1.PlanCancel{}
}

func (p *OnePlan) Says() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.Plan.Status.Conditions {
		if c.Type == v1alpha1.ConditionReconciling {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}
