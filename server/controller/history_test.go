package controller

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ledger"
)

func TestFinishedPlansAreOutdated(t *testing.T) {
	now := time.Unix(10_000_000, 0)
	var plans []*v1alpha1.Plan
	for i, hours := range []int{5, 1, 3, 4, 2} {
		p := planAt(fmt.Sprint(hours, "h"), i, nil)
		p.Status.FinishedAt = new(metav1.NewTime(now.Add(-time.Duration(hours) * time.Hour)))
		plans = append(plans, p)
	}
	plans = append(plans, planAt("waits", 0, nil), planAt("applies", 0, approve))
	for _, tc := range []struct {
		reason string
		History
		want []string
		next time.Duration
	}{
		{"no bounds", History{}, nil, 0},
		{"three are kept", History{Limit: 3}, []string{"5h", "4h"}, 0},
		{"more are kept than there are", History{Limit: 10}, nil, 0},
		{"kept for half a day", History{Age: 12 * time.Hour}, nil, 7 * time.Hour},
		{"kept for some hours", History{Age: 150 * time.Minute}, []string{"5h", "4h", "3h"}, 30 * time.Minute},
		{"both bounds", History{Limit: 1, Age: 270 * time.Minute}, []string{"5h", "4h", "3h", "2h"}, 210 * time.Minute},
	} {
		remove, next := tc.outdated(plans, now)
		var got []string
		for _, p := range remove {
			got = append(got, p.Name)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || next != tc.next {
			t.Errorf("%s: next look in %s, want %s (-want +got):\n%s", tc.reason, next, tc.next, diff)
		}
	}
}

// TestTheOldestOfASecondIsOutdated has plans that ended in the same second, as quick plans do.
func TestTheOldestOfASecondIsOutdated(t *testing.T) {
	now := time.Unix(10_000_000, 0)
	var plans []*v1alpha1.Plan
	for _, microseconds := range []int64{12, 9, 30} {
		p := planAt(fmt.Sprint(microseconds), 0, nil)
		p.Status.RequestedAt = new(metav1.NewMicroTime(p.CreationTimestamp.Add(time.Duration(microseconds) * time.Microsecond)))
		p.Status.FinishedAt = new(metav1.NewTime(now))
		plans = append(plans, p)
	}
	remove, _ := History{Limit: 2}.outdated(plans, now)
	if len(remove) != 1 || remove[0].Name != "9" {
		t.Errorf("removed %v, want the plan that was requested first", remove)
	}
}

// TestAPlanThatWasWrittenMeanwhileIsRemovedLater has the removal of a plan meet a conflict: no event need follow that
// one.
func TestAPlanThatWasWrittenMeanwhileIsRemovedLater(t *testing.T) {
	e := newEstate(t)
	refused := 0
	client := &fake.RESTClient{
		NegotiatedSerializer: scheme.Codecs.WithoutConversion(), GroupVersion: v1alpha1.SchemeGroupVersion,
		Client: fake.CreateHTTPClient(func(*http.Request) (*http.Response, error) {
			refused++
			body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`
			return &http.Response{StatusCode: http.StatusConflict, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
		}),
	}
	p := &Plans{Ledger: e.Ledger, Client: client, Logger: slog.New(slog.DiscardHandler), History: History{Limit: 1}}
	p.namespaces = newQueue("plans of namespace", p.Logger, p.reconcileNamespace)
	defer p.namespaces.work.ShutDown()
	var plans []*v1alpha1.Plan
	for i := range 2 {
		obj := planAt(fmt.Sprint("p", i), i, nil)
		obj.Status.FinishedAt = new(metav1.NewTime(time.Unix(int64(i), 0)))
		plans = append(plans, obj)
	}
	if err := p.prune(t.Context(), p.History, newBindings(), "team", plans); err != nil || refused != 1 {
		t.Fatalf("%d calls, %v", refused, err)
	}
	if again, _ := p.namespaces.work.Get(); again.Name != "team" { // it waits for the added time
		t.Errorf("%v is looked at again, want team", again)
	}
}

func TestPlansOfLostOutcomesAreKept(t *testing.T) {
	e := newEstate(t)
	p := &Plans{Ledger: e.Ledger}
	b := newBindings()
	e.change("plan", 0, "made", done)
	e.change("plan", 1, "lost", func(c *ledger.Change) { c.State = v1alpha1.ChangeUnknown })
	uncertain := func() bool {
		t.Helper()
		open, err := p.uncertain(t.Context(), b, "plan")
		if err != nil {
			t.Fatal(err)
		}
		return open
	}
	intend := func(intent *ledger.Intent) {
		t.Helper()
		rec, err := e.Instance(t.Context(), e.ref("lost"))
		if err != nil {
			t.Fatal(err)
		}
		rec.Intent = intent
		if err := e.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	intend(&ledger.Intent{Plan: "plan", Change: 1, Action: v1alpha1.ActionCreate})
	if !uncertain() {
		t.Error("an intent of the plan is open, and the plan would be removed")
	}
	intend(&ledger.Intent{Plan: "another", Change: 1, Action: v1alpha1.ActionCreate})
	if uncertain() {
		t.Error("the intent is of another plan, and this one is kept")
	}
	intend(nil)
	if uncertain() {
		t.Error("a user resolved the create, and the plan is kept")
	}
}

// TestChangesOfDeletedPlansGo starts with the changes of a plan that was deleted while the server was down.
func TestChangesOfDeletedPlansGo(t *testing.T) {
	e := newEstate(t)
	p := &Plans{Ledger: e.Ledger, Logger: slog.New(slog.DiscardHandler)}
	p.informer = cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1alpha1.Plan{}, 0, cache.Indexers{})
	p.dropped = newQueue("changes of deleted plan", p.Logger, p.drop)
	for i := range 3 {
		e.change("deleted", i, fmt.Sprint("deleted-", i), done)
		e.change("kept", i, fmt.Sprint("kept-", i), done)
	}
	if err := p.informer.GetStore().Add(planAt("kept", 0, nil)); err != nil {
		t.Fatal(err)
	}
	if err := p.dropOrphans(t.Context()); err != nil {
		t.Fatal(err)
	}
	for p.dropped.work.Len() > 0 {
		item, _ := p.dropped.work.Get()
		if err := p.drop(t.Context(), item); err != nil {
			t.Fatal(err)
		}
		p.dropped.work.Done(item)
	}
	for plan, want := range map[types.UID]int{"deleted": 0, "kept": 3} {
		got := 0
		for _, err := range e.Changes(t.Context(), plan, 0) {
			if err != nil {
				t.Fatal(err)
			}
			got++
		}
		if got != want {
			t.Errorf("%d changes of the plan %q, want %d", got, plan, want)
		}
	}
}

func TestRecordsAreBounded(t *testing.T) {
	e := newEstate(t)
	const total = v1alpha1.MaxRecordedChanges + 50
	for i := range total {
		e.change("plan", i, fmt.Sprint(i), func(c *ledger.Change) {
			c.State = v1alpha1.ChangeDone
			if i == total-1 {
				c.State = v1alpha1.ChangeFailed
			}
		})
	}
	e.change("plan", total, "idle", func(c *ledger.Change) { c.Action = v1alpha1.ActionNoOp })
	got, err := recordedChanges(t.Context(), e.Ledger, "plan")
	if err != nil {
		t.Fatal(err)
	}
	list, more := got.list, got.more
	if got.applied.Update != total-1 || got.applied.NoOp != 0 {
		t.Errorf("the record counts %+v as applied", got.applied)
	}
	if len(list) != v1alpha1.MaxRecordedChanges || more != 50 {
		t.Errorf("%d changes and %d more", len(list), more)
	}
	last := v1alpha1.PlanRecordChange{Address: fmt.Sprint("sim_network.", total-1), Action: v1alpha1.ActionUpdate, Outcome: v1alpha1.ChangeFailed}
	if diff := cmp.Diff(last, list[len(list)-1]); diff != "" {
		t.Errorf("the change that failed is not listed (-want +got):\n%s", diff)
	}
}

func TestRecordNames(t *testing.T) {
	for name, want := range map[string]string{
		"web-x7k2d":              "web-x7k2d-0f3c1a2b",
		strings.Repeat("a", 253): strings.Repeat("a", 244) + "-0f3c1a2b",
		strings.Repeat("a", 243) + "." + strings.Repeat("b", 9): strings.Repeat("a", 243) + "-0f3c1a2b",
	} {
		p := planAt(name, 0, nil)
		p.UID = types.UID("0f3c1a2b-5c4d-4e3f-8a9b-000000000000")
		if got := recordName(p); got != want {
			t.Errorf("record of %q: %q, want %q", name, got, want)
		}
	}
}
