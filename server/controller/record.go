package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/loopback"
)

// recordName returns the name of a plan's record. The beginning of the UID distinguishes plans with the same name.
func recordName(p *v1alpha1.Plan) string {
	const unique = 8
	suffix := "-" + string(p.UID[:min(len(p.UID), unique)])
	return strings.TrimRight(p.Name[:min(len(p.Name), validation.DNS1123SubdomainMaxLength-len(suffix))], "-.") + suffix
}

// outcome returns the outcome of an approved or discarded plan, or "" before its end.
func outcome(p *v1alpha1.Plan) string {
	if p.Status.FinishedAt == nil {
		return ""
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionApplied); c != nil {
		return c.Reason
	}
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// record writes the PlanRecord of an approved or discarded plan, and updates it when the plan has ended. A finalizer
// keeps the plan until its record is complete.
func (p *Plans) record(ctx context.Context, obj *v1alpha1.Plan) error {
	if obj.Status.Approval == nil { // another client added the finalizer
		return p.releaseRecord(ctx, obj)
	}
	ended := obj.Status.FinishedAt != nil
	if p.sent(recordKey(obj)) && !ended {
		return nil
	}
	if err := p.writeRecord(ctx, obj); err != nil {
		return fmt.Errorf("write record of plan %q: %w", obj.Name, err)
	}
	p.note(recordKey(obj), true)
	if !ended {
		return nil
	}
	return p.releaseRecord(ctx, obj)
}

func recordKey(obj *v1alpha1.Plan) string { return string(obj.UID) + " record" }

func (p *Plans) writeRecord(ctx context.Context, obj *v1alpha1.Plan) error {
	rec := &v1alpha1.PlanRecord{
		ObjectMeta:   metav1.ObjectMeta{Name: recordName(obj), Namespace: obj.Namespace},
		Plan:         v1alpha1.PlanReference{Name: obj.Name, UID: obj.UID},
		RequestedBy:  obj.Status.RequestedBy,
		Contributors: obj.Status.Contributors,
		RequestedAt:  new(obj.CreationTimestamp),
		Approval:     *obj.Status.Approval,
		Approvals:    obj.Status.Approvals,
		Summary:      obj.Status.Summary,
		Outcome:      outcome(obj),
		FinishedAt:   obj.Status.FinishedAt,
	}
	if of := obj.Status.Stack; of != nil {
		rec.CheckRequestedBy = of.CheckRequestedBy
	}
	if rec.FinishedAt != nil {
		rec.Progress = obj.Status.Progress
	}
	made, err := recordedChanges(ctx, p.Ledger, obj.UID)
	if err != nil {
		return err
	}
	rec.Changes, rec.MoreChanges = made.list, made.more
	if rec.FinishedAt != nil {
		rec.Applied = &made.applied
	}
	err = p.Client.Post().Namespace(obj.Namespace).Resource("planrecords").Body(rec).Do(ctx).Error()
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return loopback.Update(ctx, p.Client, "planrecords", obj.Namespace, rec.Name, "",
		func(stored *v1alpha1.PlanRecord) error {
			rec.ObjectMeta = stored.ObjectMeta
			*stored = *rec
			return nil
		})
}

// releaseRecord removes the finalizer of a plan whose record is complete.
func (p *Plans) releaseRecord(ctx context.Context, obj *v1alpha1.Plan) error {
	return ignoreNotFound(loopback.Update(ctx, p.Client, "plans", obj.Namespace, obj.Name, "",
		func(fresh *v1alpha1.Plan) error {
			if fresh.UID == obj.UID {
				fresh.Finalizers = slices.DeleteFunc(fresh.Finalizers,
					func(f string) bool { return f == v1alpha1.FinalizerRecord })
			}
			return nil
		}))
}
