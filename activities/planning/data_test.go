package planning

import (
	gocmp "cmp"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/plan"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/types"
)

func TestAskData(t *testing.T) {
	fails := func(condition string) []any {
		return []any{map[string]any{"condition": condition, "errorMessage": "that is why"}}
	}
	for name, tc := range map[string]struct {
		reason          string
		spec, lifecycle map[string]any
		// dependency is the planned action of test_thing.net, on which everything here depends.
		dependency v1alpha1.Action
		// gone is true for a dependency without infrastructure.
		gone     bool
		deferred bool
		fails    bool

		action v1alpha1.Action
		why    string
		id     cty.Value
		calls  []string
		failed string
	}{
		"known": {
			reason: "it is read at once", spec: map[string]any{"name": "base"},
			action: v1alpha1.ActionNoOp, id: cty.StringVal("id-base"), calls: []string{"read base"},
		},
		"configuration unknown": {
			reason: "it is read when the plan is applied", spec: map[string]any{"name": "${test_thing.net.id}"}, dependency: v1alpha1.ActionCreate,
			action: v1alpha1.ActionRead, why: "read_because_config_unknown", id: cty.UnknownVal(cty.String),
		},
		"dependency changes": {
			reason: "what it reads may be another afterwards", spec: map[string]any{"name": "base"}, dependency: v1alpha1.ActionUpdate,
			lifecycle: map[string]any{"dependsOn": []any{"test_thing.net"}},
			action:    v1alpha1.ActionRead, why: "read_because_dependency_pending", id: cty.UnknownVal(cty.String),
		},
		"dependency stays": {
			reason: "there is nothing to wait for", spec: map[string]any{"name": "base"}, dependency: v1alpha1.ActionNoOp,
			lifecycle: map[string]any{"dependsOn": []any{"test_thing.net"}},
			action:    v1alpha1.ActionNoOp, id: cty.StringVal("id-base"), calls: []string{"read base"},
		},
		"dependency leaves a set": {
			reason: "its destroy is a change, too", spec: map[string]any{"name": "base"}, dependency: v1alpha1.ActionDelete,
			lifecycle: map[string]any{"dependsOn": []any{"test_thing.net"}},
			action:    v1alpha1.ActionRead, why: "read_because_dependency_pending", id: cty.UnknownVal(cty.String),
		},
		"dependency is forgotten": {
			reason: "the provider's view of it may change", spec: map[string]any{"name": "base"}, dependency: v1alpha1.ActionForget,
			lifecycle: map[string]any{"dependsOn": []any{"test_thing.net"}},
			action:    v1alpha1.ActionRead, why: "read_because_dependency_pending", id: cty.UnknownVal(cty.String),
		},
		"dependency is gone": {
			reason: "only its record changes", spec: map[string]any{"name": "base"}, dependency: v1alpha1.ActionForget, gone: true,
			lifecycle: map[string]any{"dependsOn": []any{"test_thing.net"}},
			action:    v1alpha1.ActionNoOp, id: cty.StringVal("id-base"), calls: []string{"read base"},
		},
		"what it refers to changes": {
			reason: "although the value is known, what it leads to may not be there yet", spec: map[string]any{"name": "${test_thing.net.uses}"},
			dependency: v1alpha1.ActionUpdate,
			action:     v1alpha1.ActionRead, why: "read_because_dependency_pending", id: cty.UnknownVal(cty.String),
		},
		"provider puts it off": {
			reason: "it may have something to say once the rest is applied", spec: map[string]any{"name": "base"}, deferred: true,
			action: v1alpha1.ActionRead, why: "read_because_dependency_pending", id: cty.UnknownVal(cty.String), calls: []string{"read base"},
		},
		"provider refuses": {
			reason: "there is nothing to plan with", spec: map[string]any{"name": "base"}, fails: true, calls: []string{"read base"}, failed: "no such image",
		},
		"precondition": {
			reason: "it is not even read", spec: map[string]any{"name": "base"},
			lifecycle: map[string]any{"preconditions": fails("${1 > 2}")}, failed: "that is why",
		},
		"precondition that is not known": {
			reason: "it must not be read before that holds", spec: map[string]any{"name": "base"}, dependency: v1alpha1.ActionCreate,
			lifecycle: map[string]any{"preconditions": fails(`${test_thing.net.id == "x"}`)},
			action:    v1alpha1.ActionRead, why: "read_because_dependency_pending", id: cty.UnknownVal(cty.String),
		},
		"postcondition": {
			reason: "it is not what it should be", spec: map[string]any{"name": "base"},
			lifecycle: map[string]any{"postconditions": fails(`${self.id == "other"}`)}, calls: []string{"read base"}, failed: "that is why",
		},
		"postcondition that holds": {
			reason: "nothing is in the way", spec: map[string]any{"name": "base"},
			lifecycle: map[string]any{"postconditions": fails(`${self.id == "id-base"}`)},
			action:    v1alpha1.ActionNoOp, id: cty.StringVal("id-base"), calls: []string{"read base"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := activitiestest.NewWorld(t)
			id := cty.StringVal("net-1")
			if tc.dependency == v1alpha1.ActionCreate {
				id = cty.UnknownVal(cty.String)
			}
			net := w.Put("test-thing/net", nil, nil)
			dep := activitiestest.ChangeOf(net, 0)
			dep.Action = gocmp.Or(tc.dependency, v1alpha1.ActionNoOp)
			if tc.gone {
				dep.ActionReason = plan.ReasonGone
			}
			w.Save(dep)
			r := w.Put("data-test-image/i", tc.spec, tc.lifecycle)
			w.Provider.Deferred["read base"] = tc.deferred
			if tc.fails {
				w.Provider.Fails["read base"] = activitiestest.Refusal("no such image")
			}
			pr := proposalOf(w, map[lang.Address]cty.Value{net.Address: cty.ObjectVal(map[string]cty.Value{
				"id": id, "uses": cty.StringVal("known"), "password": cty.NullVal(cty.String),
			})})
			pr.append([]*ledger.Change{dep})
			c := activitiestest.ChangeOf(r, 1, 0)
			v, err := pr.readOrPlanData(t.Context(), c, r)
			if diff := cmp.Diff(tc.calls, w.Provider.RecordedCalls()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if tc.failed != "" {
				if err == nil || !strings.Contains(diag.Describe(diag.Of(err)), tc.failed) {
					t.Errorf("%s: got %v, want an error with %q", tc.reason, err, tc.failed)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := v.GetAttr("id"); !activitiestest.UnrefinedEquals(got, tc.id) || c.Action != tc.action || c.ActionReason != tc.why {
				t.Errorf("%s: got %#v, %s %q; want %#v, %s %q", tc.reason, got, c.Action, c.ActionReason, tc.id, tc.action, tc.why)
			}
			if !v.GetAttr("token").HasMark(lang.Sensitive) || strings.Contains(string(c.After.Raw), "token-base") {
				t.Errorf("a secret is shown: %s", c.After.Raw)
			}
			if read := tc.action == v1alpha1.ActionRead; read != (string(c.Before.Raw) == "null") {
				t.Errorf("before is %s", c.Before.Raw)
			}
		})
	}
}

// TestAskDataWaitsForWhatItDependsOn expects a data source to wait for the resources that it names, and for those that
// a data source names on which it depends. As in Terraform, it does not wait for dependencies of an unchanged resource.
func TestAskDataWaitsForWhatItDependsOn(t *testing.T) {
	const update, noop, read = v1alpha1.ActionUpdate, v1alpha1.ActionNoOp, v1alpha1.ActionRead
	for name, tc := range map[string]struct {
		behind       v1alpha1.Action
		between, own string
		betweenDoes  v1alpha1.Action
		want         v1alpha1.Action
		// checked is the action for a data source with a condition.
		checked v1alpha1.Action
	}{
		"it changes itself":                     {noop, "test-thing/net", "test_thing.net", update, read, read},
		"nothing changes":                       {noop, "test-thing/net", "test_thing.net", noop, noop, noop},
		"behind a resource":                     {update, "test-thing/net", "test_thing.net", noop, noop, read},
		"behind a data source, as in Terraform": {update, "data-test-image/net", "data.test_image.net", read, noop, read},
		"a data source has no effect":           {noop, "data-test-image/net", "data.test_image.net", read, noop, noop},
	} {
		w := activitiestest.NewWorld(t)
		behind := activitiestest.ChangeOf(w.Put("test-thing/behind", nil, nil), 0)
		behind.Action = tc.behind
		w.Save(behind)
		between := activitiestest.ChangeOf(w.Put(tc.between, nil, nil), 1, 0)
		between.Action = tc.betweenDoes
		w.Save(between)
		lifecycle := map[string]any{"dependsOn": []any{tc.own}}
		r := w.Put("data-test-image/i", map[string]any{"name": "base"}, lifecycle)
		c := activitiestest.ChangeOf(r, 2, 1)
		pr := proposalOf(w, nil)
		pr.append([]*ledger.Change{behind, between})
		if _, err := pr.readOrPlanData(t.Context(), c, r); err != nil || c.Action != tc.want {
			t.Errorf("%s: %s, %v; want %s", name, c.Action, err, tc.want)
		}
		c.ReadAfter = nil // only its ProviderConfig refers to it, and is known all the same
		if _, err := pr.readOrPlanData(t.Context(), c, r); err != nil || c.Action != noop {
			t.Errorf("%s, for its configuration: %s, %v; want %s", name, c.Action, err, noop)
		}
		lifecycle["postconditions"] = []any{map[string]any{"condition": `${self.id != ""}`, "errorMessage": "no ID"}}
		r = w.Put("data-test-image/checked", map[string]any{"name": "base"}, lifecycle)
		c = activitiestest.ChangeOf(r, 2, 1)
		if _, err := pr.readOrPlanData(t.Context(), c, r); err != nil || c.Action != tc.checked {
			t.Errorf("%s, with a condition: %s, %v; want %s", name, c.Action, err, tc.checked)
		}
	}
}

func TestAskDataWithoutRefreshReadsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		recorded string
		then     int64
		want     []string
	}{
		"as recorded":            {`{"id":"old","name":"base"}`, 1, nil},
		"with another argument":  {`{"id":"old","name":"other"}`, 1, []string{"read base"}},
		"of an older generation": {`{"id":"old","name":"base"}`, 0, []string{"read base"}},
	} {
		w := activitiestest.NewWorld(t)
		r := w.Put("data-test-image/i", map[string]any{"name": "base"}, nil)
		rec := &ledger.Instance{Object: r.Ref, Mode: v1alpha1.ModeData, Provider: "test", State: ledger.State{Type: "test_image", Attributes: []byte(tc.recorded)}}
		rec.Object.Generation = tc.then
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		pr := proposalOf(w, nil)
		pr.plan.Spec.Refresh = v1alpha1.RefreshNone
		c := activitiestest.ChangeOf(r, 0)
		if _, err := pr.readOrPlanData(t.Context(), c, r); err != nil || c.Action != v1alpha1.ActionNoOp {
			t.Errorf("%s: %s, %v", name, c.Action, err)
		}
		if diff := cmp.Diff(tc.want, w.Provider.RecordedCalls()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDropData(t *testing.T) {
	w := activitiestest.NewWorld(t)
	orphans := map[types.UID]*ledger.Instance{}
	add := func(name string, mode v1alpha1.Mode, provider string) {
		rec := &ledger.Instance{Object: v1alpha1.ObjectReference{Namespace: "team", Kind: "data-test-image", Name: name, UID: types.UID(name)}, Mode: mode, Provider: provider}
		if err := w.Ledger.Save(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		orphans[rec.Object.UID] = rec
	}
	add("data", v1alpha1.ModeData, "test")
	add("action", v1alpha1.ModeAction, "test")
	add("managed", "", "test")
	add("unread", v1alpha1.ModeData, "missing")
	add("data-test-image/there", v1alpha1.ModeData, "test")
	there := w.Put("data-test-image/there", nil, nil)
	orphans["data-test-image/there"].Object = there.Ref
	if err := plannerOf(w).dropData(t.Context(), "team", orphans); err != nil {
		t.Fatal(err)
	}
	var left []string
	for rec, err := range w.Ledger.Instances(t.Context(), "team") {
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, string(rec.Object.UID))
	}
	if diff := cmp.Diff([]string{"data-test-image/there", "managed", "unread"}, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
}

// TestTooLargeDataFailsThePlan reads a data source whose value is larger than a record may be.
func TestTooLargeDataFailsThePlan(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Ledger.Limit = 4 << 10
	r := w.Put("data-test-image/i", map[string]any{"name": strings.Repeat("x", 4<<10)}, nil)
	_, err := proposalOf(w, nil).readOrPlanData(t.Context(), activitiestest.ChangeOf(r, 0), r)
	if text := diag.Describe(diag.Of(err)); !strings.Contains(text, "state of data.test_image.i takes") || !strings.Contains(text, "limit on a stored record is 4096 bytes") {
		t.Errorf("got %q, %v", text, err)
	}
}
