package activities

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/zclconf/go-cty/cty"
	"go.temporal.io/sdk/temporal"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/workflows"
)

func TestCheckStale(t *testing.T) {
	for reason, test := range map[string]struct {
		move  func(r *resource, c *ledger.Change)
		stale bool
	}{
		"nothing moved":               {func(*resource, *ledger.Change) {}, false},
		"another generation":          {func(r *resource, _ *ledger.Change) { r.ref.Generation++ }, true},
		"marked for deletion":         {func(r *resource, _ *ledger.Change) { r.deleting = true }, true},
		"the deletion was taken back": {func(_ *resource, c *ledger.Change) { c.Preconditions.Deleting = true }, true},
		"another provider version":    {func(r *resource, _ *ledger.Change) { r.entry.Package.Version = "2.0.0" }, true},
		"another state":               {func(_ *resource, c *ledger.Change) { c.Preconditions.State = "other" }, true},
	} {
		r, c := &resource{}, &ledger.Change{Preconditions: ledger.Preconditions{State: "none"}}
		test.move(r, c)
		err := (&stepRun{plan: &v1alpha1.Plan{}, change: c}).checkStale(r, &ledger.Instance{})
		if _, stale := errors.AsType[*staleError](err); stale != test.stale {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// TestBeginRefuses expects Begin to refuse a plan whose approval or whose rights do not hold any more.
func TestBeginRefuses(t *testing.T) {
	for reason, test := range map[string]struct {
		prevent bool
		change  func(*crashScenario, *v1alpha1.PlanStatus)
		begins  bool
	}{
		"approved":    {change: func(*crashScenario, *v1alpha1.PlanStatus) {}, begins: true},
		"no decision": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.Approval = nil }},
		"discarded":   {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.Approval.Decision = v1alpha1.DecisionDiscarded }},
		"no condition": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) {
			meta.RemoveStatusCondition(&s.Conditions, v1alpha1.ConditionApproved)
		}},
		"an approval of another plan": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.Approval.Digest = "sha256:other" }},
		"other changes are stored": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) {
			s.Digest, s.Approval.Digest = "sha256:other", "sha256:other"
		}},
		"a blocked change":                 {prevent: true, change: func(*crashScenario, *v1alpha1.PlanStatus) {}},
		"no right to the ProviderConfig":   {change: func(tn *crashScenario, _ *v1alpha1.PlanStatus) { tn.forbidden["team/providerconfigs/default"] = true }},
		"nobody is known to have asked it": {change: func(_ *crashScenario, s *v1alpha1.PlanStatus) { s.RequestedBy = nil }},
	} {
		tn := newCrashScenario(t)
		tn.config(nil)
		tn.put("test-thing/a", m{"name": "a"}, m{"preventDestroy": test.prevent})
		tn.apply()
		tn.put("test-thing/a", m{"name": "a2"}, m{"preventDestroy": test.prevent})
		run := tn.newRun()
		po := tn.until(run, beginning)
		test.change(tn, &po.Status)
		begun, err := tn.Begin(t.Context(), run.Plan)
		if err != nil || (begun.Refused == "") != test.begins || (tn.plans[run.Name].Status.Progress != nil) != test.begins {
			t.Errorf("%s: refused %q, %v", reason, begun.Refused, err)
		}
	}
}

// TestAStepMakesWhatWasApproved has a provider plan something else when all values are known.
func TestAStepMakesWhatWasApproved(t *testing.T) {
	id := func(tn *crashScenario, resp *tfprotov6.PlanResourceChangeResponse, id cty.Value) {
		vals := tn.cloud.value(resp.PlannedState).AsValueMap()
		vals["id"] = id
		resp.PlannedState = tn.cloud.wire(cty.ObjectVal(vals))
	}
	for reason, test := range map[string]struct {
		made          bool
		first, second func(*crashScenario, *tfprotov6.PlanResourceChangeResponse)
	}{
		"a replacement instead of an update": {
			made: true, first: func(tn *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				id(tn, resp, cty.UnknownVal(cty.String))
			},
			second: func(_ *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				resp.RequiresReplace = []*tftypes.AttributePath{tftypes.NewAttributePath().WithAttributeName("size")}
			},
		},
		"another value": {
			first: func(tn *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				id(tn, resp, cty.StringVal("one"))
			},
			second: func(tn *crashScenario, resp *tfprotov6.PlanResourceChangeResponse) {
				id(tn, resp, cty.StringVal("two"))
			},
		},
	} {
		tn := newCrashScenario(t)
		if test.made {
			things("a")(tn)
			tn.apply()
		}
		tn.put("test-thing/a", m{"name": "a", "size": "2"}, nil)
		tn.says(func(resp *tfprotov6.PlanResourceChangeResponse) { test.first(tn, resp) }, nil)
		run := tn.newRun()
		tn.until(run, stepping)
		calls := len(tn.cloud.log)
		tn.says(func(resp *tfprotov6.PlanResourceChangeResponse) { test.second(tn, resp) }, nil)
		c, err := tn.attempt(run, 0, 1, false)
		if err != nil || c.State != v1alpha1.ChangeStale || len(tn.cloud.log) > calls {
			t.Errorf("%s: %s, %v; calls: %v", reason, c.State, err, tn.cloud.log)
		}
	}
}

// TestAStepKeepsToItsProviderConfig changes the ProviderConfig between the begin of a plan and its step.
func TestAStepKeepsToItsProviderConfig(t *testing.T) {
	for reason, change := range map[string]func(*crashScenario){
		"it is gone": func(tn *crashScenario) { delete(tn.configs, "team/default") },
		"it says something else": func(tn *crashScenario) {
			tn.configs["team/default"].Spec.Config = &runtime.RawExtension{Raw: []byte(`{}`)}
		},
		"another one comes before": func(tn *crashScenario) { tn.configs["team/default"].Name = "other" },
	} {
		tn := newCrashScenario(t)
		tn.config(nil)
		things("a")(tn)
		run := tn.newRun()
		tn.until(run, stepping)
		change(tn)
		if c, err := tn.attempt(run, 0, 1, false); err != nil || c.State != v1alpha1.ChangeStale || len(tn.cloud.log) > 0 {
			t.Errorf("%s: %s, %v; calls: %v", reason, c.State, err, tn.cloud.log)
		}
	}
}

// TestAMoveIsBoundToItsSource changes what a move takes over after the plan was begun.
func TestAMoveIsBoundToItsSource(t *testing.T) {
	tn := newCrashScenario(t)
	things("a")(tn)
	tn.apply()
	tn.delete("test-thing/a")
	tn.put("test-thing/n", m{"name": "a", "size": "1"}, m{"moved": m{"from": "test_thing.a"}})
	run := tn.newRun()
	tn.until(run, stepping)
	from := tn.changeOf(run, 0).Preconditions.From
	if from == nil {
		t.Fatal("nothing is moved")
	}
	tn.taint("test-thing/a")
	c, err := tn.attempt(run, 0, 1, false)
	if err != nil || c.State != v1alpha1.ChangeStale || tn.recordOf("test-thing/n").Exists() {
		t.Errorf("%s, %v, recorded: %+v", c.State, err, tn.recordOf("test-thing/n"))
	}
}

// TestAnOldInstanceIsBoundToItsState changes the record of an old instance after its destroy was approved.
func TestAnOldInstanceIsBoundToItsState(t *testing.T) {
	tn := newCrashScenario(t)
	cbd := m{"createBeforeDestroy": true}
	tn.put("test-thing/a", m{"name": "a"}, cbd)
	tn.apply()
	tn.cloud.faults["delete a"] = []string{"refused"}
	tn.put("test-thing/a", m{"name": "a2"}, cbd)
	tn.apply()
	run := tn.newRun()
	tn.until(run, stepping)
	rec := tn.recordOf("test-thing/a")
	rec.Deposed[0].Tainted = true
	if err := tn.Ledger.Save(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	calls := len(tn.cloud.log)
	tn.resume(run)
	if len(tn.cloud.log) > calls {
		t.Errorf("calls: %v", tn.cloud.log[calls:])
	}
}

// TestAStepLeavesAnothersIntentAlone takes over what another plan gave up, and nothing else.
func TestAStepLeavesAnothersIntentAlone(t *testing.T) {
	for reason, test := range map[string]struct {
		state  v1alpha1.ChangeState
		action v1alpha1.Action
		takes  bool
	}{
		"the other is at work":     {v1alpha1.ChangeRunning, v1alpha1.ActionUpdate, false},
		"the other waits":          {v1alpha1.ChangePending, v1alpha1.ActionUpdate, false},
		"the other gave up":        {v1alpha1.ChangeFailed, v1alpha1.ActionUpdate, true},
		"the other lost a create":  {v1alpha1.ChangeUnknown, v1alpha1.ActionCreate, false},
		"the other lost a destroy": {v1alpha1.ChangeFailed, v1alpha1.ActionDelete, true},
	} {
		w := newWorld(t)
		r := w.put("test-thing/a", nil, nil)
		other := changeOf(r, 0)
		other.State = test.state
		w.save(other)
		c := changeOf(r, 0)
		c.Action = v1alpha1.ActionUpdate
		rec := &ledger.Instance{Intent: &ledger.Intent{Plan: "plan-1", Action: test.action}}
		if takes, err := w.stepOf(r, c).takesOverIntent(t.Context(), rec); takes != test.takes || (err == nil) != test.takes {
			t.Errorf("%s: %t, %v", reason, takes, err)
		}
	}
}

// TestDigestHasAllThatIsApproved changes, one by one, what a person approves.
func TestDigestHasAllThatIsApproved(t *testing.T) {
	sum := func(change func(*ledger.Change)) string {
		c := &ledger.Change{Planned: []byte{1}, Preconditions: ledger.Preconditions{State: "s"}}
		c.Address, c.Action, c.ProviderConfig, c.ProviderVersion = "test_thing.a", v1alpha1.ActionUpdate, "default", "1.0.0"
		change(c)
		d := newDigest()
		d.add(c)
		return d.String()
	}
	before := sum(func(*ledger.Change) {})
	for what, change := range map[string]func(*ledger.Change){
		"index":               func(c *ledger.Change) { c.Index = 1 },
		"address":             func(c *ledger.Change) { c.Address = "test_thing.b" },
		"object":              func(c *ledger.Change) { c.Object.UID = "u" },
		"generation":          func(c *ledger.Change) { c.Object.Generation = 2 },
		"action":              func(c *ledger.Change) { c.Action = v1alpha1.ActionDelete },
		"planned value":       func(c *ledger.Change) { c.Planned = []byte{2} },
		"recorded state":      func(c *ledger.Change) { c.Preconditions.State = "t" },
		"deletion":            func(c *ledger.Change) { c.Preconditions.Deleting = true },
		"source of a move":    func(c *ledger.Change) { c.PreviousAddress = "test_thing.b" },
		"provider version":    func(c *ledger.Change) { c.ProviderVersion = "2.0.0" },
		"ProviderConfig":      func(c *ledger.Change) { c.ProviderConfig = "other" },
		"deposed instance":    func(c *ledger.Change) { c.Deposed = "abcd1234" },
		"createBeforeDestroy": func(c *ledger.Change) { c.CreateBeforeDestroy = true },
		"forget":              func(c *ledger.Change) { c.Forget = true },
		"import":              func(c *ledger.Change) { c.Importing = &v1alpha1.PlanImport{ID: "i-1"} },
		"checks":              func(c *ledger.Change) { c.Checks = true },
		"update of a record":  func(c *ledger.Change) { c.UpdatesRecord = true },
		"blocked":             func(c *ledger.Change) { c.Blocked = "why" },
	} {
		if sum(change) == before {
			t.Errorf("an approval covers another %s", what)
		}
	}
}

// TestAPlanOfAnObjectThatMoves edits an object between the survey and the proposal.
func TestAPlanOfAnObjectThatMoves(t *testing.T) {
	tn := newCrashScenario(t)
	things("a")(tn)
	run := tn.newRun()
	tn.until(run, proposing)
	tn.put("test-thing/a", m{"name": "b"}, nil)
	_, err := tn.Propose(t.Context(), run.Plan)
	if ae, ok := errors.AsType[*temporal.ApplicationError](err); !ok || ae.Type() != workflows.ErrorMoved {
		t.Errorf("got %v, want a new survey", err)
	}
}

// TestAChangeThatCannotBePlannedShowsNoSecret has a provider repeat a secret while the plan is made.
func TestAChangeThatCannotBePlannedShowsNoSecret(t *testing.T) {
	const secret = "hunter22-hunter22"
	tn := newCrashScenario(t)
	tn.data["secrets/team/db"] = map[string][]byte{"password": []byte(secret)}
	tn.put("test-thing/a", m{"name": "a", "size": "${secret.db.password}"}, nil)
	tn.says(func(resp *tfprotov6.PlanResourceChangeResponse) {
		resp.Diagnostics = refusal("no such size: " + secret)
	}, nil)
	run := tn.newRun()
	tn.until(run, approving)
	c := tn.changeOf(run, 0)
	if c.Message == "" || strings.Contains(c.Message, secret) {
		t.Errorf("the message is %q", c.Message)
	}
	for _, d := range c.Diagnostics {
		if strings.Contains(d.Summary+d.Detail, secret) {
			t.Errorf("a diagnostic says %q", d.Summary)
		}
	}
}

// secretConfigs answers for the Secrets of ProviderConfigs.
type secretConfigs struct{ fakeConfigs }

func (secretConfigs) Secret(context.Context, string, string, string) ([]byte, error) {
	return []byte("hunter22-hunter22"), nil
}

// TestSecretsOfProviderConfigsAreHidden has a secret that does not fit its argument, so that no value of the configuration holds it.
func TestSecretsOfProviderConfigsAreHidden(t *testing.T) {
	w := newWorld(t)
	w.Configs = secretConfigs{fakeConfigs{w}}
	entry := catalog.Entry{Name: "test", Schema: testSchema()}
	entry.Schema.Config = &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "port", Type: cty.Number, Optional: true}}}}
	w.config(nil)
	cfg := w.configs["team/default"]
	cfg.Namespace = "team"
	cfg.Spec.SecretRefs = []v1alpha1.SecretArgument{{Argument: "port", Name: "db", Key: "port"}}
	s := w.newScope(w.plan(), "team", nil)
	_, err := s.configuration(t.Context(), entry, cfg)
	if err == nil {
		t.Fatal("the configuration is accepted")
	}
	if got := s.mask("port hunter22-hunter22 is none"); strings.Contains(got, "hunter22") {
		t.Errorf("got %q", got)
	}
}

func TestScopeOfNobody(t *testing.T) {
	w := newWorld(t)
	po := w.plan()
	po.Status.RequestedBy = nil
	s := w.newScope(po, "team", nil)
	if err := s.mayRead(t.Context(), accessTarget{"team", "", "secrets", "db"}); err == nil {
		t.Error("a plan that nobody asked for may read a Secret")
	}
}

// TestCheckArguments wants a data source and an ephemeral resource to get no argument that its plan's author may not read: its answer is shown.
func TestCheckArguments(t *testing.T) {
	held, err := lang.PassOnly(cty.StringVal("hunter22").Mark(lang.Sensitive), "get state")
	if err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[v1alpha1.Mode]bool{v1alpha1.ModeData: true, v1alpha1.ModeEphemeral: true, v1alpha1.ModeManaged: false} {
		if err := checkArguments(&resource{mode: mode}, cty.ObjectVal(map[string]cty.Value{"name": held})); (err != nil) != refused {
			t.Errorf("mode %q: %v", mode, err)
		}
	}
}

// TestConfigOf finds the ProviderConfig of a resource among those of its namespace.
func TestConfigOf(t *testing.T) {
	config := func(provider string) *v1alpha1.ProviderConfig {
		return &v1alpha1.ProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: provider}, Spec: v1alpha1.ProviderConfigSpec{Provider: provider}}
	}
	for reason, test := range map[string]struct {
		named   string
		there   map[string]string
		want    string
		refused bool
	}{
		"none":                       {},
		"the default one":            {there: map[string]string{"default": "test", "test": "test"}, want: "default"},
		"default is of another one":  {there: map[string]string{"default": "other", "test": "test"}, want: "test"},
		"only of another provider":   {there: map[string]string{"default": "other"}},
		"named":                      {named: "x", there: map[string]string{"default": "test", "x": "test"}, want: "x"},
		"named, of another provider": {named: "x", there: map[string]string{"x": "other"}, refused: true},
		"named, not there":           {named: "x", there: map[string]string{"default": "test"}, refused: true},
	} {
		r := &resource{entry: catalog.Entry{Name: "test"}}
		r.lifecycle.ProviderConfig = test.named
		found := ""
		cfg, err := configOf(r, func(name string) (*v1alpha1.ProviderConfig, error) {
			if of, ok := test.there[name]; ok {
				cfg := config(of)
				cfg.Name = name
				return cfg, nil
			}
			return nil, nil
		})
		if cfg != nil {
			found = cfg.Name
		}
		if found != test.want || (err != nil) != test.refused {
			t.Errorf("%s: %q, %v", reason, found, err)
		}
	}
}

// leavingConfigs has every ProviderConfig deleted since it was read.
type leavingConfigs struct{ fakeConfigs }

func (leavingConfigs) Leaving(context.Context, *v1alpha1.ProviderConfig) (string, error) {
	return "the ProviderConfig", nil
}

// TestAConfigIsDeletedBeforeTheIntent deletes the ProviderConfig of a create after it was read and before the intent is written.
func TestAConfigIsDeletedBeforeTheIntent(t *testing.T) {
	tn := newCrashScenario(t)
	tn.config(nil)
	things("a")(tn)
	run := tn.newRun()
	tn.until(run, stepping)
	tn.Configs = leavingConfigs{fakeConfigs{tn.world}}
	c, err := tn.attempt(run, 0, 1, false)
	if rec := tn.recordOf("test-thing/a"); err != nil || c.State != v1alpha1.ChangeFailed || len(tn.cloud.log) > 0 || rec.Intent != nil {
		t.Errorf("%s, %v, intent %v; calls: %v", c.State, err, rec.Intent, tn.cloud.log)
	}
}
