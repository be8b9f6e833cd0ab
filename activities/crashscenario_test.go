package activities

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
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
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"
	"github.com/hykube/hykube/workflows"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// crashScenario is a world with a cloud in it, in which plans are made and applied as the workflows do it, by a server that can be
// killed at each of the things that last: a write to the store or to an object, a call that changes the cloud.
type crashScenario struct {
	*activitiestest.World
	planner  *planning.Planner
	applier  *applying.Applier
	injector *crashInjector
	cloud    *cloud
	plans    map[string]*v1alpha1.Plan
	// lane is true when the steps are made as those of a large plan: all in one activity, which knows nothing but the ledger.
	lane bool
	// partial is true when plans are approved without what is blocked or stale.
	partial bool
	spec    v1alpha1.PlanSpec
	// provides is the provider under a configuration; nil means the cloud.
	provides func(provider.Configuration) tfprotov6.ProviderServer
}

// errDead is what everything answers once the server was killed.
var errDead = errors.New("the server was killed")

// crashInjector kills the server, once.
type crashInjector struct {
	mu sync.Mutex
	// at counts from 1; 2n-1 is before the nth thing that lasts, 2n after it. 0 means never.
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
	tn := &crashScenario{World: w, injector: &crashInjector{}, plans: map[string]*v1alpha1.Plan{}}
	tn.cloud = &cloud{t: t, injector: tn.injector, things: map[string]map[string]string{}, faults: map[string][]string{}, made: map[string]int{}}
	c := catalog.New(nil)
	c.Put(catalog.Entry{Name: "test", Schema: cloudSchema()})
	w.Sources = &scope.Sources{
		Objects: crashObjects{activitiestest.FakeObjects{World: w}, tn}, Configs: activitiestest.FakeConfigs{World: w}, Access: activitiestest.FakeAccess{World: w}, Catalog: c,
		Ledger: ledger.New(crashStore{ledgertest.New(), tn.injector}),
	}
	tn.restart()
	return tn
}

// restart is a new server over what the old one left.
func (tn *crashScenario) restart() {
	lend := func(_ context.Context, _ catalog.Entry, conf provider.Configuration) (tfprotov6.ProviderServer, func(), error) {
		if tn.provides != nil {
			return tn.provides(conf), func() {}, nil
		}
		return tn.cloud, func() {}, nil
	}
	s := *tn.Sources
	s.Sessions = session.NewPool(s.Catalog)
	s.Sessions.Source, s.Sessions.Unconfigured = lend, lend
	tn.Sources = &s
	tn.use(crashPlans{tn}, changes.CancelReader{Plans: crashPlans{tn}, Logger: slog.New(slog.DiscardHandler), Interval: time.Hour})
	tn.injector.mu.Lock()
	defer tn.injector.mu.Unlock()
	tn.injector.dead = false
}

// use makes a planner and an applier, which learn of cancels through a reader.
func (tn *crashScenario) use(plans store.Plans, cancels changes.CancelReader) {
	logger := slog.New(slog.DiscardHandler)
	tn.planner = planning.New(tn.Sources, plans, cancels, logger)
	tn.applier = applying.NewApplier(tn.Sources, plans, cancels, logger)
	tn.applier.ProgressInterval = time.Hour // it counts in the background
}

// put writes an object as kubectl apply does: what is left out is kept away.
func (tn *crashScenario) put(name string, spec, lifecycle map[string]any) {
	kind, objName, _ := strings.Cut(name, "/")
	obj := tn.Stored["team:"+name]
	if obj == nil {
		obj = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "test.hykube.io/v1", "kind": kind}}
		obj.SetName(objName)
		obj.SetNamespace("team")
		obj.SetUID(types.UID(fmt.Sprintf("%s-%d", objName, len(tn.plans))))
		tn.Stored["team:"+name] = obj
	}
	obj.Object["spec"] = spec
	delete(obj.Object, "lifecycle")
	if lifecycle != nil {
		obj.Object["lifecycle"] = lifecycle
	}
	obj.SetGeneration(obj.GetGeneration() + 1)
}

func (tn *crashScenario) delete(name string) {
	obj := tn.Stored["team:"+name]
	if len(obj.GetFinalizers()) == 0 {
		delete(tn.Stored, "team:"+name)
		return
	}
	obj.SetDeletionTimestamp(new(metav1.Now()))
	obj.SetGeneration(obj.GetGeneration() + 1)
}

// taint marks what stands behind an object.
func (tn *crashScenario) taint(name string) {
	rec := tn.recordOf(name)
	rec.Tainted = true
	if err := tn.Ledger.Save(tn.T.Context(), rec); err != nil {
		tn.T.Fatal(err)
	}
}

func (tn *crashScenario) recordOf(name string) *ledger.Instance {
	r, err := resource.Of(tn.Stored["team:"+name], tn.Catalog)
	if err != nil {
		tn.T.Fatal(err)
	}
	return tn.Instance(r)
}

// run is one plan on its way. It lasts longer than a server.
type planRun struct {
	workflows.Plan
	phase    int
	surveyed workflows.Surveyed
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

// apply makes a plan, approves it and applies it, whatever happens to the server. It returns the plan as it is then.
func (tn *crashScenario) apply() *v1alpha1.Plan {
	return tn.resume(tn.newRun())
}

func (tn *crashScenario) newRun() *planRun {
	po := &v1alpha1.Plan{Spec: tn.spec}
	po.Name, po.Namespace, po.Generation = fmt.Sprintf("p%d", len(tn.plans)), "team", 1
	po.UID = types.UID(po.Name)
	po.Status.RequestedBy = &v1alpha1.Identity{Username: "ann"}
	if po.Spec.Refresh == "" {
		po.Spec.Refresh = v1alpha1.RefreshChanged
	}
	tn.plans[po.Name] = po
	return &planRun{Plan: workflows.Plan{Namespace: "team", Name: po.Name, UID: string(po.UID)}, ended: map[int]bool{}, tries: map[int]int{}}
}

// resume goes on with a plan to its end.
func (tn *crashScenario) resume(run *planRun) *v1alpha1.Plan { return tn.until(run, over) }

func (tn *crashScenario) until(run *planRun, phase int) *v1alpha1.Plan {
	tn.T.Helper()
	for tries := 0; run.phase < phase; tries++ {
		err := tn.advance(run)
		if tn.injector.alive() != nil {
			tn.restart()
			continue
		}
		if err != nil && tries > 20 {
			tn.T.Fatalf("plan %s, phase %d: %v", run.Name, run.phase, err)
		}
	}
	return tn.plans[run.Name]
}

func (tn *crashScenario) advance(run *planRun) (err error) {
	ctx := tn.T.Context()
	po := tn.plans[run.Name]
	next := run.phase + 1
	switch run.phase {
	case surveying:
		if run.surveyed, err = tn.planner.Survey(ctx, run.Plan); run.surveyed.Invalid {
			next = over
		}
	case proposing:
		_, err = tn.planner.Propose(ctx, run.Plan)
		if ae, ok := errors.AsType[*temporal.ApplicationError](err); ok && ae.Type() == workflows.ErrorMoved {
			next, err = surveying, nil
		}
	case publishing:
		_, err = tn.planner.Publish(ctx, workflows.Publish{Plan: run.Plan, Resources: run.surveyed.Resources, Recorded: run.surveyed.Recorded})
	case approving:
		if po.Status.FinishedAt != nil {
			next = over
			break
		}
		po.Status.Approval = &v1alpha1.PlanApproval{Decision: v1alpha1.DecisionApproved, Digest: po.Status.Digest, Partial: tn.partial}
		meta.SetStatusCondition(&po.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionApproved, Status: metav1.ConditionTrue, Reason: "Approved"})
	case beginning:
		run.begun, err = tn.applier.Begin(ctx, run.Plan)
		if run.begun.Refused != "" && err == nil {
			next = finishing
		}
	case stepping:
		if tn.lane {
			err = tn.applier.Lane(ctx, run.Plan)
			break
		}
		err = tn.steps(ctx, run)
	case finishing:
		_, err = tn.applier.Finish(ctx, workflows.Finish{Plan: run.Plan})
	}
	if err == nil && tn.injector.alive() == nil {
		run.phase = next
	}
	return err
}

// steps makes the steps that have not ended, in order, each as often as the workflow would.
func (tn *crashScenario) steps(ctx context.Context, run *planRun) error {
	steps := run.begun.Steps
	order, cycle := graph.Order(len(steps), func(i int) []int { return steps[i].DependsOn })
	if cycle != nil {
		tn.T.Fatalf("steps run in a circle: %v", cycle)
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
			result, err := tn.applier.Step(ctx, in, run.tries[i])
			if tn.injector.alive() != nil {
				return errDead // whatever it answered, nobody heard it
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

type crashObjects struct {
	activitiestest.FakeObjects
	scenario *crashScenario
}

func (o crashObjects) List(_ context.Context, namespace string) iter.Seq2[*unstructured.Unstructured, error] {
	return func(yield func(*unstructured.Unstructured, error) bool) {
		for _, key := range slices.Sorted(maps.Keys(o.World.Stored)) {
			if strings.HasPrefix(key, namespace+":") && !yield(o.World.Stored[key].DeepCopy(), o.scenario.injector.alive()) {
				return
			}
		}
	}
}

func (o crashObjects) Get(ctx context.Context, ref v1alpha1.ObjectReference) (*unstructured.Unstructured, error) {
	if err := o.scenario.injector.alive(); err != nil {
		return nil, err
	}
	return o.FakeObjects.Get(ctx, ref)
}

func (o crashObjects) UpdateStatus(ctx context.Context, ref v1alpha1.ObjectReference, change func(*unstructured.Unstructured) map[string]any) error {
	return o.scenario.injector.does(func() error { return o.FakeObjects.UpdateStatus(ctx, ref, change) })
}

func (o crashObjects) Hold(_ context.Context, read *unstructured.Unstructured) error {
	return o.scenario.injector.does(func() error {
		o.World.Mu.Lock()
		defer o.World.Mu.Unlock()
		obj := o.World.Stored["team:"+read.GetKind()+"/"+read.GetName()]
		if obj == nil || obj.GetUID() != read.GetUID() || obj.GetGeneration() != read.GetGeneration() || obj.GetDeletionTimestamp() != nil {
			return store.ErrGone
		}
		obj.SetFinalizers([]string{v1alpha1.FinalizerState})
		return nil
	})
}

func (o crashObjects) Release(_ context.Context, ref v1alpha1.ObjectReference) error {
	return o.scenario.injector.does(func() error {
		o.World.Mu.Lock()
		defer o.World.Mu.Unlock()
		obj := o.World.Stored[o.Key(ref)]
		if obj == nil || obj.GetUID() != ref.UID {
			return nil
		}
		obj.SetFinalizers(nil)
		if obj.GetDeletionTimestamp() != nil {
			delete(o.World.Stored, o.Key(ref))
		}
		return nil
	})
}

type crashPlans struct{ scenario *crashScenario }

func (p crashPlans) Get(_ context.Context, _, name string, _ types.UID) (*v1alpha1.Plan, error) {
	if err := p.scenario.injector.alive(); err != nil {
		return nil, err
	}
	po := p.scenario.plans[name]
	if po == nil {
		return nil, store.ErrGone
	}
	return po.DeepCopy(), nil
}

func (p crashPlans) UpdateStatus(_ context.Context, _, name string, _ types.UID, change func(*v1alpha1.PlanStatus)) error {
	return p.scenario.injector.does(func() error {
		po := p.scenario.plans[name]
		if po == nil {
			return store.ErrGone
		}
		change(&po.Status)
		return nil
	})
}

func (p crashPlans) Approve(context.Context, string, string, types.UID, v1alpha1.PlanApproval) error {
	return errors.New("nobody approves by itself here")
}

// crashStore is a store that dies with the server.
type crashStore struct {
	*ledgertest.KV
	injector *crashInjector
}

func (s crashStore) Get(ctx context.Context, key string) ([]byte, int64, error) {
	if err := s.injector.alive(); err != nil {
		return nil, 0, err
	}
	return s.KV.Get(ctx, key)
}

func (s crashStore) Put(ctx context.Context, key string, value []byte, revision int64) (now int64, err error) {
	err = s.injector.does(func() (err error) {
		now, err = s.KV.Put(ctx, key, value, revision)
		return err
	})
	return now, err
}

func (s crashStore) Delete(ctx context.Context, key string, revision int64) error {
	return s.injector.does(func() error { return s.KV.Delete(ctx, key, revision) })
}

func (s crashStore) List(ctx context.Context, prefix, after string, limit int) ([]ledger.Entry, error) {
	if err := s.injector.alive(); err != nil {
		return nil, err
	}
	return s.KV.List(ctx, prefix, after, limit)
}

// cloudSchema has two types that the provider can turn into each other.
func cloudSchema() *schema.Provider {
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Optional: true}
	}
	block := &schema.Block{Attributes: []*schema.Attribute{{Name: "id", Type: cty.String, Computed: true}, text("name"), text("size"), text("uses")}}
	return &schema.Provider{
		Config: &schema.Schema{Block: &schema.Block{}}, MoveState: true,
		Resources: map[string]*schema.Schema{"test_thing": {Block: block}, "test_box": {Block: block}},
	}
}

// cloud is a provider together with what it provides: things with a name, which cannot be changed, a size and what they use.
type cloud struct {
	tfprotov6.ProviderServer
	t        *testing.T
	injector *crashInjector

	mu     sync.Mutex
	things map[string]map[string]string
	last   int
	// made counts the creates by name.
	made map[string]int
	// faults are what comes of the next creates, or deletes, of a name: "create x" or "delete x" to "refused" (nothing is done),
	// "broken" (done, and an error), "throttled", "lost" (not done, and not answered), "says TEXT" (not done, and an error).
	faults map[string][]string
	log    []string
	// while is called in the middle of the next change.
	while func()
	// strict is true when the cloud removes nothing that is used.
	strict bool
}

func (c *cloud) fault(call string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := c.faults[call]
	if len(next) == 0 {
		return ""
	}
	c.faults[call] = next[1:]
	return next[0]
}

func (c *cloud) type_() cty.Type { return cloudSchema().Resources["test_thing"].Block.ImpliedType() }

func (c *cloud) value(d *tfprotov6.DynamicValue) cty.Value {
	v, err := schema.Decode(d, c.type_())
	if err != nil {
		c.t.Error(err)
	}
	return v
}

func (c *cloud) wire(v cty.Value) *tfprotov6.DynamicValue {
	d, err := schema.Encode(v, c.type_())
	if err != nil {
		c.t.Error(err)
	}
	return d
}

func (c *cloud) shown(id string) cty.Value {
	c.mu.Lock()
	defer c.mu.Unlock()
	thing := c.things[id]
	if thing == nil {
		return cty.NullVal(c.type_())
	}
	vals := map[string]cty.Value{"id": cty.StringVal(id)}
	for _, name := range []string{"name", "size", "uses"} {
		vals[name] = cty.NullVal(cty.String)
		if text, ok := thing[name]; ok {
			vals[name] = cty.StringVal(text)
		}
	}
	return cty.ObjectVal(vals)
}

func textsOf(v cty.Value) map[string]string {
	out := map[string]string{}
	for name, a := range v.AsValueMap() {
		if a.IsKnown() && !a.IsNull() && name != "id" {
			out[name] = a.AsString()
		}
	}
	return out
}

// put makes or changes a thing, as anybody can.
func (c *cloud) put(id string, texts map[string]string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id == "" {
		c.last++
		id = fmt.Sprintf("id-%d", c.last)
		c.made[texts["name"]]++
		c.log = append(c.log, "create "+texts["name"])
	} else {
		c.log = append(c.log, "update "+texts["name"])
	}
	c.things[id] = texts
	return id
}

func (c *cloud) remove(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if thing := c.things[id]; thing != nil {
		c.log = append(c.log, "delete "+thing["name"])
	}
	delete(c.things, id)
}

func (c *cloud) used(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, thing := range c.things {
		if thing["uses"] == id {
			return true
		}
	}
	return false
}

// there lists what is there, each as "name size".
func (c *cloud) there() []string {
	out := []string{}
	for _, thing := range c.things {
		out = append(out, strings.TrimSpace(thing["name"]+" "+thing["size"]))
	}
	slices.Sort(out)
	return out
}

func (c *cloud) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (c *cloud) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.RawState.JSON, c.type_())
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: c.wire(v)}, nil
}

func (c *cloud) MoveResourceState(_ context.Context, r *tfprotov6.MoveResourceStateRequest) (*tfprotov6.MoveResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.SourceState.JSON, c.type_())
	if err != nil {
		return nil, err
	}
	return &tfprotov6.MoveResourceStateResponse{TargetState: c.wire(v)}, nil
}

func (c *cloud) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: c.wire(c.shown(c.value(r.CurrentState).GetAttr("id").AsString())), Private: r.Private}, nil
}

func (c *cloud) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{{TypeName: r.TypeName, State: c.wire(c.shown(r.ID))}}}, nil
}

func (c *cloud) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	prior, planned := c.value(r.PriorState), c.value(r.ProposedNewState)
	resp := &tfprotov6.PlanResourceChangeResponse{PlannedPrivate: r.PriorPrivate}
	vals := planned.AsValueMap()
	switch {
	case prior.IsNull():
		vals["id"] = cty.UnknownVal(cty.String)
	case !prior.GetAttr("name").RawEquals(vals["name"]):
		resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("name")}
	}
	resp.PlannedState = c.wire(cty.ObjectVal(vals))
	return resp, nil
}

func (c *cloud) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	prior, planned := c.value(r.PriorState), c.value(r.PlannedState)
	if while := c.while; while != nil {
		c.while = nil
		while()
	}
	var resp *tfprotov6.ApplyResourceChangeResponse
	err := c.injector.does(func() error {
		resp = c.answer(prior, planned)
		return nil
	})
	if err == nil && resp == nil {
		err = errors.New("the answer was lost")
	}
	return resp, err
}

func (c *cloud) answer(prior, planned cty.Value) *tfprotov6.ApplyResourceChangeResponse {
	failed := func(v cty.Value, summary string) *tfprotov6.ApplyResourceChangeResponse {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: c.wire(v), Diagnostics: activitiestest.Refusal(summary)}
	}
	id, verb, name := "", "create", ""
	if !prior.IsNull() {
		id, verb, name = prior.GetAttr("id").AsString(), "update", prior.GetAttr("name").AsString()
	}
	if planned.IsNull() {
		verb = "delete"
	} else {
		name = planned.GetAttr("name").AsString()
	}
	fault := c.fault(verb + " " + name)
	switch {
	case fault == "refused":
		return failed(prior, "refused")
	case fault == "throttled":
		return failed(prior, "429 Too Many Requests")
	case fault == "lost":
		return nil
	case strings.HasPrefix(fault, "says "):
		return failed(prior, strings.TrimPrefix(fault, "says "))
	case verb == "delete" && c.strict && c.used(id):
		c.t.Errorf("%s is used, and to be destroyed; calls: %v", name, c.log)
		return failed(prior, "it is used")
	case verb == "delete":
		c.remove(id)
		return &tfprotov6.ApplyResourceChangeResponse{NewState: c.wire(planned)}
	}
	v := c.shown(c.put(id, textsOf(planned)))
	if fault == "broken" {
		return failed(v, "it is there, but not well")
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: c.wire(v)}
}
