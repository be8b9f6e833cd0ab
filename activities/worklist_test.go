package activities

import (
	"maps"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
)

// TestAPlanFollowsValues plans an estate around the resource a. A plan visits a dependant only if a value that the
// dependant refers to is new or unknown. It does what a full plan does, and after its apply no resource is left to
// visit.
func TestAPlanFollowsValues(t *testing.T) {
	a := func(size string) m { return m{"name": "a", "size": size} }
	refers := func(name, value string) m { return m{"name": name, "size": value} }
	for name, tc := range map[string]struct {
		// before makes the applied objects. change is the edit; nil means another size of a.
		before, change func(g *scenario)
		// visits are the resources and data sources that the plan visits, and does those that it changes.
		visits, does []string
		// after lists the changes for which a change must wait, by its address.
		after map[string][]string
	}{
		"a value without references": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "${test_server.a.id}"), nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
			},
			visits: []string{"test_server.a"}, does: []string{"test_server.a"},
		},
		"a value, and on from there": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "${test_server.a.size}"), nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
				g.put("test-server/d", refers("d", "${test_server.b.name}"), nil)
			},
			visits: []string{"test_server.a", "test_server.b", "test_server.c"}, does: []string{"test_server.a", "test_server.b", "test_server.c"},
			after: map[string][]string{"test_server.b": {"test_server.a"}, "test_server.c": {"test_server.b"}},
		},
		"a value that makes no difference": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "${length(test_server.a.size)}"), nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
			},
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a"},
		},
		"an unknown value": {
			before: func(g *scenario) { g.put("test-server/b", refers("b", "${test_server.a.etag}"), nil) },
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a", "test_server.b"},
		},
		"an unknown value that turns out to be the same": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", `${test_server.a.etag == null ? "0" : "1"}`), nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
				g.put("test-server/d", refers("d", "${test_server.b.etag}"), nil)
				g.put("test-server/e", refers("e", "${length(jsonencode(test_server.b))}"), nil)
				g.put("test-server/f", refers("f", "${test_server.b.size}"), m{"ignoreChanges": []any{"size"}})
				g.put("test-server/g", refers("g", "${test_server.b.id}"), nil)
			},
			visits: []string{"test_server.a", "test_server.b", "test_server.c", "test_server.d", "test_server.e", "test_server.f"},
			does:   []string{"test_server.a", "test_server.b", "test_server.c", "test_server.d", "test_server.e"},
		},
		"an unknown value of a legacy provider that turns out to be the same": {
			before: func(g *scenario) {
				g.put("test-legacy/b", refers("b", `${test_server.a.etag == null ? "0" : "1"}`), nil)
				g.put("test-server/c", refers("c", "${test_legacy.b.size}"), nil)
			},
			visits: []string{"test_legacy.b", "test_server.a", "test_server.c"}, does: []string{"test_legacy.b", "test_server.a", "test_server.c"},
		},
		"an unknown value of a data source that turns out to be the same": {
			before: func(g *scenario) {
				g.put("data-test-image/d", m{"of": `${test_server.a.etag == null ? "0" : "1"}`}, nil)
				g.put("test-server/b", refers("b", "${data.test_image.d.text}"), nil)
				g.put("test-server/c", refers("c", "${length(jsonencode(data.test_image.d))}"), nil)
			},
			visits: []string{"data.test_image.d", "test_server.a", "test_server.b", "test_server.c"},
			does:   []string{"data.test_image.d", "test_server.a", "test_server.b", "test_server.c"},
		},
		"a replacement": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "${test_server.a.size}"), nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
			},
			change: func(g *scenario) { g.put("test-server/a", m{"name": "other", "size": "1"}, nil) },
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a"},
		},
		"a whole object": {
			before: func(g *scenario) { g.put("test-server/b", refers("b", "${length(jsonencode(test_server.a))}"), nil) },
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a", "test_server.b"},
		},
		"lifecycle.dependsOn, which refers to no value": {
			before: func(g *scenario) { g.put("test-server/b", refers("b", "1"), m{"dependsOn": []any{"test_server.a"}}) },
			visits: []string{"test_server.a"}, does: []string{"test_server.a"},
		},
		"lifecycle.replaceTriggeredBy": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "1"), m{"replaceTriggeredBy": []any{"test_server.a"}})
				g.put("test-server/c", refers("c", "1"), m{"replaceTriggeredBy": []any{"test_server.a.size"}})
				g.put("test-server/d", refers("d", "1"), m{"replaceTriggeredBy": []any{"test_server.a.id"}})
			},
			visits: []string{"test_server.a", "test_server.b", "test_server.c"}, does: []string{"test_server.a", "test_server.b", "test_server.c"},
		},
		"a precondition": {
			before: func(g *scenario) {
				of := func(value string) m {
					return m{"preconditions": []any{m{"condition": "${" + value + ` != "9"}`, "errorMessage": "not nine"}}}
				}
				g.put("test-server/b", refers("b", "1"), of("test_server.a.size"))
				g.put("test-server/c", refers("c", "1"), of("test_server.a.id"))
			},
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a"},
		},
		"an ephemeral resource": {
			before: func(g *scenario) {
				g.put("ephemeral-test-token/t", m{"audience": "${test_server.a.size}"}, nil)
				g.put("test-server/b", m{"name": "b", "key": "${ephemeral.test_token.t.value}"}, nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
			},
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a", "test_server.b"},
		},
		"the ProviderConfig": {
			before: func(g *scenario) {
				g.configure("p", "${test_server.a.size}")
				g.put("test-server/b", refers("b", "1"), m{"providerConfig": "p"})
				g.configure("q", "${test_server.a.id}")
				g.put("test-server/c", refers("c", "1"), m{"providerConfig": "q"})
			},
			visits: []string{"test_server.a", "test_server.b"}, does: []string{"test_server.a", "test_server.b"},
		},
		"a data source with another result": {
			before: func(g *scenario) {
				g.put("data-test-image/d", m{"of": "${test_server.a.size}"}, nil)
				g.put("test-server/b", refers("b", "${data.test_image.d.text}"), nil)
			},
			visits: []string{"data.test_image.d", "test_server.a", "test_server.b"}, does: []string{"data.test_image.d", "test_server.a", "test_server.b"},
			after: map[string][]string{"data.test_image.d": {"test_server.a"}},
		},
		"a data source with the same result": {
			before: func(g *scenario) {
				g.put("data-test-image/d", m{"of": "x"}, nil)
				g.put("test-server/b", refers("b", "${data.test_image.d.text}"), nil)
			},
			visits: []string{"data.test_image.d", "test_server.a"}, does: []string{"test_server.a"},
		},
		"a change behind a resource that the plan passes by": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "${test_server.a.id}"), nil)
				g.put("test-server/c", refers("c", "${test_server.b.size}"), nil)
				g.put("test-server/d", m{"name": "d", "size": "1", "uses": "${test_server.c.id}"}, nil)
			},
			change: func(g *scenario) {
				g.put("test-server/a", a("2"), nil)
				g.put("test-server/d", m{"name": "d", "size": "2", "uses": "${test_server.c.id}"}, nil)
			},
			visits: []string{"test_server.a", "test_server.d"}, does: []string{"test_server.a", "test_server.d"},
			after: map[string][]string{"test_server.d": {"test_server.a"}},
		},
		"a change behind a resource that the plan reaches": {
			before: func(g *scenario) {
				g.put("test-server/b", refers("b", "${test_server.a.size}"), nil)
				g.put("test-server/c", m{"name": "c", "size": "1", "uses": "${test_server.b.id}"}, nil)
			},
			change: func(g *scenario) {
				g.put("test-server/a", a("2"), nil)
				g.put("test-server/c", m{"name": "c", "size": "2", "uses": "${test_server.b.id}"}, nil)
			},
			visits: []string{"test_server.a", "test_server.b", "test_server.c"}, does: []string{"test_server.a", "test_server.b", "test_server.c"},
			after: map[string][]string{"test_server.c": {"test_server.b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newScenario(t)
			g.put("test-server/a", a("1"), nil)
			tc.before(g)
			g.resume(g.newRun())
			if tc.change == nil {
				tc.change = func(g *scenario) { g.put("test-server/a", a("2"), nil) }
			}
			tc.change(g)
			changed, all := g.both()
			if diff := cmp.Diff(tc.visits, slices.Sorted(maps.Keys(changed.visited))); diff != "" {
				t.Errorf("visits (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.does, slices.Sorted(maps.Keys(changed.does))); diff != "" {
				t.Errorf("does (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(all.does, changed.does); diff != "" {
				t.Errorf("a full plan does (-), a default plan does (+)\n%s", diff)
			}
			for address, want := range tc.after {
				if diff := cmp.Diff(want, changed.deps[address]); diff != "" {
					t.Errorf("%s waits for (-want +got):\n%s", address, diff)
				}
			}
			g.resume(g.newRun())
			rest := g.planWith("Changed")
			for address := range rest.visited {
				if address != "data.test_image.d" {
					t.Errorf("the next plan visits %s", address)
				}
			}
		})
	}
}

// TestAPlanChecksTheRightsToWhatItReaches forbids the requester to read b, which refers to a. Only a plan that reaches
// b needs that right.
func TestAPlanChecksTheRightsToWhatItReaches(t *testing.T) {
	for attribute, fails := range map[string]bool{"id": false, "size": true} {
		g := newScenario(t)
		g.put("test-server/a", m{"name": "a", "size": "1"}, nil)
		g.put("test-server/b", m{"name": "b", "size": "${test_server.a." + attribute + "}"}, nil)
		g.resume(g.newRun())
		g.put("test-server/a", m{"name": "a", "size": "2"}, nil)
		g.Forbidden, g.compares = map[string]bool{"team/test-servers/b": true}, false
		po := g.until(g.newRun(), approving)
		if po.PlanFailed() != fails {
			t.Errorf("b refers to %s: the plan failed: %t; %v", attribute, po.PlanFailed(), po.Status.Diagnostics)
		}
		missing := slices.ContainsFunc(po.Status.Diagnostics, func(d v1alpha1.Diagnostic) bool { return d.Summary == "Missing rights" })
		if missing != fails {
			t.Errorf("b refers to %s: %v", attribute, po.Status.Diagnostics)
		}
	}
}
