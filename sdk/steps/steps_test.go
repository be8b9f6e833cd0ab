package steps

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestStepName(t *testing.T) {
	step := func(id, run, activityID string) activity.Info {
		return activity.Info{Namespace: "hykube.prod", WorkflowExecution: workflow.Execution{ID: id, RunID: run}, ActivityID: activityID}
	}
	a := stepName(step("Blue/Green 1", "r", "5"))
	if !strings.HasPrefix(a, "blue-green-1-") || a != stepName(step("Blue/Green 1", "r", "5")) {
		t.Errorf("name: %q, want one that begins with the workflow ID, the same each time", a)
	}
	for reason, other := range map[string]activity.Info{
		"another step":              step("Blue/Green 1", "r", "6"),
		"another run":               step("Blue/Green 1", "s", "5"),
		"another ID, same when cut": step("blue-green-1", "r", "5"),
	} {
		if stepName(other) == a {
			t.Errorf("%s has the same plan", reason)
		}
	}
	if got := stepName(step("日本", "r", "5")); !strings.HasPrefix(got, "workflow-") {
		t.Errorf("name of an ID without usable characters: %q", got)
	}
	if got := stepName(step(strings.Repeat("x", 1000), "r", "5")); len(got) > 63 {
		t.Errorf("name of a long ID has %d characters", len(got))
	}
}

// fakeAPI answers requests for plans. Each value of answers is a status code and an object.
type fakeAPI struct {
	*httptest.Server
	posts, puts, watches atomic.Int32
	post                 func() (int, any)
	get                  func() (int, any)
	put                  func() (int, any)
	watch                func(url.Values) (int, any) // with the parameters of the request
}

func newFakeAPI(t *testing.T) (*fakeAPI, *testsuite.TestActivityEnvironment) {
	t.Helper()
	f := &fakeAPI{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := f.get
		switch query := r.URL.Query(); {
		case query.Has("watch"):
			f.watches.Add(1)
			answer = func() (int, any) { return f.watch(query) }
		case r.Method == http.MethodPost:
			f.posts.Add(1)
			answer = f.post
		case r.Method == http.MethodPut:
			f.puts.Add(1)
			answer = f.put
		}
		code, object := answer()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		if err := json.NewEncoder(w).Encode(object); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(f.Close)
	s, err := New(&rest.Config{Host: f.URL}, "prod")
	if err != nil {
		t.Fatal(err)
	}
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	s.Register(env)
	return f, env
}

func status(err *apierrors.StatusError) (int, any) {
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
	return int(err.ErrStatus.Code), err.ErrStatus
}

// stored returns the plan as the server stores it, with a condition.
func stored(p *v1alpha1.Plan, kind, reason string) *v1alpha1.Plan {
	p.APIVersion, p.Kind, p.UID, p.ResourceVersion = v1alpha1.SchemeGroupVersion.String(), "Plan", "uid-1", "7"
	p.Spec = withDefaults(p.Spec)
	p.Status.Digest = "sha256:1"
	if kind != "" {
		p.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: "because"}}
	}
	return p
}

// ofTestStep returns the plan that the activity of the test environment makes.
func ofTestStep(t *testing.T, spec v1alpha1.PlanSpec) *v1alpha1.Plan {
	t.Helper()
	env := new(testsuite.WorkflowTestSuite).NewTestActivityEnvironment()
	var p *v1alpha1.Plan
	f := func(ctx context.Context) error { p = planOfStep(activity.GetInfo(ctx), "prod", spec); return nil }
	env.RegisterActivity(f)
	if _, err := env.ExecuteActivity(f); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRetriedPlanAdoptsItsOwnPlan(t *testing.T) {
	spec := v1alpha1.PlanSpec{Targets: []string{"sim_network.main"}}
	exists := func() (int, any) {
		return status(apierrors.NewAlreadyExists(schema.GroupResource{Resource: "plans"}, "x"))
	}
	for name, tc := range map[string]struct {
		change func(*v1alpha1.Plan)
		want   string
	}{
		"an earlier attempt made the plan":    {func(*v1alpha1.Plan) {}, ""},
		"another run made the plan":           {func(p *v1alpha1.Plan) { p.Annotations[v1alpha1.AnnotationWorkflowRunID] = "other" }, Conflict},
		"a user made a plan of the name":      {func(p *v1alpha1.Plan) { p.Annotations = nil }, Conflict},
		"a user made one with more targets":   {func(p *v1alpha1.Plan) { p.Spec.Targets = nil }, Conflict},
		"a user made one that destroys":       {func(p *v1alpha1.Plan) { p.Spec.Destroy = true }, Conflict},
		"a user made one that applies itself": {func(p *v1alpha1.Plan) { p.Spec.Approval = v1alpha1.ApprovalAutomatic }, Conflict},
	} {
		t.Run(name, func(t *testing.T) {
			f, env := newFakeAPI(t)
			f.post = exists
			f.get = func() (int, any) {
				p := stored(ofTestStep(t, spec), v1alpha1.ConditionPlanned, v1alpha1.ReasonPlanned)
				tc.change(p)
				return http.StatusOK, p
			}
			value, err := env.ExecuteActivity(planName, PlanOptions{Spec: spec})
			if tc.want != "" {
				if !Is(err, tc.want) {
					t.Fatalf("error: %v, want the type %s", err, tc.want)
				}
				return
			}
			var got PlanResult
			if err != nil || value.Get(&got) != nil || got.UID != "uid-1" || got.Digest != "sha256:1" {
				t.Fatalf("result: %+v, %v; want the plan that exists", got, err)
			}
		})
	}
}

func TestPlanFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, reason, want string
	}{
		"planning failed":   {v1alpha1.ConditionStalled, v1alpha1.ReasonPlanFailed, PlanFailed},
		"a policy denies":   {v1alpha1.ConditionStalled, v1alpha1.ReasonPolicyDenied, PolicyDenied},
		"a change is stuck": {v1alpha1.ConditionStalled, v1alpha1.ReasonBlocked, Blocked},
	} {
		t.Run(name, func(t *testing.T) {
			f, env := newFakeAPI(t)
			f.post = func() (int, any) {
				return http.StatusCreated, stored(ofTestStep(t, v1alpha1.PlanSpec{}), "", "")
			}
			f.get = func() (int, any) {
				p := stored(ofTestStep(t, v1alpha1.PlanSpec{}), tc.kind, tc.reason)
				if tc.reason == v1alpha1.ReasonPlanFailed {
					p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionPlanned, Status: metav1.ConditionFalse, Reason: tc.reason})
				}
				return http.StatusOK, p
			}
			_, err := env.ExecuteActivity(planName, PlanOptions{})
			if !Is(err, tc.want) {
				t.Fatalf("error: %v, want the type %s", err, tc.want)
			}
			if ref, ok := PlanOf(err); !ok || ref.UID != "uid-1" || ref.Digest != "sha256:1" {
				t.Errorf("the error names plan %+v, want the plan with its digest", ref)
			}
			if failure, _ := errors.AsType[*temporal.ApplicationError](err); !failure.NonRetryable() {
				t.Error("Temporal would retry the step")
			}
		})
	}
}

func TestApplyApprovesTheDigestThatWasRead(t *testing.T) {
	f, env := newFakeAPI(t)
	f.get = func() (int, any) {
		return http.StatusOK, stored(ofTestStep(t, v1alpha1.PlanSpec{}), v1alpha1.ConditionPlanned, v1alpha1.ReasonPlanned)
	}
	ref := PlanRef{Namespace: "prod", Name: "x", UID: "uid-1", Digest: "sha256:other"}
	_, err := env.ExecuteActivity(applyName, ApplyOptions{Plan: ref, Approve: true})
	if !Is(err, Stale) || f.puts.Load() != 0 {
		t.Errorf("another digest: %v with %d approvals, want Stale and none", err, f.puts.Load())
	}
	ref.UID = "uid-2"
	if _, err = env.ExecuteActivity(applyName, ApplyOptions{Plan: ref, Approve: true}); !Is(err, NotFound) {
		t.Errorf("a plan of the same name: %v, want NotFound", err)
	}
}

func TestAwaitApprovalAndApplyEndWithThePlan(t *testing.T) {
	ref := PlanRef{Namespace: "prod", Name: "x", UID: "uid-1"}
	for name, tc := range map[string]struct {
		kind, reason string
		want         map[string]string // by activity; "" means success
	}{
		"applied":    {v1alpha1.ConditionReady, v1alpha1.ReasonApplied, map[string]string{awaitApprovalName: "", applyName: ""}},
		"no changes": {v1alpha1.ConditionReady, v1alpha1.ReasonNoChanges, map[string]string{awaitApprovalName: "", applyName: ""}},
		"discarded":  {v1alpha1.ConditionStalled, v1alpha1.ReasonDiscarded, map[string]string{awaitApprovalName: Discarded, applyName: Discarded}},
		"superseded": {v1alpha1.ConditionStalled, v1alpha1.ReasonSuperseded, map[string]string{awaitApprovalName: Superseded, applyName: Superseded}},
		"stale":      {v1alpha1.ConditionStalled, v1alpha1.ReasonStale, map[string]string{awaitApprovalName: Stale, applyName: Stale}},
		"cancelled":  {v1alpha1.ConditionStalled, v1alpha1.ReasonCancelled, map[string]string{awaitApprovalName: Cancelled, applyName: Cancelled}},
		"failed":     {v1alpha1.ConditionStalled, v1alpha1.ReasonApplyFailed, map[string]string{awaitApprovalName: ApplyFailed, applyName: ApplyFailed}},
		"denied":     {v1alpha1.ConditionStalled, v1alpha1.ReasonPolicyDenied, map[string]string{awaitApprovalName: PolicyDenied}},
	} {
		t.Run(name, func(t *testing.T) {
			f, env := newFakeAPI(t)
			f.get = func() (int, any) { return http.StatusOK, stored(&v1alpha1.Plan{}, tc.kind, tc.reason) }
			for activityName, want := range tc.want {
				var in any = ApplyOptions{Plan: ref}
				if activityName == awaitApprovalName {
					in = AwaitApprovalOptions{Plan: ref}
				}
				if _, err := env.ExecuteActivity(activityName, in); want == "" && err != nil || want != "" && !Is(err, want) {
					t.Errorf("%s: %v, want %q", activityName, err, want)
				}
			}
		})
	}
}

// TestFailuresSayOnceWhatHappened has the conditions that the server writes. Their messages say already what happened.
func TestFailuresSayOnceWhatHappened(t *testing.T) {
	for reason, message := range map[string]string{
		v1alpha1.ReasonDiscarded: "Discarded by alice.", v1alpha1.ReasonSuperseded: "Superseded by plan later.", v1alpha1.ReasonCancelled: "Cancelled by alice.", "": "",
	} {
		p := &v1alpha1.Plan{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "x"}}
		word := strings.ToLower(reason)
		if reason == "" { // a plan of another version of the server
			reason, word = v1alpha1.ReasonDiscarded, "discarded"
		}
		p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason, Message: message}}
		err := failedFor(p)
		if got := strings.ToLower(err.Error()); strings.Count(got, word) != 1+strings.Count(got, "type: "+word) || !strings.Contains(got, strings.ToLower(strings.TrimSuffix(message, "."))) || !Is(err, reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// One attempt of a step sees the end of its wait in the watch of its plan. Temporal's retries would hide a broken watch.
func TestWaitsWatchThePlan(t *testing.T) {
	ref := PlanRef{Namespace: "prod", Name: "x", UID: "uid-1"}
	for activityName, tc := range map[string]struct {
		in           any
		kind, reason string
	}{
		planName:          {PlanOptions{}, v1alpha1.ConditionPlanned, v1alpha1.ReasonPlanned},
		awaitApprovalName: {AwaitApprovalOptions{Plan: ref}, v1alpha1.ConditionReady, v1alpha1.ReasonApplied},
		applyName:         {ApplyOptions{Plan: ref}, v1alpha1.ConditionReady, v1alpha1.ReasonApplied},
	} {
		t.Run(activityName, func(t *testing.T) {
			f, env := newFakeAPI(t)
			f.post = func() (int, any) {
				return http.StatusCreated, stored(ofTestStep(t, v1alpha1.PlanSpec{}), "", "")
			}
			reads := 0
			f.get = func() (int, any) {
				if reads++; reads > 1 { // ends a step that reads the plan again instead of following its watch
					return status(apierrors.NewNotFound(v1alpha1.Resource("plans"), "x"))
				}
				return http.StatusOK, stored(ofTestStep(t, v1alpha1.PlanSpec{}), "", "")
			}
			f.watch = func(query url.Values) (int, any) {
				if name := query.Get("fieldSelector"); !strings.HasPrefix(name, "metadata.name=") || query.Get("resourceVersion") != "7" || query.Get("timeoutSeconds") != "300" {
					t.Errorf("parameters of the watch: %v, want one plan from its resource version on, for five minutes", query)
				}
				return http.StatusOK, map[string]any{"type": "MODIFIED", "object": stored(ofTestStep(t, v1alpha1.PlanSpec{}), tc.kind, tc.reason)}
			}
			if _, err := env.ExecuteActivity(activityName, tc.in); err != nil || f.watches.Load() != 1 {
				t.Errorf("the first attempt: %v with %d watches, want success with one", err, f.watches.Load())
			}
		})
	}
}

func TestDiscard(t *testing.T) {
	ref := PlanRef{Namespace: "prod", Name: "x", UID: "uid-1"}
	approved := func(d v1alpha1.Decision) *v1alpha1.Plan {
		p := stored(&v1alpha1.Plan{}, v1alpha1.ConditionPlanned, v1alpha1.ReasonPlanned)
		p.Status.Approval = &v1alpha1.PlanApproval{Decision: d}
		return p
	}
	for name, tc := range map[string]struct {
		get  func() (int, any)
		want string
		puts int32
	}{
		"it waits":          {func() (int, any) { return 200, stored(&v1alpha1.Plan{}, v1alpha1.ConditionPlanned, "Planned") }, "", 1},
		"it was discarded":  {func() (int, any) { return 200, approved(v1alpha1.DecisionDiscarded) }, "", 0},
		"it was approved":   {func() (int, any) { return 200, approved(v1alpha1.DecisionApproved) }, Approved, 0},
		"it has ended":      {func() (int, any) { return 200, stored(&v1alpha1.Plan{}, v1alpha1.ConditionReady, "Applied") }, "", 0},
		"it does not exist": {func() (int, any) { return status(apierrors.NewNotFound(v1alpha1.Resource("plans"), "x")) }, "", 0},
		"the user may not see": {func() (int, any) {
			return status(apierrors.NewForbidden(v1alpha1.Resource("plans"), "x", errors.New("no")))
		}, Forbidden, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, env := newFakeAPI(t)
			f.get, f.put = tc.get, tc.get
			_, err := env.ExecuteActivity(discardName, DiscardOptions{Plan: ref})
			if tc.want == "" && err != nil || tc.want != "" && !Is(err, tc.want) || f.puts.Load() != tc.puts {
				t.Errorf("discard: %v with %d decisions, want %q with %d", err, f.puts.Load(), tc.want, tc.puts)
			}
		})
	}
}

// A server that does not answer is no failure of the step.
func TestTemporaryErrorsHaveNoType(t *testing.T) {
	gr := v1alpha1.Resource("plans")
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"forbidden":         {apierrors.NewForbidden(gr, "x", errors.New("no")), Forbidden},
		"invalid":           {apierrors.NewBadRequest("no"), Invalid},
		"unknown kind":      {apierrors.NewNotFound(gr, "x"), NotFound},
		"another manager":   {apierrors.NewConflict(gr, "x", errors.New("no")), Conflict},
		"starting":          {apierrors.NewServiceUnavailable("no"), ""},
		"too many":          {apierrors.NewTooManyRequests("no", 1), ""},
		"expired":           {apierrors.NewUnauthorized("no"), ""},
		"server's mistake":  {apierrors.NewInternalError(errors.New("no")), ""},
		"connection broken": {errors.New("EOF"), ""},
	} {
		err := explain("do", tc.err)
		if failure, typed := errors.AsType[*temporal.ApplicationError](err); typed != (tc.want != "") || typed && failure.Type() != tc.want {
			t.Errorf("%s: %v, want the type %q", name, err, tc.want)
		}
	}
}

func TestReadiness(t *testing.T) {
	object := func(observed int64, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "ResourceSet", "metadata": map[string]any{"name": "x", "generation": int64(2)},
			"status": map[string]any{"observedGeneration": observed, "conditions": []any{map[string]any{"type": kind, "status": "True", "message": "because"}}},
		}}
	}
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		ready  bool
		fails  bool
	}{
		"ready":                      {object(2, "Ready"), true, false},
		"ready before the last edit": {object(1, "Ready"), false, false},
		"stalled before it, too":     {object(1, "Stalled"), false, false},
		"stalled":                    {object(2, "Stalled"), false, true},
		"in progress":                {object(2, "Reconciling"), false, false},
	} {
		if ready, err := readiness(tc.object); ready != tc.ready || (err != nil) != tc.fails {
			t.Errorf("%s: ready %t, %v", name, ready, err)
		}
	}
}

// A Secret must not reach the history, so the workflow refuses it before an activity has it as input.
func TestRecordRefusesSecrets(t *testing.T) {
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	secret := unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "x"}}}
	flow := func(ctx workflow.Context) error {
		_, err := Record(ctx, RecordOptions{Objects: []unstructured.Unstructured{secret}})
		return err
	}
	env.RegisterWorkflow(flow)
	env.ExecuteWorkflow(flow)
	if err := env.GetWorkflowError(); !Is(err, Invalid) {
		t.Errorf("record a Secret: %v, want Invalid", err)
	}
}

func TestConnectOptions(t *testing.T) {
	options, err := ConnectOptions(&rest.Config{Host: "https://h.example.com", BearerToken: "t"}, "prod")
	if err != nil || options.HostPort != "h.example.com:443" || options.Namespace != "hykube.prod" || options.Credentials == nil || options.ConnectionOptions.TLS == nil {
		t.Errorf("options: %+v, %v", options, err)
	}
	for _, host := range []string{"http://h.example.com", "h.example.com:6443", ""} {
		if _, err := ConnectOptions(&rest.Config{Host: host}, "prod"); err == nil {
			t.Errorf("host %q: no error, want one: credentials need TLS", host)
		}
	}
}

// slowHeartbeats is an interceptor whose heartbeats take some time. It calls began when one begins, and counts those that were
// interrupted, and those that ended.
type slowHeartbeats struct {
	interceptor.WorkerInterceptorBase
	began              func()
	takes              time.Duration
	interrupted, ended atomic.Int32
}

func (s *slowHeartbeats) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &slowInbound{interceptor.ActivityInboundInterceptorBase{Next: next}, s}
}

type slowInbound struct {
	interceptor.ActivityInboundInterceptorBase
	of *slowHeartbeats
}

func (i *slowInbound) Init(next interceptor.ActivityOutboundInterceptor) error {
	return i.Next.Init(&slowOutbound{interceptor.ActivityOutboundInterceptorBase{Next: next}, i.of})
}

type slowOutbound struct {
	interceptor.ActivityOutboundInterceptorBase
	of *slowHeartbeats
}

func (o *slowOutbound) RecordHeartbeat(ctx context.Context, _ ...any) {
	o.of.began()
	select {
	case <-ctx.Done():
		o.of.interrupted.Add(1)
	case <-time.After(o.of.takes):
		o.of.ended.Add(1)
	}
}

// TestAStepWaitsForItsHeartbeat ends a step during its first heartbeat. The SDK would log a warning about a heartbeat that
// is interrupted or late. A step does not wait for long if Temporal does not answer.
func TestAStepWaitsForItsHeartbeat(t *testing.T) {
	for name, tc := range map[string]struct {
		takes              time.Duration
		interrupted, ended int32
	}{"a slow heartbeat": {200 * time.Millisecond, 0, 1}, "no answer": {time.Hour, 1, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, env := newFakeAPI(t)
			began, begin := context.WithCancel(t.Context())
			f.get = func() (int, any) {
				<-began.Done() // the step ends during its first heartbeat, and not before
				return status(apierrors.NewNotFound(v1alpha1.Resource("plans"), "x"))
			}
			slow := &slowHeartbeats{began: begin, takes: tc.takes}
			env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{slow}})
			if _, err := env.ExecuteActivity(discardName, DiscardOptions{Plan: PlanRef{Namespace: "prod", Name: "x"}}); err != nil {
				t.Fatal(err)
			}
			if interrupted, ended := slow.interrupted.Load(), slow.ended.Load(); interrupted != tc.interrupted || ended != tc.ended {
				t.Errorf("%d heartbeats were interrupted, and %d ended; want %d and %d", interrupted, ended, tc.interrupted, tc.ended)
			}
		})
	}
}
