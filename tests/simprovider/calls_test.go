package simprovider_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/tests/simcloud"
	"github.com/hykube/hykube/tests/simprovider"
)

// The tests below call the provider's other services, besides resources and data sources, as the protocol defines them.

func (w *wire) identity(region, id string) *tfprotov6.ResourceIdentityData {
	w.t.Helper()
	ty := cty.Object(map[string]cty.Type{"region": cty.String, "id": cty.String})
	v := vals{"region": cty.NullVal(cty.String), "id": str(id)}
	if region != "" {
		v["region"] = str(region)
	}
	d, err := schema.Encode(cty.ObjectVal(v), ty)
	if err != nil {
		w.t.Fatal(err)
	}
	return &tfprotov6.ResourceIdentityData{IdentityData: d}
}

func (w *wire) wantIdentity(what string, got *tfprotov6.ResourceIdentityData, region, id string) {
	w.t.Helper()
	if got == nil {
		w.t.Fatalf("%s tells no identity", what)
	}
	v, err := schema.Decode(got.IdentityData, cty.Object(map[string]cty.Type{"region": cty.String, "id": cty.String}))
	if err != nil {
		w.t.Fatal(err)
	}
	if want := cty.ObjectVal(vals{"region": str(region), "id": str(id)}); !v.RawEquals(want) {
		w.t.Errorf("%s tells the identity %#v, want %s in %s", what, v, id, region)
	}
}

func (w *wire) imported(typeName string, req *tfprotov6.ImportResourceStateRequest) *tfprotov6.ImportResourceStateResponse {
	w.t.Helper()
	req.TypeName = typeName
	resp, err := w.server.ImportResourceState(w.t.Context(), req)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp
}

func TestIdentity(t *testing.T) {
	w := newWire(t, nil)
	n := w.made("sim_network", vals{"name": str("main")})
	id := n.GetAttr("id").AsString()
	for what, req := range map[string]*tfprotov6.ImportResourceStateRequest{
		"an import by id":                 {ID: id},
		"an import by name":               {ID: "main"},
		"an import by identity":           {Identity: w.identity("", id)},
		"an import by the whole identity": {Identity: w.identity("eu-central-1", id)},
	} {
		resp := w.imported("sim_network", req)
		noErrors(t, resp.Diagnostics)
		if len(resp.ImportedResources) != 1 {
			t.Fatalf("%s finds %d resources", what, len(resp.ImportedResources))
		}
		w.wantIdentity(what, resp.ImportedResources[0].Identity, "eu-central-1", id)
	}
	for want, identity := range map[string]*tfprotov6.ResourceIdentityData{
		"works in eu-central-1, and the identity is of us-east-1": w.identity("us-east-1", id),
		`No sim_network has the id "net-0"`:                       w.identity("", "net-0"),
	} {
		resp := w.imported("sim_network", &tfprotov6.ImportResourceStateRequest{Identity: identity})
		if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, want) {
			t.Errorf("got %v, want %q", resp.Diagnostics, want)
		}
	}

	b := w.schema.Resources["sim_network"].Block
	read := func(identity *tfprotov6.ResourceIdentityData) *tfprotov6.ReadResourceResponse {
		resp, err := w.server.ReadResource(t.Context(), &tfprotov6.ReadResourceRequest{TypeName: "sim_network", CurrentState: encode(t, b, n), CurrentIdentity: identity})
		if err != nil {
			t.Fatal(err)
		}
		noErrors(t, resp.Diagnostics)
		return resp
	}
	w.wantIdentity("a read of what has none yet", read(nil).NewIdentity, "eu-central-1", id)
	w.wantIdentity("a read of what another configuration made", read(w.identity("us-west-2", id)).NewIdentity, "us-west-2", id)
	if err := w.cloud.Destroy(t.Context(), "network", "main"); err != nil {
		t.Fatal(err)
	}
	if resp := read(nil); !w.decode("sim_network", resp.NewState).IsNull() {
		t.Error("what is gone is read")
	}
}

func TestList(t *testing.T) {
	w := newWire(t, nil)
	n := w.made("sim_network", vals{"name": str("a-main"), "tags": cty.MapVal(vals{"team": str("a")})})
	w.made("sim_network", vals{"name": str("b-main")})
	w.made("sim_network", vals{"name": str("a-other")})
	s := w.made("sim_subnet", vals{"name": str("s"), "network_id": n.GetAttr("id"), "cidr": str("10.0.1.0/24")})
	i := w.made("sim_instance", vals{"name": str("i"), "subnet_id": s.GetAttr("id"), "image": str("debian-13")})
	//lint:ignore SA1019 it is how a provider says that it lists, until the interfaces are one
	server, ok := w.server.(tfprotov6.ProviderServerWithListResource)
	if !ok {
		t.Fatal("the provider lists nothing")
	}
	config := cty.Object(map[string]cty.Type{"name_prefix": cty.String, "tags": cty.Map(cty.String)})
	list := func(typeName string, limit int64, set vals) (names []string, results []tfprotov6.ListResourceResult) {
		t.Helper()
		all := vals{"name_prefix": cty.NullVal(cty.String), "tags": cty.NullVal(cty.Map(cty.String))}
		for k, v := range set {
			all[k] = v
		}
		d, err := schema.Encode(cty.ObjectVal(all), config)
		if err != nil {
			t.Fatal(err)
		}
		stream, err := server.ListResource(t.Context(), &tfprotov6.ListResourceRequest{TypeName: typeName, Config: d, IncludeResource: true, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for r := range stream.Results {
			names, results = append(names, r.DisplayName), append(results, r)
		}
		return names, results
	}
	for _, tt := range []struct {
		reason string
		limit  int64
		set    vals
		want   []string
	}{
		{"all, in order of creation", 0, nil, []string{"a-main", "b-main", "a-other"}},
		{"as many as wanted", 2, nil, []string{"a-main", "b-main"}},
		{"by prefix", 0, vals{"name_prefix": str("a-")}, []string{"a-main", "a-other"}},
		{"by tag", 0, vals{"tags": cty.MapVal(vals{"team": str("a")})}, []string{"a-main"}},
		{"none", 0, vals{"name_prefix": str("z")}, nil},
	} {
		got, results := list("sim_network", tt.limit, tt.set)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
		}
		for _, r := range results {
			noErrors(t, r.Diagnostics)
		}
	}
	// A list must return the same values as a read.
	_, results := list("sim_instance", 0, nil)
	noErrors(t, results[0].Diagnostics)
	w.wantIdentity("the list", results[0].Identity, "eu-central-1", i.GetAttr("id").AsString())
	if got := w.decode("sim_instance", results[0].Resource); !got.RawEquals(w.read("sim_instance", i)) {
		t.Errorf("listed %#v\nwant %#v", got, i)
	}
	w.fault(simcloud.Fault{Kind: "network", Op: "list", Status: 403, Message: "not for you"})
	if _, results := list("sim_network", 0, nil); len(results) != 1 || len(results[0].Diagnostics) != 1 || !strings.Contains(results[0].Diagnostics[0].Detail, "not for you") {
		t.Errorf("a refused list tells %v", results)
	}
}

func TestReboot(t *testing.T) {
	w := newWire(t, nil)
	n := w.made("sim_network", vals{"name": str("n")})
	s := w.made("sim_subnet", vals{"name": str("s"), "network_id": n.GetAttr("id"), "cidr": str("10.0.1.0/24")})
	i := w.made("sim_instance", vals{"name": str("i"), "subnet_id": s.GetAttr("id"), "image": str("debian-13")})
	if err := w.cloud.Change(t.Context(), func(s *simcloud.Settings) {
		s.Provisioning = map[string]simcloud.Duration{"instance": millis(20)}
	}); err != nil {
		t.Fatal(err)
	}
	id := i.GetAttr("id").AsString()
	//lint:ignore SA1019 it is how a provider says that it has actions, until the interfaces are one
	server, ok := w.server.(tfprotov6.ProviderServerWithActions)
	if !ok {
		t.Fatal("the provider has no actions")
	}
	config := func(id cty.Value) *tfprotov6.DynamicValue {
		ty := cty.Object(map[string]cty.Type{"instance_id": cty.String, "timeout": cty.String})
		d, err := schema.Encode(cty.ObjectVal(vals{"instance_id": id, "timeout": cty.NullVal(cty.String)}), ty)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plan := func(id cty.Value) []*tfprotov6.Diagnostic {
		resp, err := server.PlanAction(t.Context(), &tfprotov6.PlanActionRequest{ActionType: "sim_reboot", Config: config(id)})
		if err != nil {
			t.Fatal(err)
		}
		return resp.Diagnostics
	}
	invoke := func() (progress []string, diags []*tfprotov6.Diagnostic) {
		stream, err := server.InvokeAction(t.Context(), &tfprotov6.InvokeActionRequest{ActionType: "sim_reboot", Config: config(str(id))})
		if err != nil {
			t.Fatal(err)
		}
		for e := range stream.Events {
			switch e := e.Type.(type) {
			case tfprotov6.ProgressInvokeActionEventType:
				progress = append(progress, e.Message)
			case tfprotov6.CompletedInvokeActionEventType:
				diags = e.Diagnostics
			}
		}
		return progress, diags
	}
	noErrors(t, plan(str(id)))
	noErrors(t, plan(cty.UnknownVal(cty.String)))
	if diags := plan(str("ins-0")); len(diags) != 1 || diags[0].Summary != "There is nothing to reboot" {
		t.Errorf("a plan for what is not there: %v", diags)
	}
	if n := w.count(simcloud.Filter{Op: simcloud.OpReboot}); n != 0 {
		t.Errorf("plans rebooted %d times", n)
	}
	progress, diags := invoke()
	noErrors(t, diags)
	if diff := cmp.Diff([]string{"rebooting " + id, id + " is pending", id + " is running"}, progress); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	w.fault(simcloud.Fault{Op: simcloud.OpReboot, Status: 409, Message: "it is being backed up"})
	if _, diags := invoke(); len(diags) != 1 || !strings.Contains(diags[0].Detail, "it is being backed up") {
		t.Errorf("a refused reboot: %v", diags)
	}
	if n := w.count(simcloud.Filter{Op: simcloud.OpReboot}); n != 2 {
		t.Errorf("%d reboots, want 2", n)
	}
}

// TestVersions checks the types of an old version of the provider.
func TestVersions(t *testing.T) {
	for version, want := range map[string]struct {
		schema    int64
		attribute string
	}{"0.0.9": {0, "storage"}, "0.0.0-dev": {2, "storage_gb"}, "0.1.0": {2, "storage_gb"}} {
		s, err := providerserver.NewProtocol6WithError(simprovider.New(version)())()
		if err != nil {
			t.Fatal(err)
		}
		got := schemaOf(t, s).Resources["sim_database"]
		if got.Version != want.schema || !slices.ContainsFunc(got.Block.Attributes, func(a *schema.Attribute) bool { return a.Name == want.attribute }) {
			t.Errorf("sim_database of %s has schema version %d, want %d with %s", version, got.Version, want.schema, want.attribute)
		}
	}
}
