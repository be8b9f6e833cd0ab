package activities

import (
	"maps"
	"slices"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"

	"github.com/google/go-cmp/cmp"
)

// target makes and applies a plan for one resource and its dependencies.
func (g *scenario) target(address string) {
	g.T.Helper()
	g.spec = v1alpha1.PlanSpec{Targets: []string{address}}
	g.resume(g.newRun())
	g.spec = v1alpha1.PlanSpec{}
}

// TestADefaultPlanVisitsDependants has cases that a default plan once omitted, each with the changes that it must have.
func TestADefaultPlanVisitsDependants(t *testing.T) {
	edited := func(g *scenario) { g.put("test-server/a", m{"name": "a", "size": "2"}, nil) }
	for name, tc := range map[string]struct {
		before, change func(g *scenario)
		want           []string
	}{
		"what a legacy provider made otherwise": {
			before: func(g *scenario) { g.put("test-legacy/w", m{"name": "w", "size": "3!"}, nil) },
			want:   []string{"test_legacy.w"},
		},
		"an edit of the ProviderConfig": {
			before: func(g *scenario) { g.put("test-server/b", m{"name": "b"}, m{"providerConfig": "p"}) },
			change: func(g *scenario) { g.configure("p", "z2") },
			want:   []string{"test_server.b"},
		},
		"another ProviderConfig": {
			before: func(g *scenario) { g.put("test-server/b", m{"name": "b"}, nil) },
			change: func(g *scenario) { g.configure("default", "z2") },
			want:   []string{"test_server.a", "test_server.b"},
		},
		"a ConfigMap, through the ProviderConfig": {
			before: func(g *scenario) {
				g.configure("p", "${configmap.cm.k}")
				g.put("test-server/b", m{"name": "b"}, m{"providerConfig": "p"})
			},
			change: func(g *scenario) { g.Data["configmaps/team/cm"]["k"] = []byte("2") },
			want:   []string{"test_server.b"},
		},
		"what a target left, through the ProviderConfig": {
			before: func(g *scenario) {
				g.configure("p", "${test_server.a.size}")
				g.put("test-server/b", m{"name": "b"}, m{"providerConfig": "p"})
			},
			change: func(g *scenario) {
				edited(g)
				g.target("test_server.a")
			},
			want: []string{"test_server.b"},
		},
		"what a target left, through an ephemeral resource": {
			before: func(g *scenario) {
				g.put("ephemeral-test-token/t", m{"audience": "${test_server.a.size}"}, nil)
				g.put("test-server/b", m{"name": "b", "key": "${ephemeral.test_token.t.value}"}, nil)
			},
			change: func(g *scenario) {
				edited(g)
				g.target("test_server.a")
			},
			want: []string{"test_server.b"},
		},
		"what a target left, through an ephemeral resource of the ProviderConfig": {
			before: func(g *scenario) {
				g.put("ephemeral-test-token/t", m{"audience": "${test_server.a.size}"}, nil)
				g.configure("p", "${ephemeral.test_token.t.value}")
				g.put("test-server/b", m{"name": "b"}, m{"providerConfig": "p"})
			},
			change: func(g *scenario) {
				edited(g)
				g.target("test_server.a")
			},
			want: []string{"test_server.b"},
		},
		"an edit of an ephemeral resource": {
			before: func(g *scenario) {
				g.put("ephemeral-test-token/t", m{"audience": "x"}, nil)
				g.put("test-server/b", m{"name": "b", "key": "${ephemeral.test_token.t.value}"}, nil)
			},
			change: func(g *scenario) { g.put("ephemeral-test-token/t", m{"audience": "y"}, nil) },
			want:   []string{"test_server.b"},
		},
		"a ConfigMap, through an ephemeral resource": {
			before: func(g *scenario) {
				g.put("ephemeral-test-token/t", m{"audience": "${configmap.cm.k}"}, nil)
				g.put("test-server/b", m{"name": "b", "key": "${ephemeral.test_token.t.value}"}, nil)
			},
			change: func(g *scenario) { g.Data["configmaps/team/cm"]["k"] = []byte("2") },
			want:   []string{"test_server.b"},
		},
		"another version of the provider": {
			before: func(g *scenario) { g.put("test-server/b", m{"name": "b"}, nil) },
			change: func(g *scenario) {
				e := catalog.Entry{Name: "test", Schema: scenarioSchema()}
				e.Package.Version = "2"
				g.Catalog.Put(e)
				g.backend.region = "eu"
			},
			want: []string{"test_server.a", "test_server.b"},
		},
		"what is no secret any more": {
			before: func(g *scenario) {
				g.put("test-server/a", m{"name": "a", "size": "${secret.s.k}"}, nil)
				g.put("test-server/b", m{"name": "b", "size": "${test_server.a.size}"}, nil)
			},
			change: func(g *scenario) {
				g.put("test-server/a", m{"name": "a", "size": "1"}, nil)
				g.target("test_server.a")
			},
			want: []string{"test_server.b"},
		},
		"an edit that the cloud came before, as long as that is not recorded": {
			before: func(g *scenario) {},
			change: func(g *scenario) {
				edited(g)
				for _, thing := range g.backend.things {
					thing["size"] = "2"
				}
				g.resume(g.newRun())
			},
			want: []string{"test_server.a"},
		},
		"what refers to something that drifted, and was not recorded": {
			before: func(g *scenario) { g.put("test-server/b", m{"name": "b", "size": "7"}, nil) },
			change: func(g *scenario) {
				for _, thing := range g.backend.things {
					if thing["name"] == "a" {
						thing["etag"] = "7"
					}
				}
				g.put("test-server/b", m{"name": "b", "size": "${test_server.a.etag}"}, nil)
				g.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll}
				g.until(g.newRun(), approving)
			},
			want: []string{"test_server.b"},
		},
		"drift that was accepted while another plan was made": {
			before: func(g *scenario) { g.put("test-server/b", m{"name": "b", "size": "${test_server.a.size}"}, nil) },
			change: func(g *scenario) {
				g.put("test-server/b", m{"name": "b", "size": "1"}, nil)
				run := g.newRun()
				g.until(run, publishing)
				for _, thing := range g.backend.things {
					if thing["name"] == "b" {
						thing["size"] = "7"
					}
				}
				g.spec = v1alpha1.PlanSpec{RefreshOnly: true}
				g.resume(g.newRun())
				g.spec = v1alpha1.PlanSpec{}
				g.resume(run)
			},
			want: []string{"test_server.b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newScenario(t)
			g.Data["configmaps/team/cm"] = map[string][]byte{"k": []byte("1")}
			g.Data["secrets/team/s"] = map[string][]byte{"k": []byte("1")}
			g.configure("p", "z1")
			g.put("test-server/a", m{"name": "a", "size": "1"}, nil)
			tc.before(g)
			g.resume(g.newRun())
			if tc.change != nil {
				tc.change(g)
			}
			changed, all := g.both()
			if got := slices.Sorted(maps.Keys(all.does)); !slices.Equal(got, tc.want) {
				t.Errorf("a full plan is about %v, want %v", got, tc.want)
			}
			if diff := cmp.Diff(all.does, changed.does); diff != "" {
				t.Errorf("a full plan does (-), a default plan does (+)\n%s", diff)
			}
		})
	}
}
