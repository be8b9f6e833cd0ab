package planning

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/activities/activitiestest"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/resourceset"

	gocmp "github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// estate is a namespace of test_thing objects. Each is written as "name", "name<other" (refers to other), with "!" behind
// it when it was never applied, "~" when it was changed since, "-" when it is marked for deletion, and "^" when it left the files.
type estate struct {
	t     *testing.T
	w     *activitiestest.World
	added []*resource.Resource
	// left are the names of those that left the files.
	left []string
}

func newEstate(t *testing.T, things ...string) *estate {
	t.Helper()
	e := &estate{t: t, w: activitiestest.NewWorld(t)}
	e.w.Config(nil)
	for _, thing := range things {
		e.add(thing)
	}
	return e
}

func (e *estate) add(thing string) {
	flags := thing[len(strings.TrimRight(thing, "!~-^")):]
	name, uses, _ := strings.Cut(strings.TrimRight(thing, "!~-^"), "<")
	spec := map[string]any{}
	if uses != "" {
		spec["uses"] = "${test_thing." + uses + ".id}"
	}
	e.put(name, flags, spec, nil)
}

func (e *estate) put(name, flags string, spec, lifecycle map[string]any) {
	e.t.Helper()
	r := e.w.Put("test-thing/"+name, spec, lifecycle)
	obj := e.w.Stored["team:test-thing/"+name]
	good := &resource.Status{Generation: 2, Observed: 2, Applied: 2}
	condition.Ready(&good.Conditions, 2, v1alpha1.ReasonApplied, "")
	obj.Object["status"] = good.ToMap()
	obj.SetGeneration(2)
	obj.SetLabels(map[string]string{"name": name})
	if strings.ContainsAny(flags, "-^") {
		obj.SetDeletionTimestamp(new(metav1.Now()))
	}
	if r.Ref.Generation = 2; strings.Contains(flags, "~") {
		r.Ref.Generation = 1
	}
	rec := &ledger.Instance{Object: r.Ref, Provider: "test", State: ledger.State{Type: "test_thing", Attributes: []byte(`{}`)}}
	for _, addr := range r.Parse().DependsOn {
		rec.Dependencies = append(rec.Dependencies, addr.String())
	}
	if !strings.Contains(flags, "!") {
		if err := e.w.Ledger.Save(e.t.Context(), rec); err != nil {
			e.t.Fatal(err)
		}
	}
	if strings.Contains(flags, "^") {
		e.left = append(e.left, name)
	}
	e.added = append(e.added, r)
}

// survey surveys a plan.
func (e *estate) survey(spec v1alpha1.PlanSpec) *survey {
	e.t.Helper()
	settleVersions(e.t, e.w)
	po := e.w.Plan()
	po.Spec = spec
	s, err := plannerOf(e.w).newSurvey(e.t.Context(), po)
	if err != nil {
		e.t.Fatal(err)
	}
	s.leftFiles = func(ref v1alpha1.ObjectReference) bool { return slices.Contains(e.left, ref.Name) }
	if err := s.store(e.t.Context(), exact); err != nil {
		e.t.Fatal(err)
	}
	return s
}

// visit returns the names that a plan visits if each value changes, in its order.
func (e *estate) visit(spec v1alpha1.PlanSpec) ([]string, diag.Diagnostics) {
	e.t.Helper()
	s := e.survey(spec)
	if diag.HasErrors(s.diags) {
		return nil, s.diags
	}
	var slots []int
	for i, in := range s.closure {
		if in && s.canVisit(i) {
			slots = append(slots, i)
		}
	}
	order, _ := s.orderOf(slots)
	names := []string{}
	for _, i := range order {
		names = append(names, s.Nodes[i].Object.Name)
	}
	return names, s.diags
}

func TestSurveyVisitsWhatThePlanIsAbout(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		things []string
		spec   v1alpha1.PlanSpec
		want   []string
	}{
		"nothing changed": {
			reason: "a plan costs what the change deserves",
			things: []string{"a", "b<a"}, want: []string{},
		},
		"one changed": {
			reason: "what depends on it may change, too; what it depends on does not",
			things: []string{"a", "b<a~", "c<b", "d"}, want: []string{"b", "c"},
		},
		"new ones": {
			reason: "dependencies come first, however they are listed",
			things: []string{"z<y!", "y<x!", "x!"}, want: []string{"x", "y", "z"},
		},
		"refresh all": {
			reason: "drift can be anywhere",
			things: []string{"b<a", "a"}, spec: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}, want: []string{"a", "b"},
		},
		"target": {
			reason: "with what it depends on, and nothing else",
			things: []string{"a!", "b<a!", "c!"}, spec: v1alpha1.PlanSpec{Targets: []string{"test_thing.b"}}, want: []string{"a", "b"},
		},
		"exclude": {
			reason: "and what depends on it",
			things: []string{"a!", "b<a!", "c<b!", "d!"}, spec: v1alpha1.PlanSpec{Exclude: []string{"test_thing.b"}}, want: []string{"a", "d"},
		},
		"exclude from a destroy": {
			reason: "its dependencies stay, too",
			things: []string{"a", "b<a", "c<b", "d"}, spec: v1alpha1.PlanSpec{Exclude: []string{"test_thing.b"}, Destroy: true}, want: []string{"c", "d"},
		},
		"selector": {
			reason: "as targets",
			things: []string{"a!", "b<a!", "c!"},
			spec:   v1alpha1.PlanSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "c"}}}, want: []string{"c"},
		},
		"destroy of a target": {
			reason: "with what depends on it",
			things: []string{"a", "b<a", "c"},
			spec:   v1alpha1.PlanSpec{Destroy: true, Targets: []string{"test-thing/a"}}, want: []string{"a", "b"},
		},
		"replace": {
			reason: "asked for, though nothing changed",
			things: []string{"a", "b"}, spec: v1alpha1.PlanSpec{Replace: []string{"test_thing.b"}}, want: []string{"b"},
		},
		"never applied and destroyed": {
			reason: "there is nothing to destroy",
			things: []string{"a!"}, spec: v1alpha1.PlanSpec{Destroy: true}, want: []string{},
		},
		"marked for deletion": {
			reason: "it is destroyed and released",
			things: []string{"a", "b-"}, want: []string{"b"},
		},
		"only what was applied is refreshed": {
			reason: "there is nothing to read of what was never made",
			things: []string{"a", "b!"}, spec: v1alpha1.PlanSpec{RefreshOnly: true}, want: []string{"a"},
		},
		"a read budget": {
			reason: "in the order of addresses, and without what is not selected",
			things: []string{"c", "b<c", "a!", "e<b", "d"},
			spec: v1alpha1.PlanSpec{RefreshOnly: true, Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"c"}}}}, ReadBudget: &v1alpha1.ReadBudget{MaxReads: 2}},
			want: []string{"b", "d"},
		},
		"the page after it": {
			reason: "it goes on with the next address",
			things: []string{"c", "b<c", "a!", "e<b", "d"},
			spec:   v1alpha1.PlanSpec{RefreshOnly: true, ReadBudget: &v1alpha1.ReadBudget{MaxReads: 2}, ReadAfter: "test_thing.c"}, want: []string{"d", "e"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, diags := newEstate(t, tc.things...).visit(tc.spec)
			if diag.HasErrors(diags) {
				t.Fatalf("%+v", diags)
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSurveyRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		things []string
		spec   v1alpha1.PlanSpec
		want   string
	}{
		"cycle":                     {things: []string{"a<b!", "b<c!", "c<a!"}, want: "test_thing.a -> test_thing.b -> test_thing.c -> test_thing.a"},
		"reference to nothing":      {things: []string{"a<mian!", "main"}, want: "main"},
		"reference to what goes":    {things: []string{"a<b", "b-"}, want: "marked for deletion"},
		"reference to what left":    {things: []string{"a<b", "b^"}, want: "test_thing.a refers to test_thing.b, which is no longer in the files and would be deleted. Put the resource back into the files, or remove the reference."},
		"target that is not there":  {things: []string{"a"}, spec: v1alpha1.PlanSpec{Targets: []string{"test_thing.b"}}, want: `"b"`},
		"selector of nothing":       {things: []string{"a"}, spec: v1alpha1.PlanSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "b"}}}, want: "name=b"},
		"target that is no address": {things: []string{"a"}, spec: v1alpha1.PlanSpec{Targets: []string{"what"}}, want: "TYPE.NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			_, diags := newEstate(t, tc.things...).visit(tc.spec)
			if !diag.HasErrors(diags) || !strings.Contains(diag.Describe(diags), tc.want) {
				t.Errorf("got %q, want an error with %q", diag.Describe(diags), tc.want)
			}
		})
	}
}

func TestABrokenObjectOutsideTheTargetsDoesNotMatter(t *testing.T) {
	got, diags := newEstate(t, "a!", "broken<nothing!").visit(v1alpha1.PlanSpec{Targets: []string{"test_thing.a"}})
	if diff := gocmp.Diff([]string{"a"}, got); diff != "" || diag.HasErrors(diags) {
		t.Errorf("%s %+v", diff, diags)
	}
}

func TestCreateBeforeDestroySpreadsWithinTheTargets(t *testing.T) {
	for name, tc := range map[string]struct {
		targets []string
		want    bool
	}{
		"all":                  {nil, true},
		"with who asks for it": {[]string{"test_thing.b"}, true},
		"without":              {[]string{"test_thing.a"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t, "a")
			e.put("b", "", map[string]any{"uses": "${test_thing.a.id}"}, map[string]any{"createBeforeDestroy": true})
			s := e.survey(v1alpha1.PlanSpec{Targets: tc.targets})
			if diag.HasErrors(s.diags) {
				t.Fatalf("%+v", s.diags)
			}
			slot, _ := s.Slot(e.added[0].Address)
			if got := s.createsFirst[slot]; got != tc.want {
				t.Errorf("what it depends on is created first: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatAProviderConfigRefersTo(t *testing.T) {
	config := func(name, field string) *v1alpha1.ProviderConfig {
		cfg := &v1alpha1.ProviderConfig{Spec: v1alpha1.ProviderConfigSpec{Provider: "test"}}
		cfg.Name = name
		cfg.Spec.Config = &runtime.RawExtension{Raw: []byte(`{"host": "` + field + `"}`)}
		return cfg
	}
	configs := map[string]*v1alpha1.ProviderConfig{
		"default": config("default", "plain"),
		"inner":   config("inner", "${test_thing.a.id}${configmap.x.y}"),
		"broken":  config("broken", "${test_thing.nothing.id}"),
		"gone":    config("gone", "${test_thing.gone.id}"),
		"left":    config("left", "${test_thing.left.id}"),
		"itself":  config("itself", "${test_thing.c.id}"),
		"circle":  config("circle", "${test_thing.d.id}"),
	}
	for name, tc := range map[string]struct {
		uses map[string]string
		spec v1alpha1.PlanSpec
		// want lists the visited names; refusal is the expected error instead.
		want    []string
		refusal string
	}{
		"it comes first":              {uses: map[string]string{"a": "", "b": "inner"}, want: []string{"a", "b", "c", "d"}},
		"an object that there is not": {uses: map[string]string{"b": "broken"}, refusal: "spec.config.host, column 3: Reference to a missing resource"},
		"one that goes":               {uses: map[string]string{"b": "gone"}, refusal: `The ProviderConfig "gone" refers to test_thing.gone, which is marked for deletion`},
		"one that left the files":     {uses: map[string]string{"b": "left"}, refusal: `The ProviderConfig "left" refers to test_thing.left, which is no longer in the files and would be deleted. test_thing.b uses this ProviderConfig. Put the resource back`},
		"itself":                      {uses: map[string]string{"c": "itself"}, refusal: "which uses this ProviderConfig"},
		"a circle":                    {uses: map[string]string{"c": "circle", "d": "itself"}, refusal: `test_thing.c uses the ProviderConfig "circle", which refers to test_thing.d`},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEstate(t, "gone-", "left^")
			for _, n := range []string{"a", "b", "c", "d"} {
				e.put(n, "!", nil, map[string]any{"providerConfig": cmp.Or(tc.uses[n], "default")})
			}
			for name, cfg := range configs {
				e.w.ProviderConfigs["team/"+name] = cfg
			}
			names, diags := e.visit(tc.spec)
			got := slices.DeleteFunc(names, func(name string) bool { return name == "gone" || name == "left" })
			if tc.refusal != "" {
				if text := diag.Describe(diags); strings.Count(text, tc.refusal) != 1 {
					t.Errorf("got %q, want %q in it once", text, tc.refusal)
				}
				return
			}
			if diag.HasErrors(diags) {
				t.Fatalf("%+v", diags)
			}
			if slices.Index(got, "a") > slices.Index(got, "b") || len(got) != len(tc.want) {
				t.Errorf("got %v, want a before b", got)
			}
			e.w.ConfigReads = 0
			all := plannerOf(e.w).ProviderConfigs(t.Context(), e.w.Plan())
			for _, r := range e.added {
				if err := nodeOf(e.w.Plan(), r, nil).configure(all); err != nil {
					t.Fatal(err)
				}
			}
			if reads := e.w.ConfigReads; reads > 2 {
				t.Errorf("%d ProviderConfigs were read for two names", reads)
			}
		})
	}
	t.Run("what was made with it goes first", func(t *testing.T) {
		e := newEstate(t, "b", "a")
		maps.Copy(e.w.ProviderConfigs, map[string]*v1alpha1.ProviderConfig{"team/inner": configs["inner"]})
		po := e.w.Plan()
		po.Spec.Destroy = true
		rec := e.w.Instance(e.added[0])
		rec.ProviderConfig = "inner"
		n := nodeOf(po, e.added[0], rec)
		if err := n.configure(plannerOf(e.w).ProviderConfigs(t.Context(), po)); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff([]lang.Address{{Type: "test_thing", Name: "a"}}, n.requires); diff != "" {
			t.Errorf("requires (-want +got):\n%s", diff)
		}
	})
}

// TestSurveyLeavesOutWhatWaits wants a survey to leave out an object that refers to an output of a Module which waits, and what depends
// on the object. A destroy has them.
func TestSurveyLeavesOutWhatWaits(t *testing.T) {
	w := activitiestest.NewWorld(t)
	w.Config(nil)
	w.Put("test-thing/a", map[string]any{"uses": "${module.shop.out}"}, nil)
	w.Put("test-thing/b", map[string]any{"uses": "${test_thing.a.id}"}, nil)
	w.Put("test-thing/c", map[string]any{"uses": "x"}, nil)
	for want, specs := range map[int][]v1alpha1.PlanSpec{1: {{}}, 3: {{Destroy: true}, {RefreshOnly: true}}} {
		for _, spec := range specs {
			view, err := w.Index.View(t.Context(), "team")
			if err != nil {
				t.Fatal(err)
			}
			view.OverlayModule(&resourceset.Module{Owner: resourceset.Owner{Namespace: "team", Name: "shop"}, Outputs: map[string]*resourceset.Output{"out": {Waits: "its for_each depends on test_thing.c"}}})
			view.ExpandReferences()
			po := w.Plan()
			po.Spec = spec
			o := newOutline(view, po, plannerOf(w).ProviderConfigs(t.Context(), po), w.Catalog, func([]lang.Reference) bool { return false })
			m, err := newMembers(newVersions(o), newTargets(o.entries, o.spec, nil))
			if err != nil {
				t.Fatal(err)
			}
			if slot, _ := view.Slot(lang.Address{Type: "test_thing", Name: "c"}); m.inScope != want || !m.member[slot] {
				t.Errorf("%+v has %d objects in scope, want %d", spec, m.inScope, want)
			}
		}
	}
}
