package loopback

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// Policies reads PlanPolicies, ClusterPlanPolicies and PlanRecords. It implements store.Policies.
type Policies struct {
	Client rest.Interface
	Core   kubernetes.Interface
}

var _ store.Policies = (*Policies)(nil)

// Of implements store.Policies.
func (p *Policies) Of(ctx context.Context, namespace string) (*store.PlanPolicies, error) {
	own, cluster := &v1alpha1.PlanPolicyList{}, &v1alpha1.ClusterPlanPolicyList{}
	if err := p.Client.Get().Namespace(namespace).Resource("planpolicies").Do(ctx).Into(own); err != nil {
		return nil, fmt.Errorf("list plan policies in namespace %q: %w", namespace, err)
	}
	if err := p.Client.Get().Resource("clusterplanpolicies").Do(ctx).Into(cluster); err != nil {
		return nil, fmt.Errorf("list cluster plan policies: %w", err)
	}
	found := &store.PlanPolicies{Policies: own.Items, Cluster: cluster.Items}
	if len(own.Items)+len(cluster.Items) == 0 {
		return found, nil
	}
	ns, err := p.Core.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("read namespace %q: %w", namespace, err)
	}
	found.NamespaceLabels = ns.GetLabels()
	return found, nil
}

// recordPage is the number of PlanRecords in one response.
const recordPage = 500

// Earlier implements store.Policies.
func (p *Policies) Earlier(ctx context.Context, namespace string, limit int) ([]v1alpha1.PlanRecord, error) {
	var records []v1alpha1.PlanRecord
	for token := ""; ; {
		page := &v1alpha1.PlanRecordList{}
		opts := &metav1.ListOptions{Limit: recordPage, Continue: token}
		if err := p.Client.Get().Namespace(namespace).Resource("planrecords").VersionedParams(opts,
			metav1.ParameterCodec).Do(ctx).Into(page); err != nil {
			return nil, fmt.Errorf("list plan records in namespace %q: %w", namespace, err)
		}
		records = append(records, page.Items...)
		slices.SortStableFunc(records,
			func(a, b v1alpha1.PlanRecord) int { return decidedAt(&b).Compare(decidedAt(&a)) })
		records = records[:min(len(records), limit)]
		if token = page.Continue; token == "" {
			return records, nil
		}
	}
}

// decidedAt returns the time of the decision about a record's plan; the zero time if unknown.
func decidedAt(r *v1alpha1.PlanRecord) time.Time {
	if r.Approval.At == nil {
		return time.Time{}
	}
	return r.Approval.At.Time
}
