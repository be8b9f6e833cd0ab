package conformance

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/tests/conformance/cloud"
)

func TestDataSource(t *testing.T) {
	t.Parallel()
	made := about(t, shared["conform6"], "conform6_thing")
	made.create(attrs{"note": "n"})
	l := shared["conform6"].lease(t)
	d := instance.NewDataSource(l.Schema, "conform6_lookup")
	d.Provider = l
	d.Meta = cty.ObjectVal(map[string]cty.Value{"module": cty.StringVal("data")})
	config := func(set attrs) cty.Value {
		all := attrs{"name": made.name}
		for k, v := range set {
			all[k] = v
		}
		return object(t, d.Schema.Block, all)
	}
	for name, tc := range map[string]struct {
		reason  string
		set     attrs
		refused string
	}{
		"4.2 read":               {"the answer of the provider", nil, ""},
		"4.2 provider's error":   {"the whole error", attrs{"name": "nobody"}, "No such thing"},
		"4.2 unknown answer":     {"what was read is known", attrs{"behaviour": "data-unknown"}, "unknown values"},
		"4.2 null answer":        {"a data source that finds nothing says so", attrs{"behaviour": "data-null"}, "nothing"},
		"4.2 another type":       {"it must fit", attrs{"behaviour": "data-misfit"}, "does not fit its schema"},
		"4.2 unknown config":     {"it is read at apply then", attrs{"name": cty.UnknownVal(cty.String)}, "not known yet"},
		"4.2 put off":            {"we did not say that we can handle it", attrs{"behaviour": "data-deferred"}, "did not allow that"},
		"4.2 value not as asked": {"config comes back as it went", attrs{"behaviour": "data-not-config"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			v, _, err := d.Read(t.Context(), config(tc.set))
			if refused(t, err, tc.refused); err == nil {
				same(t, "note", v.GetAttr("note"), cty.StringVal("n"))
			}
		})
	}
	for _, c := range made.calls("ReadDataSource") {
		if c.Detail != "module: data" {
			t.Errorf("4.2: provider_meta of a data source: %s", c.Detail)
		}
	}
	t.Run("4.2 put off with our leave", func(t *testing.T) {
		capable := d
		capable.Deferral = true
		_, _, err := capable.Read(t.Context(), config(attrs{"behaviour": "data-deferred"}))
		deferredFor(t, err, "absent_prereq")
	})
	t.Run("4.2 planned before it can be read", func(t *testing.T) {
		v := d.Unread(config(nil))
		same(t, "name", v.GetAttr("name"), cty.StringVal(made.name))
		if v.GetAttr("id").IsKnown() || v.GetAttr("note").IsKnown() || !v.GetAttr("behaviour").IsNull() {
			t.Errorf("planned as %#v", v)
		}
	})
	t.Run("4.2 of protocol 5", func(t *testing.T) {
		s := about(t, shared["conform5"], "conform5_thing")
		s.create(attrs{"note": "n"})
		d := instance.NewDataSource(s.lease.Schema, "conform5_lookup")
		d.Provider = s.lease
		v, _, err := d.Read(t.Context(), object(t, d.Schema.Block, attrs{"name": s.name}))
		must(t, err)
		same(t, "note", v.GetAttr("note"), cty.StringVal("n"))
	})
}

func TestList(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{})
	s := about(t, w, "conform6_thing")
	for i := range 3 {
		must(t, w.cloud.Put("conform6_thing", fmt.Sprintf("net-%d", i), cloud.Object{"id": fmt.Sprintf("net-%d", i), "name": "net", "note": "n"}))
	}
	l := instance.List{Name: "conform6_thing", Type: &s.Type, Schema: s.lease.Schema.ListResources["conform6_thing"], Provider: s.lease}
	for name, tc := range map[string]struct {
		reason  string
		set     attrs
		limit   int64
		want    []string
		warned  bool
		refused string
	}{
		"4.2 all":            {"no limit", nil, 0, []string{"net-0", "net-1", "net-2"}, false, ""},
		"4.2 some":           {"as configured", attrs{"prefix": "net-1"}, 0, []string{"net-1"}, false, ""},
		"4.2 limit":          {"honoured although the provider goes on", attrs{"behaviour": "list-endless"}, 5, []string{"net-0", "net-1", "net-2", "net-0", "net-0"}, false, ""},
		"4.2 warning":        {"may come without an identity", attrs{"prefix": "net-2", "behaviour": "list-warning"}, 0, []string{"net-2"}, true, ""},
		"4.2 error":          {"ends the list", attrs{"behaviour": "list-error", "prefix": "net-2"}, 0, []string{"net-2"}, false, "Broken"},
		"4.2 unknown config": {"it must be known", attrs{"prefix": cty.UnknownVal(cty.String)}, 0, nil, false, "not known yet"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			var last error
			warnings := false
			for f, err := range l.Query(t.Context(), object(t, l.Schema.Block, tc.set), tc.limit, true) {
				last = err
				warnings = warnings || warned(f.Diagnostics)
				if err == nil && f.Identity != cty.NilVal {
					got = append(got, f.Identity.GetAttr("id").AsString())
					same(t, "resource", f.Resource.GetAttr("note"), cty.StringVal("n"))
				}
			}
			refused(t, last, tc.refused)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, d)
			}
			if warnings != tc.warned {
				t.Errorf("warned is %t, want %t", warnings, tc.warned)
			}
		})
	}
	t.Run("4.2 the stream of a limit is ended", func(t *testing.T) {
		// Three of the lists reached the provider's stream, and were read to their end or cut off.
		await(t, "the lists to end", func() bool {
			return len(w.calls(t, "ListResourceEnded", "")) == len(w.calls(t, "ListResource", ""))
		})
	})
}

func TestAction(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{})
	l := w.lease(t)
	a := instance.Action{Name: "conform6_reboot", Schema: l.Schema.Actions["conform6_reboot"], Provider: l}
	config := func(behaviour string) cty.Value {
		return object(t, a.Schema.Block, attrs{"name": "x", "behaviour": behaviour})
	}
	t.Run("4.2 plan", func(t *testing.T) {
		_, err := a.Plan(t.Context(), config(""))
		must(t, err)
		_, err = a.Plan(t.Context(), object(t, a.Schema.Block, attrs{"name": cty.UnknownVal(cty.String)}))
		must(t, err)
		_, err = a.Plan(t.Context(), config("plan-error"))
		refused(t, err, "Can't plan")
		_, err = a.Plan(t.Context(), config("action-deferred"))
		refused(t, err, "did not allow that")
	})
	for name, tc := range map[string]struct{ reason, behaviour, refused string }{
		"4.2 invoke":          {"progress, then the end", "", ""},
		"4.2 error":           {"the provider's own", "invoke-error", "Can't reboot"},
		"4.2 never completed": {"the effect is unknown", "never-completed", "did not report completion"},
		"4.2 killed":          {"the effect is unknown", "invoke-crash", "ended"},
	} {
		t.Run(name, func(t *testing.T) {
			// These run one after the other, because the last one ends the process.
			a := a
			a.Provider = w.lease(t)
			var heard []string
			_, err := a.Invoke(t.Context(), config(tc.behaviour), func(m string) { heard = append(heard, m) })
			refused(t, err, tc.refused)
			if tc.behaviour == "invoke-crash" {
				return // the number of results before the end is not determined
			}
			if d := cmp.Diff([]string{"half way", "nearly there"}, heard); d != "" {
				t.Errorf("progress (-want +got):\n%s", d)
			}
		})
	}
	t.Run("4.2 unknown config", func(t *testing.T) {
		_, err := a.Invoke(t.Context(), object(t, a.Schema.Block, attrs{"name": cty.UnknownVal(cty.String)}), nil)
		refused(t, err, "not known yet")
	})
}

func TestFunction(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, "conform6", cloud.Options{})
	l := w.lease(t)
	lent := func(context.Context) (tfprotov6.ProviderServer, func(), error) { return l, func() {}, nil }
	join := instance.Functions("conform6", l.Schema, lent)["provider::conform6::join"]
	str := cty.StringVal
	v, err := join.Call([]cty.Value{str("-"), str("a"), cty.NullVal(cty.String), str("b")})
	must(t, err)
	same(t, "4.2: join", v, str("a-b"))
	_, err = join.Call([]cty.Value{str("-"), str("fail")})
	refused(t, err, "this part is refused")
	before := len(w.calls(t, "CallFunction", ""))
	v, err = join.Call([]cty.Value{str("-"), cty.UnknownVal(cty.String)})
	must(t, err)
	if v.IsKnown() || len(w.calls(t, "CallFunction", "")) != before {
		t.Error("4.2: a function that takes no unknown values is called with one")
	}
	if _, err = join.Call([]cty.Value{cty.NullVal(cty.String), str("a")}); err == nil {
		t.Error("4.2: a parameter that takes no null took one")
	}
	v, err = instance.Functions("conform6", l.Schema, nil)["provider::conform6::join"].Call([]cty.Value{str("-"), str("a")})
	must(t, err)
	if v.IsKnown() {
		t.Error("4.2: a signature alone knows a result")
	}
}
