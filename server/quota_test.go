package server_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server"
)

// limit makes a quota and waits until it is counted.
func limit(t *testing.T, s *instance, ns string, hard map[corev1.ResourceName]string) {
	t.Helper()
	q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for name, value := range hard {
		q.Spec.Hard[name] = resource.MustParse(value)
	}
	if _, err := core(t, s.admin()).CoreV1().ResourceQuotas(ns).Create(t.Context(), q, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota is counted", func() bool { return len(quotaOf(t, s, ns).Status.Used) == len(hard) })
}

func quotaOf(t *testing.T, s *instance, ns string) *corev1.ResourceQuota {
	t.Helper()
	q, err := core(t, s.admin()).CoreV1().ResourceQuotas(ns).Get(t.Context(), "q", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// used waits until the status has a count. Admission may know the former count a moment longer.
func used(t *testing.T, s *instance, ns string, name corev1.ResourceName, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d are used of %s", want, name), func() bool {
		n := quotaOf(t, s, ns).Status.Used[name]
		return n.Value() == want
	})
}

const (
	countNetworks = corev1.ResourceName("count/sim-networks.sim.hykube.io")
	countPlans    = corev1.ResourceName("count/plans.hykube.io")
)

func TestQuotaOfObjects(t *testing.T) {
	ns := namespace(t, "quota-objects")
	nets := objects(t, shared.admin()).Resource(simNetworks).Namespace(ns)
	if _, err := nets.Create(t.Context(), simNetwork("before"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limit(t, shared, ns, map[corev1.ResourceName]string{countNetworks: "3", "count/configmaps": "0", "secrets": "1"})
	used(t, shared, ns, countNetworks, 1)

	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	for range 5 {
		if _, err := nets.Create(t.Context(), simNetwork("dry"), dry); err != nil {
			t.Fatalf("a dry run uses nothing: %v", err)
		}
	}
	var made, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 10 {
		all.Go(func() {
			_, err := nets.Create(t.Context(), simNetwork(fmt.Sprintf("n%d", i)), metav1.CreateOptions{})
			switch {
			case err == nil:
				made.Add(1)
			case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota: q, requested: "+string(countNetworks)+"=1, used: "+string(countNetworks)+"=3, limited: "+string(countNetworks)+"=3"):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if made.Load() != 2 || refused.Load() != 8 {
		t.Errorf("%d created, %d refused; want 2 and 8", made.Load(), refused.Load())
	}
	if err := nets.Delete(t.Context(), "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	used(t, shared, ns, countNetworks, 2)
	// A failed create uses nothing.
	list, err := nets.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := nets.Create(t.Context(), simNetwork(list.Items[0].GetName()), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("create of an existing object: %v", err)
	}
	used(t, shared, ns, countNetworks, 2)
	// Server-side apply creates, too.
	apply := metav1.ApplyOptions{FieldManager: "t"}
	eventually(t, "the quota admits a third network", func() bool {
		_, err := nets.Apply(t.Context(), "third", simNetwork("third"), apply)
		return err == nil
	})
	if _, err := nets.Apply(t.Context(), "fourth", simNetwork("fourth"), apply); !apierrors.IsForbidden(err) {
		t.Errorf("apply beyond the quota: %v", err)
	}
	if _, err := core(t, shared.admin()).CoreV1().ConfigMaps(ns).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("create a ConfigMap beyond the quota: %v", err)
	}
}

func TestQuotaOfOpenPlans(t *testing.T) {
	ns := namespace(t, "quota-plans")
	client := objects(t, shared.admin()).Resource(plans).Namespace(ns)
	limit(t, shared, ns, map[corev1.ResourceName]string{countPlans: "1"})
	p := planned(t, shared, ns, nil)
	used(t, shared, ns, countPlans, 1) // admission may have learned of the quota after the plan, which the next count adds
	if _, err := client.Create(t.Context(), newPlan("second", nil), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a second open plan: %v", err)
	}
	if _, err := decide(t, client, p, v1alpha1.DecisionDiscarded, ""); err != nil {
		t.Fatal(err)
	}
	used(t, shared, ns, countPlans, 0)
	eventually(t, "the quota admits a plan after the first one has ended", func() bool {
		_, err := client.Create(t.Context(), newPlan("third", nil), metav1.CreateOptions{})
		return err == nil
	})
}

// TestQuotaAfterARestart changes the count as a crash between the charge and the write leaves it.
func TestQuotaAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := startT(t, server.Config{DataDir: dir, Wire: testWiring})
	if _, err := core(t, s.admin()).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	limit(t, s, "default", map[corev1.ResourceName]string{"count/configmaps": "5"})
	q := quotaOf(t, s, "default")
	q.Status.Used["count/configmaps"] = resource.MustParse("5")
	if _, err := core(t, s.admin()).CoreV1().ResourceQuotas("default").UpdateStatus(t.Context(), q, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = startT(t, server.Config{DataDir: dir, Wire: testWiring})
	used(t, s, "default", "count/configmaps", 1)
}
