package activities

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/provider/protocol"
	"github.com/hykube/hykube/internal/schema"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// moody is a provider that answers each question with other values: the hash of an imported password, the planned tag of a blob,
// and the time of a data source. It notes what it was asked.
type moody struct {
	*sharedIDs
	clock *schema.Schema

	mu    sync.Mutex // guards the following fields during the calls
	asked map[string]int
	said  int
}

// note notes a question, and returns the number of questions so far.
func (p *moody) note(question, typ string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == nil {
		p.asked = map[string]int{}
	}
	p.asked[question+" "+typ]++
	p.said++
	return p.said
}

func (p *moody) ReadResource(ctx context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	p.note("read", r.TypeName)
	return p.sharedIDs.ReadResource(ctx, r)
}

func (p *moody) ImportResourceState(ctx context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	p.note("import", r.TypeName)
	return p.sharedIDs.ImportResourceState(ctx, r)
}

func (p *moody) PlanResourceChange(ctx context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	said := p.note("plan", r.TypeName)
	resp, err := p.sharedIDs.PlanResourceChange(ctx, r)
	if err == nil && r.TypeName == "test_blob" {
		vals := p.value(r.TypeName, resp.PlannedState).AsValueMap()
		vals["etag"] = cty.StringVal(fmt.Sprint("tag-", said))
		resp.PlannedState = p.wire(r.TypeName, cty.ObjectVal(vals))
	}
	return resp, err
}

func (p *moody) ValidateDataResourceConfig(context.Context, *tfprotov6.ValidateDataResourceConfigRequest) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	return &tfprotov6.ValidateDataResourceConfigResponse{}, nil
}

func (p *moody) ReadDataSource(_ context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	said := p.note("look at", r.TypeName)
	state, err := schema.Encode(cty.ObjectVal(map[string]cty.Value{"now": cty.StringVal(fmt.Sprint("time-", said))}), p.clock.Block.ImpliedType())
	return &tfprotov6.ReadDataSourceResponse{State: state}, err
}

// newMoody returns a scenario with the provider, which is called as a plugin is.
func newMoody(t *testing.T) (*crashScenario, *moody) {
	sc, inner := newSharedIDs(t, contain.Grants{})
	p := &moody{sharedIDs: inner, clock: &schema.Schema{Block: &schema.Block{Attributes: []*schema.Attribute{{Name: "now", Type: cty.String, Computed: true}}}}}
	installMoody(sc, p, "1.0.0")
	sc.zone("ours")
	client := served(t, p)
	sc.provides = func(provider.Configuration) tfprotov6.ProviderServer { return client }
	return sc, p
}

// installMoody installs a version of the provider.
func installMoody(sc *crashScenario, p *moody, version string) {
	of := sharedIDsSchema()
	of.DataSources = map[string]*schema.Schema{"test_clock": p.clock}
	of.Config.Block.Attributes = []*schema.Attribute{{Name: "zone", Type: cty.String, Optional: true}}
	sc.Catalog.Put(catalog.Entry{Name: "test", Schema: of, Package: provider.Package{Version: version}})
}

// served returns a client of a provider that is served as a plugin serves it.
func served(t *testing.T, p tfprotov6.ProviderServer) *protocol.Client {
	t.Helper()
	server, listener := grpc.NewServer(), bufconn.Listen(1<<20)
	plugin := &tf6server.GRPCProviderPlugin{Name: "test", GRPCProvider: func() tfprotov6.ProviderServer { return p }}
	if err := plugin.GRPCServer(nil, server); err != nil {
		t.Fatal(err)
	}
	go server.Serve(listener) //nolint:errcheck // Stop ends it
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client, err := protocol.New(conn, 6)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// shows makes a speculative plan of objects of each kind.
func (sc *crashScenario) shows(p *moody) *v1alpha1.Plan {
	sc.T.Helper()
	sc.put("test-stamp/b", m{"at": "t"}, nil)
	sc.apply()
	sc.put("test-password/a", m{"length": "9"}, imports("secretpw1"))
	sc.put("test-blob/c", m{"bucket": "x", "key": "y"}, nil)
	sc.put("data-test-clock/d", m{}, nil)
	late := providerConfig("team", "${test_blob.c.id}") // it is not known before the apply
	late.Name = "late"
	sc.ProviderConfigs["team/late"] = late
	sc.put("test-blob/e", m{"bucket": "x", "key": "z"}, m{"providerConfig": "late"})
	p.asked = map[string]int{}
	sc.spec = v1alpha1.PlanSpec{Speculative: true, Refresh: v1alpha1.RefreshAll}
	run := sc.newRun()
	sc.plans.change(run.Name, func(po *v1alpha1.Plan) { po.CreationTimestamp = metav1.Now() })
	return sc.until(run, approving)
}

// TestAPlanTakesOverTheAnswersThatTheUserSaw makes a speculative plan, and then the plan of the recorded objects. The provider
// never answers twice alike. Only with the answers to the speculative plan, the second plan has the contents of the first, and it asks
// only about what has changed.
func TestAPlanTakesOverTheAnswersThatTheUserSaw(t *testing.T) {
	all := []string{"import test_password", "look at test_clock", "plan test_blob", "plan test_password", "plan test_stamp", "read test_password", "read test_stamp"}
	for name, tc := range map[string]struct {
		// before changes the world between the plans, and shown the speculative plan.
		before func(*crashScenario, *moody)
		shown  func(*v1alpha1.Plan)
		none   bool
		same   bool
		// asks are the questions of the second plan.
		asks []string
	}{
		"the same":                        {same: true},
		"without the answers":             {none: true, asks: all},
		"a plan of another user":          {shown: func(po *v1alpha1.Plan) { po.Status.RequestedBy = &v1alpha1.Identity{Username: "bob"} }, asks: all},
		"an old plan":                     {shown: func(po *v1alpha1.Plan) { po.CreationTimestamp.Time = time.Now().Add(-2 * time.Hour) }, asks: all},
		"a recorded plan":                 {shown: func(po *v1alpha1.Plan) { po.Spec.Speculative = false }, asks: all},
		"another version":                 {before: func(sc *crashScenario, p *moody) { installMoody(sc, p, "1.0.1") }, asks: all},
		"other arguments":                 {before: func(sc *crashScenario, _ *moody) { sc.zone("theirs") }, asks: all},
		"a Secret with the same argument": {same: true, before: func(sc *crashScenario, _ *moody) { sc.zoneOfSecret("ours") }},
		"a Secret with another argument":  {before: func(sc *crashScenario, _ *moody) { sc.zoneOfSecret("theirs") }, asks: all},
		"a killed server":                 {same: true, before: func(sc *crashScenario, _ *moody) { sc.restart() }},
		"another import": {asks: []string{"import test_password", "plan test_password", "read test_password"},
			before: func(sc *crashScenario, _ *moody) { sc.put("test-password/a", m{"length": "9"}, imports("secretpw2")) }},
		"another spec": {asks: []string{"plan test_blob"},
			before: func(sc *crashScenario, _ *moody) { sc.put("test-blob/c", m{"bucket": "x", "key": "other"}, nil) }},
		"another state": {same: true, asks: []string{"plan test_stamp", "read test_stamp"}, before: func(sc *crashScenario, _ *moody) {
			rec := sc.recordOf("test-stamp/b")
			rec.Private = []byte("other")
			if err := sc.Ledger.Save(sc.T.Context(), rec); err != nil {
				sc.T.Fatal(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			sc, p := newMoody(t)
			shown := sc.shows(p)
			if d := cmp.Diff(all, slices.Sorted(maps.Keys(p.asked))); d != "" || shown.Status.Contents == "" {
				t.Fatalf("questions of the speculative plan, %s (-want +got):\n%s", sc.said(shown), d)
			}
			if tc.shown != nil {
				sc.plans.change(shown.Name, tc.shown)
			}
			if tc.before != nil {
				tc.before(sc, p)
			}
			sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll, Shown: &v1alpha1.PlanReference{Name: shown.Name, UID: shown.UID}}
			if tc.none {
				sc.spec.Shown = nil
			}
			p.asked = map[string]int{}
			po := sc.until(sc.newRun(), approving)
			if same := po.Status.Contents == shown.Status.Contents; same != tc.same || po.Status.Contents == "" {
				t.Errorf("the contents are equal: %t, want %t: %s", same, tc.same, sc.said(po))
			}
			if d := cmp.Diff(tc.asks, slices.Sorted(maps.Keys(p.asked))); d != "" {
				t.Errorf("questions (-want +got):\n%s", d)
			}
		})
	}
}

// TestAServerIsKilledDuringThePlanOfWhatTheUserSaw kills the server at each point of the second plan. The plan has what the user saw,
// and asks nothing.
func TestAServerIsKilledDuringThePlanOfWhatTheUserSaw(t *testing.T) {
	for at, reached := 1, true; reached; at++ {
		sc, p := newMoody(t)
		shown := sc.shows(p)
		sc.spec = v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshAll, Shown: &v1alpha1.PlanReference{Name: shown.Name, UID: shown.UID}}
		p.asked = nil
		sc.injector.seen, sc.injector.at = 0, at
		po := sc.until(sc.newRun(), approving)
		reached = sc.injector.seen >= at
		sc.injector.at = 0
		if po.Status.Contents != shown.Status.Contents || len(p.asked) > 0 {
			t.Errorf("killed at %d: it asks %v, and says %s", at, p.asked, sc.said(po))
		}
	}
}
