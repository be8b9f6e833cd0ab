package registry

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
)

// stackOf returns a valid stack whose spec is the result of the changes.
func stackOf(changes ...func(*v1alpha1.StackSpec)) *v1alpha1.Stack {
	s := &v1alpha1.Stack{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "prod"}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"stack": "web"}}
	for _, change := range changes {
		change(&s.Spec)
	}
	setStackDefaults(s)
	return s
}

// flows gives a stack a workflow.
func flows(s *v1alpha1.StackSpec) {
	s.Workflow = &v1alpha1.StackWorkflow{Type: "Release", TaskQueue: "release"}
}

func automatic(s *v1alpha1.StackSpec) { s.Approval = v1alpha1.ApprovalAutomatic }

func TestValidateStack(t *testing.T) {
	pause := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	raw := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	for why, tc := range map[string]struct {
		change func(*v1alpha1.StackSpec)
		want   string // empty for a valid stack
	}{
		"the defaults":        {change: func(*v1alpha1.StackSpec) {}},
		"no selector":         {change: func(s *v1alpha1.StackSpec) { s.Selector = nil }},
		"an empty selector":   {func(s *v1alpha1.StackSpec) { s.Selector = &metav1.LabelSelector{} }, "spec.selector"},
		"an unknown trigger":  {func(s *v1alpha1.StackSpec) { s.Plan.Triggers = []v1alpha1.PlanTrigger{"Sometimes"} }, "spec.plan.triggers[0]"},
		"an unknown refresh":  {func(s *v1alpha1.StackSpec) { s.Plan.Refresh = "Some" }, "spec.plan.refresh"},
		"an unknown approval": {func(s *v1alpha1.StackSpec) { s.Approval = "Maybe" }, "spec.approval"},
		"no time to settle":   {change: func(s *v1alpha1.StackSpec) { s.Plan.Settle = pause(0) }},
		"too long to settle":  {func(s *v1alpha1.StackSpec) { s.Plan.Settle = pause(2 * time.Hour) }, "spec.plan.settle"},
		"a negative time":     {func(s *v1alpha1.StackSpec) { s.Plan.Settle = pause(-1) }, "spec.plan.settle"},
		"an unknown policy":   {func(s *v1alpha1.StackSpec) { s.OnError = "Stop" }, "spec.onError"},
		"Retry without times": {func(s *v1alpha1.StackSpec) { s.OnError = v1alpha1.OnErrorRetry }, "spec.retry"},
		"times without Retry": {func(s *v1alpha1.StackSpec) { s.Retry = &v1alpha1.StackRetry{Times: 1} }, "spec.retry"},
		"a good Retry": {change: func(s *v1alpha1.StackSpec) {
			s.OnError, s.Retry = v1alpha1.OnErrorRetry, &v1alpha1.StackRetry{Times: 1}
		}},
		"too many times": {func(s *v1alpha1.StackSpec) {
			s.OnError, s.Retry = v1alpha1.OnErrorRetry, &v1alpha1.StackRetry{Times: 101}
		}, "spec.retry.times"},
		"no backoff": {func(s *v1alpha1.StackSpec) {
			s.OnError, s.Retry = v1alpha1.OnErrorRetry, &v1alpha1.StackRetry{Times: 1, Backoff: pause(0)}
		}, "spec.retry.backoff"},
		"no history": {func(s *v1alpha1.StackSpec) { s.HistoryLimit = new(int32(0)) }, "spec.historyLimit"},
		"a workflow": {change: flows},
		"a workflow with Continue, and Report": {change: func(s *v1alpha1.StackSpec) {
			flows(s)
			s.OnError, s.Drift = v1alpha1.OnErrorContinue, &v1alpha1.StackDrift{}
		}},
		"a workflow without type":  {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.Type = "" }, "spec.workflow.type"},
		"a workflow without queue": {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.TaskQueue = "" }, "spec.workflow.taskQueue"},
		"a queue of Temporal":      {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.TaskQueue = "/_sys/q" }, "spec.workflow.taskQueue"},
		"a queue with a newline":   {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.TaskQueue = "a\nb" }, "spec.workflow.taskQueue"},
		"a long type":              {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.Type = strings.Repeat("x", 201) }, "spec.workflow.type"},
		"an input":                 {change: func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.Input = raw(`{"a":[1]}`) }},
		"an input that is a list":  {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.Input = raw(`[1]`) }, "spec.workflow.input"},
		"an input that is null":    {func(s *v1alpha1.StackSpec) { flows(s); s.Workflow.Input = raw(`null`) }, "spec.workflow.input"},
		"a large input": {func(s *v1alpha1.StackSpec) {
			flows(s)
			s.Workflow.Input = raw(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`)
		}, "spec.workflow.input"},
		"an automatic workflow": {func(s *v1alpha1.StackSpec) { flows(s); automatic(s) }, "spec.approval"},
		"a workflow with Retry": {func(s *v1alpha1.StackSpec) {
			flows(s)
			s.OnError, s.Retry = v1alpha1.OnErrorRetry, &v1alpha1.StackRetry{Times: 1}
		}, "spec.onError"},
		"a workflow with Retry, and no times": {func(s *v1alpha1.StackSpec) { flows(s); s.OnError = v1alpha1.OnErrorRetry }, "spec.onError"},
		"a workflow with times":               {func(s *v1alpha1.StackSpec) { flows(s); s.Retry = &v1alpha1.StackRetry{} }, "spec.retry"},
		"a workflow with an unknown policy":   {func(s *v1alpha1.StackSpec) { flows(s); s.OnError = "Stop" }, "spec.onError"},
		"a workflow with Correct": {func(s *v1alpha1.StackSpec) {
			flows(s)
			s.Drift = &v1alpha1.StackDrift{Action: v1alpha1.DriftCorrect}
		}, "spec.drift.action"},
		"a workflow that corrects drift": {func(s *v1alpha1.StackSpec) {
			flows(s)
			s.Drift = &v1alpha1.StackDrift{Action: v1alpha1.DriftPlan}
		}, "spec.drift.action"},
		"targets without name": {func(s *v1alpha1.StackSpec) { s.WriteOutputsTo = &v1alpha1.StackOutputTargets{} }, "spec.writeOutputsTo"},
		"a bad Secret name":    {func(s *v1alpha1.StackSpec) { s.WriteOutputsTo = &v1alpha1.StackOutputTargets{Secret: "A/b"} }, "spec.writeOutputsTo.secret"},
	} {
		errs := validateStack(stackOf(tc.change))
		if (len(errs) > 0) != (tc.want != "") || tc.want != "" && errs[0].Field != tc.want {
			t.Errorf("%s: %v, want %q", why, errs, tc.want)
		}
		if len(errs) > 1 { // a further error could contradict the first
			t.Errorf("%s: %v, want one error", why, errs)
		}
	}
}

func TestValidateOutputs(t *testing.T) {
	for text, want := range map[string]string{
		"https://${sim_network.main.id}": "",
		"a constant":                     "",
		"${sim_network.main.":            "spec.outputs[o]",
		"${timestamp()}":                 "spec.outputs[o]",
		"${ephemeral.sim_token.t.value}": "spec.outputs[o]",
	} {
		errs := validateOutputs(stackOf(func(s *v1alpha1.StackSpec) { s.Outputs = map[string]string{"o": text} }), nil, lang.BudgetOf(t.Context()))
		if (len(errs) > 0) != (want != "") || want != "" && errs[0].Field != want {
			t.Errorf("%s: %v, want %q", text, errs, want)
		}
	}
	if errs := validateOutputs(stackOf(func(s *v1alpha1.StackSpec) { s.Outputs = map[string]string{"a/b": "x"} }), nil, lang.BudgetOf(t.Context())); len(errs) == 0 {
		t.Error("a name that no ConfigMap can have as a key is accepted")
	}
}

func TestStacksDoNotWaitForEachOther(t *testing.T) {
	named := func(name string, dependsOn ...string) v1alpha1.Stack {
		s := stackOf(func(s *v1alpha1.StackSpec) {
			s.DependsOn, s.Selector = dependsOn, &metav1.LabelSelector{MatchLabels: map[string]string{"stack": name}}
		})
		s.Name = name
		return *s
	}
	for why, tc := range map[string]struct {
		dependsOn []string
		others    []v1alpha1.Stack
		want      string
	}{
		"none":                           {nil, nil, ""},
		"one that does not exist yet":    {[]string{"db"}, nil, ""},
		"itself":                         {[]string{"web"}, nil, "web -> web"},
		"each other":                     {[]string{"db"}, []v1alpha1.Stack{named("db", "web")}, "web -> db -> web"},
		"through a third":                {[]string{"x", "db"}, []v1alpha1.Stack{named("x"), named("db", "net"), named("net", "web")}, "web -> db -> net -> web"},
		"others that wait for it":        {nil, []v1alpha1.Stack{named("db", "web"), named("net", "db")}, ""},
		"a cycle that it is not part of": {[]string{"a"}, []v1alpha1.Stack{named("a", "b"), named("b", "a")}, ""},
		"the old version of itself":      {nil, []v1alpha1.Stack{named("web", "web")}, ""},
	} {
		self := named("web", tc.dependsOn...)
		errs := validateDependencies(&self, tc.others)
		if (len(errs) > 0) != (tc.want != "") || tc.want != "" && !strings.Contains(errs[0].Detail, tc.want) {
			t.Errorf("%s: %v, want %q", why, errs, tc.want)
		}
	}
}

// stackConfig returns a configuration whose authorizer allows the verbs on resources, such as "create plans", to everyone.
func stackConfig(t *testing.T, allowed ...string) Config {
	t.Helper()
	a := authorizer.AuthorizerFunc(func(_ context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
		if slices.Contains(allowed, at.GetVerb()+" "+at.GetResource()) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	store, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	k, err := kinds.New(kinds.Config{RESTOptions: store.RESTOptions(nil, false), Authorizer: a})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return Config{Authorizer: a, Kinds: k}
}

// TestRightsOfTheAuthorOfAStack writes stacks whose plans and outputs need rights of the author.
// TestAuthorOfAStack changes with what the stack does, and not with the user who suspends it or lets it continue.
func TestAuthorOfAStack(t *testing.T) {
	suspended := func(s *v1alpha1.StackSpec) { s.Suspend = true }
	wider := func(s *v1alpha1.StackSpec) { s.Selector = nil }
	for why, tc := range map[string]struct {
		old, now *v1alpha1.Stack
		want     bool
	}{
		"it is suspended":                {stackOf(automatic), stackOf(automatic, suspended), false},
		"it continues":                   {stackOf(automatic, suspended), stackOf(automatic), false},
		"it continues and becomes wider": {stackOf(automatic, suspended), stackOf(automatic, wider), true},
		"it becomes automatic":           {stackOf(), stackOf(automatic), true},
	} {
		if got := changesAuthor(tc.now, tc.old); got != tc.want {
			t.Errorf("%s: the user becomes the author: %t, want %t", why, got, tc.want)
		}
		tc.old.Generation, tc.now.Status.AuthorGeneration = 7, 3
		noteAuthor(as(t, "eve"), tc.now, tc.old)
		if got := tc.now.Status.AuthorGeneration == 8; got != tc.want {
			t.Errorf("%s: the author wrote the generation %d", why, tc.now.Status.AuthorGeneration)
		}
	}
}

func TestRightsOfTheAuthorOfAStack(t *testing.T) {
	writes := func(s *v1alpha1.StackSpec) {
		s.WriteOutputsTo = &v1alpha1.StackOutputTargets{ConfigMap: "web", Secret: "web"}
	}
	reads := func(s *v1alpha1.StackSpec) { s.Outputs = map[string]string{"o": "${secret.db.password}"} }
	suspended := func(s *v1alpha1.StackSpec) { s.Suspend = true }
	wider := func(s *v1alpha1.StackSpec) { s.Selector = nil }
	checks := func(s *v1alpha1.StackSpec) { s.Drift = &v1alpha1.StackDrift{} }
	for why, tc := range map[string]struct {
		allowed  string
		old, now *v1alpha1.Stack
		want     string
	}{
		"a manual stack":                            {"create plans", nil, stackOf(), ""},
		"without the right to plan":                 {"approve plans", nil, stackOf(), "create plans.hykube.io"},
		"an automatic stack":                        {"create plans,approve plans", nil, stackOf(automatic), ""},
		"without the right to approve":              {"create plans", nil, stackOf(automatic), "approve plans.hykube.io"},
		"drift checks":                              {"create plans,approve plans", nil, stackOf(checks), ""},
		"drift checks without the right to approve": {"create plans", nil, stackOf(checks), "approve plans.hykube.io"},
		"a manual stack becomes automatic":          {"create plans", stackOf(), stackOf(automatic), "approve plans.hykube.io"},
		"an automatic stack becomes wider":          {"create plans", stackOf(automatic), stackOf(automatic, wider), "approve plans.hykube.io"},
		"an automatic stack is stopped":             {"", stackOf(automatic), stackOf(automatic, suspended), ""},
		"an automatic stack continues":              {"create plans", stackOf(automatic, suspended), stackOf(automatic), "approve plans.hykube.io"},
		"it is stopped, and becomes wider":          {"create plans", stackOf(automatic), stackOf(automatic, suspended, wider), "approve plans.hykube.io"},
		"a workflow":                                {"create workflows", nil, stackOf(flows), ""},
		"a workflow without the right to start it":  {"create plans,approve plans", nil, stackOf(flows), "create workflows.hykube.io"},
		"a workflow with drift checks":              {"create workflows,create plans", nil, stackOf(flows, checks), "approve plans.hykube.io"},
		"a stack gets a workflow":                   {"create plans", stackOf(), stackOf(flows), "create workflows.hykube.io"},
		"the input of a workflow changes": {"create plans", stackOf(flows), stackOf(flows, func(s *v1alpha1.StackSpec) {
			s.Workflow.Input = &runtime.RawExtension{Raw: []byte(`{}`)}
		}), "create workflows.hykube.io"},
		"no change":                                   {"", stackOf(automatic), stackOf(automatic), ""},
		"outputs for objects":                         {"create plans,create configmaps,update configmaps,create secrets,update secrets", nil, stackOf(writes), ""},
		"outputs for a Secret of another":             {"create plans,create configmaps,update configmaps,create secrets", nil, stackOf(writes), "update secrets"},
		"an output of a Secret":                       {"create plans,get secrets", nil, stackOf(reads), ""},
		"an output of a Secret that it may not read":  {"create plans", nil, stackOf(reads), "secret.db"},
		"the author of a change needs all the rights": {"create plans", stackOf(reads), stackOf(reads, wider), "secret.db"},
	} {
		c := stackConfig(t, strings.Split(tc.allowed, ",")...)
		err := c.mayWriteStack(as(t, "eve"), tc.now, tc.old)
		if tc.want == "" && err != nil || tc.want != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", why, err, tc.want)
		}
	}
}

// TestPlansOfStacks creates plans that claim to be those of a stack.
func TestPlansOfStacks(t *testing.T) {
	claims := func() *v1alpha1.Plan {
		p := &v1alpha1.Plan{Spec: v1alpha1.PlanSpec{Approval: v1alpha1.ApprovalAutomatic}}
		p.Status.RequestedBy, p.Status.Stack = &v1alpha1.Identity{Username: "ann"}, &v1alpha1.PlanStack{Stack: "web"}
		return p
	}
	p := claims()
	beginPlan(as(t, "eve"), p)
	if p.Status.RequestedBy.Username != "eve" || p.Status.Stack != nil || p.ApprovesItself() {
		t.Errorf("a user claims to be a stack: %+v", p.Status)
	}
	p = claims()
	beginPlan(as(t, user.APIServerUser), p)
	if p.Status.RequestedBy.Username != "ann" || p.Status.Stack == nil || !p.ApprovesItself() {
		t.Errorf("the server makes a plan of a stack: %+v", p.Status)
	}
	if c := stackConfig(t, "create plans"); !c.requesterMayNotApprove(as(t, user.APIServerUser), p) {
		t.Error("the server's own rights count for the author of a stack")
	}
	if c := stackConfig(t, "approve plans"); c.requesterMayNotApprove(as(t, user.APIServerUser), p) {
		t.Error("the rights of the author do not count")
	}
}
