package activities

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/activities/applying"
	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/activities/planning"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/graph"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/ledger/ledgertest"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// crashScenario is a world with a cloud. Its server makes and applies plans as the workflows do. The injector can kill
// the server at each lasting effect: a write to the store or to an object, or a call that changes the cloud.
type crashScenario struct {
	*activitiestest.World
	planner  *planning.Planner
	applier  *applying.Applier
	injector *crashInjector
	cloud    *cloud
	plans    *storedPlans
	// lane is true if one activity runs all steps, as for a large plan, from the ledger alone.
	lane bool
	// partial is true if plans are approved without blocked and stale changes.
	partial bool
	spec    v1alpha1.PlanSpec
	// statusWrites counts the writes of objects' statuses.
	statusWrites atomic.Int64
	// ending is called once when a step of an instance has read the status that it is about to write.
	ending func()
	// stepping is the number of plans whose steps run.
	stepping int
	// ledgerKV is the store of the ledger.
	ledgerKV ledger.KV
	// compares is true if each survey is made twice: at once and in pages of one object.
	compares bool
	// provides returns the provider for a configuration; nil means the cloud.
	provides func(provider.Configuration) tfprotov6.ProviderServer
}

// errDead is the error of every call after the server was killed.
var errDead = errors.New("the server was killed")

// crashInjector kills the server, once.
type crashInjector struct {
	mu sync.Mutex
	// at counts from 1: 2n-1 is before the n-th lasting effect, and 2n after it. 0 means never.
	at, seen int
	dead     bool
}

func (r *crashInjector) does(effect func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return errDead
	}
	if r.seen++; r.seen == r.at {
		r.dead = true
		return errDead
	}
	err := effect()
	if r.seen++; r.seen == r.at {
		r.dead = true
		return errDead
	}
	return err
}

func (r *crashInjector) alive() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead {
		return errDead
	}
	return nil
}

func newCrashScenario(t *testing.T) *crashScenario {
	w := activitiestest.NewWorld(t)
	sc := &crashScenario{World: w, injector: &crashInjector{}, plans: &storedPlans{byName: map[string]*v1alpha1.Plan{}}}
	sc.cloud = &cloud{t: t, injector: sc.injector, things: map[string]map[string]string{}, faults: map[string][]string{}, made: map[string]int{}}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: cloudSchema()})
	sc.ledgerKV = crashStore{ledgertest.New(), sc.injector, sc.World}
	w.Sources = &scope.Sources{
		Objects: crashObjects{activitiestest.FakeObjects{World: w}, sc}, Configs: activitiestest.FakeConfigs{World: w}, Access: activitiestest.FakeAccess{World: w},
		Policies: activitiestest.FakePolicies{World: w}, Catalog: c,
		Processes: ledger.Alone(),
		Ledger:    ledger.New(sc.ledgerKV), Creates: scope.NewCreates(),
	}
	configure(w, "team")
	sc.restart()
	return sc
}

// configure stores a ProviderConfig without arguments, which a ProviderConfig named "default" takes precedence over.
func configure(w *activitiestest.World, namespace string) {
	cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
	cfg.Name, cfg.Namespace = "test", namespace
	w.ProviderConfigs[namespace+"/test"] = cfg
}

// restart starts a new server with the data of the old one.
func (sc *crashScenario) restart() {
	start := func(_ context.Context, _ catalog.Entry, conf provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
		if sc.provides != nil {
			return sc.provides(conf), func() {}, nil
		}
		return sc.cloud, func() {}, nil
	}
	s := *sc.Sources
	s.Processes = ledger.Alone() // a new process
	s.Sessions = session.NewPool(s.Catalog, ledger.Alone(), slog.New(slog.DiscardHandler))
	s.Sessions.Source, s.Sessions.Unconfigured = start, start
	sc.Sources = &s
	sc.Follow()
	sc.use(crashPlans{sc}, changes.CancelReader{Plans: crashPlans{sc}, Logger: slog.New(slog.DiscardHandler), Interval: time.Hour})
	sc.injector.mu.Lock()
	defer sc.injector.mu.Unlock()
	sc.injector.dead = false
}

// use makes a planner and an applier, which learn of cancels through a reader.
func (sc *crashScenario) use(plans store.Plans, cancels changes.CancelReader) {
	logger := slog.New(slog.DiscardHandler)
	sc.planner = planning.New(sc.Sources, plans, cancels, logger)
	sc.applier = applying.NewApplier(sc.Sources, plans, cancels, logger)
	sc.applier.ProgressInterval = time.Hour // it counts in the background
}

// put writes an object as kubectl apply does. It removes fields that spec and lifecycle omit.
func (sc *crashScenario) put(name string, spec, lifecycle map[string]any) {
	kind, objName, _ := strings.Cut(name, "/")
	obj := sc.Stored["team:"+name]
	if obj == nil {
		obj = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.hykube.io/v1", "kind": kind}}
		obj.SetName(objName)
		obj.SetNamespace("team")
		obj.SetUID(types.UID(fmt.Sprintf("%s-%d", objName, sc.plans.len())))
		sc.Stored["team:"+name] = obj
	}
	obj.Object["spec"] = spec
	delete(obj.Object, "lifecycle")
	if lifecycle != nil {
		obj.Object["lifecycle"] = lifecycle
	}
	obj.SetGeneration(obj.GetGeneration() + 1)
}

func (sc *crashScenario) delete(name string) {
	obj := sc.Stored["team:"+name]
	if len(obj.GetFinalizers()) == 0 {
		delete(sc.Stored, "team:"+name)
		return
	}
	obj.SetDeletionTimestamp(new(metav1.Now()))
	obj.SetGeneration(obj.GetGeneration() + 1)
}

// taint marks the instance of an object for replacement.
func (sc *crashScenario) taint(name string) {
	rec := sc.recordOf(name)
	rec.Tainted = true
	if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
		sc.T.Fatal(err)
	}
}

func (sc *crashScenario) recordOf(name string) *ledger.Instance {
	r, err := resource.Of(sc.Stored["team:"+name], sc.Catalog)
	if err != nil {
		sc.T.Fatal(err)
	}
	return sc.Instance(r)
}

// planRun is the progress of one plan. It survives a restart of the server.
type planRun struct {
	workflows.Plan
	phase    int
	surveyed workflows.Surveyed
	// approver approves the plan; "ann" if it is empty.
	approver string
	begun    workflows.Begun
	ended    map[int]bool
	tries    map[int]int
}

const (
	surveying = iota
	proposing
	publishing
	approving
	beginning
	stepping
	finishing
	over
)

// apply makes a plan, approves it and applies it, whatever happens to the server. It returns the plan at its end.
func (sc *crashScenario) apply() *v1alpha1.Plan {
	return sc.resume(sc.newRun())
}

func (sc *crashScenario) newRun() *planRun {
	po := &v1alpha1.Plan{Spec: sc.spec}
	po.Name, po.Namespace, po.Generation = fmt.Sprintf("p%d", sc.plans.len()), "team", 1
	po.UID = types.UID(po.Name)
	po.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
	if po.Spec.Refresh == "" {
		po.Spec.Refresh = v1alpha1.RefreshChanged
	}
	sc.plans.put(po)
	return &planRun{Plan: workflows.Plan{Namespace: "team", Name: po.Name, UID: string(po.UID)}, ended: map[int]bool{}, tries: map[int]int{}}
}

// cancel cancels a plan.
func (sc *crashScenario) cancel(run *planRun) {
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.Status.Cancel = &v1alpha1.PlanCancel{At: new(metav1.Now())} })
}

// resume continues a plan to its end.
func (sc *crashScenario) resume(run *planRun) *v1alpha1.Plan { return sc.until(run, over) }

func (sc *crashScenario) until(run *planRun, phase int) *v1alpha1.Plan {
	sc.T.Helper()
	for tries := 0; run.phase < phase; tries++ {
		err := sc.advance(run)
		if sc.injector.alive() != nil {
			sc.restart()
			continue
		}
		if err != nil && tries > 20 {
			sc.T.Fatalf("plan %s, phase %d: %v", run.Name, run.phase, err)
		}
	}
	return sc.plans.get(run.Name)
}

func (sc *crashScenario) advance(run *planRun) (err error) {
	ctx := sc.T.Context()
	po := sc.plans.get(run.Name)
	next := run.phase + 1
	switch {
	case run.phase == stepping:
		sc.stepping++
		defer func() { sc.stepping-- }()
	case run.phase < approving && sc.stepping == 0: // otherwise the steps of another plan write, too
		defer sc.onlyItsPlan(run)()
	}
	switch run.phase {
	case surveying:
		if run.surveyed, err = sc.survey(run.Plan); run.surveyed.Invalid {
			next = over
		}
	case proposing:
		_, err = sc.planner.Propose(ctx, workflows.Propose{Plan: run.Plan, Whole: run.surveyed.Whole})
		if ae, ok := errors.AsType[*temporal.ApplicationError](err); ok && ae.Type() == workflows.ErrorObjectChanged {
			next, err = surveying, nil
		}
	case publishing:
		_, err = sc.planner.Publish(ctx, workflows.Publish{Plan: run.Plan, Resources: run.surveyed.Resources, Recorded: run.surveyed.Recorded})
	case approving:
		if po.Status.FinishedAt != nil {
			next = over
			break
		}
		sc.compareBriefs(po)
		sc.plans.change(run.Name, func(po *v1alpha1.Plan) {
			po.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: po.Status.Digest, Partial: sc.partial,
				By: &v1alpha1.Identity{Username: cmp.Or(run.approver, "ann")}}
			meta.SetStatusCondition(&po.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionTrue, Reason: "Approved"})
		})
	case beginning:
		sc.compareBriefs(po)
		run.begun, err = sc.applier.Begin(ctx, run.Plan)
		if run.begun.Refused != "" && err == nil {
			next = finishing
		}
	case stepping:
		if sc.lane {
			_, err = sc.applier.Lane(ctx, run.Plan, unreported)
			break
		}
		err = sc.steps(ctx, run)
	case finishing:
		_, err = sc.applier.Finish(ctx, workflows.Finish{Plan: run.Plan})
	}
	if err == nil && sc.injector.alive() == nil {
		run.phase = next
	}
	return err
}

// onlyItsPlan returns a function that fails the test if a phase of planning wrote a status or a record. A plan that ended
// without changes needs no approval, so it may record that.
func (sc *crashScenario) onlyItsPlan(run *planRun) func() {
	phase, writes, records := run.phase, sc.statusWrites.Load(), sc.revisions()
	return func() {
		sc.T.Helper()
		ended := phase == publishing && sc.plans.get(run.Name).Status.FinishedAt != nil && !sc.plans.get(run.Name).PlanFailed()
		if ended || sc.injector.alive() != nil {
			return
		}
		now := sc.revisions()
		maps.DeleteFunc(now, func(uid types.UID, revision int64) bool { return records[uid] == revision })
		if n := sc.statusWrites.Load() - writes; n > 0 || len(now) > 0 {
			sc.T.Errorf("phase %d of plan %s wrote %d statuses and the records of %v", phase, run.Name, n, slices.Collect(maps.Keys(now)))
		}
	}
}

// steps runs the steps that have not ended, in order, each with the retries of the workflow.
func (sc *crashScenario) steps(ctx context.Context, run *planRun) error {
	steps := run.begun.Steps
	order, cycle := graph.Order(len(steps), func(i int) []int { return steps[i].DependsOn })
	if cycle != nil {
		sc.T.Fatalf("steps run in a circle: %v", cycle)
	}
	for _, i := range order {
		if _, ended := run.ended[i]; ended {
			continue
		}
		ok := true
		for _, d := range steps[i].DependsOn {
			ok = ok && run.ended[d]
		}
		for ok {
			run.tries[i]++
			in := workflows.StepInput{Plan: run.Plan, Change: steps[i].Change, Destroy: steps[i].Destroy}
			result, err := sc.applier.Step(ctx, in, run.tries[i])
			if sc.injector.alive() != nil {
				return errDead // the server is dead, so the answer is lost
			}
			if err == nil {
				ok = result.OK
				break
			}
			if run.tries[i] > 10 {
				return err
			}
		}
		run.ended[i] = ok
	}
	return nil
}
