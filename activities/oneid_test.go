package activities

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/provider"
	"github.com/hykube/hykube/internal/provider/contain"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"k8s.io/apimachinery/pkg/types"
)

// sharedIDs is a provider whose IDs name several resources. Its types resemble random_password, time_static, an object of a
// bucket, and a project with a number that is also imported by its path. A ticket resembles a password without secrets.
type sharedIDs struct {
	tfprotov6.ProviderServer
	t     *testing.T
	types map[string]*schema.Schema
	// paths holds the paths of the projects by their IDs.
	paths map[string]string
	made  int
	// salts counts the hashes of passwords, each of which has another salt.
	salts int
}

func sharedIDsSchema() *schema.Provider {
	of := func(attrs ...*schema.Attribute) *schema.Schema {
		return &schema.Schema{Block: &schema.Block{Attributes: append(attrs, &schema.Attribute{Name: "id", Type: cty.String, Computed: true})}}
	}
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Required: true}
	}
	return &schema.Provider{Config: &schema.Schema{Block: &schema.Block{}}, Resources: map[string]*schema.Schema{
		"test_password": of(text("length"), &schema.Attribute{Name: "hash", Type: cty.String, Computed: true, Sensitive: true}, &schema.Attribute{Name: "result", Type: cty.String, Computed: true, Sensitive: true}),
		"test_ticket":   of(&schema.Attribute{Name: "code", Type: cty.String, Computed: true}),
		"test_stamp":    of(text("at")),
		"test_blob":     of(text("bucket"), text("key"), &schema.Attribute{Name: "etag", Type: cty.String, Computed: true}),
		"test_project":  of(text("name"), &schema.Attribute{Name: "path", Type: cty.String, Computed: true}),
	}}
}

// state returns the state of a resource with texts.
func (s *sharedIDs) state(typ string, texts map[string]string) *tfprotov6.DynamicValue {
	ty, vals := s.types[typ].Block.ImpliedType(), map[string]cty.Value{}
	for name := range ty.AttributeTypes() {
		vals[name] = cty.NullVal(cty.String)
		if text, ok := texts[name]; ok {
			vals[name] = cty.StringVal(text)
		}
	}
	return s.wire(typ, cty.ObjectVal(vals))
}

func (s *sharedIDs) wire(typ string, v cty.Value) *tfprotov6.DynamicValue {
	d, err := schema.Encode(v, s.types[typ].Block.ImpliedType())
	if err != nil {
		s.t.Error(err)
	}
	return d
}

func (s *sharedIDs) value(typ string, d *tfprotov6.DynamicValue) cty.Value {
	v, err := schema.Decode(d, s.types[typ].Block.ImpliedType())
	if err != nil {
		s.t.Error(err)
	}
	return v
}

func (s *sharedIDs) ValidateResourceConfig(context.Context, *tfprotov6.ValidateResourceConfigRequest) (*tfprotov6.ValidateResourceConfigResponse, error) {
	return &tfprotov6.ValidateResourceConfigResponse{}, nil
}

func (s *sharedIDs) UpgradeResourceState(_ context.Context, r *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	v, err := ctyjson.Unmarshal(r.RawState.JSON, s.types[r.TypeName].Block.ImpliedType())
	if err != nil {
		return nil, err
	}
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: s.wire(r.TypeName, v)}, nil
}

func (s *sharedIDs) ReadResource(_ context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return &tfprotov6.ReadResourceResponse{NewState: r.CurrentState, Private: r.Private}, nil
}

func (s *sharedIDs) ImportResourceState(_ context.Context, r *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	texts := map[string]string{}
	switch r.TypeName {
	case "test_password":
		s.salts++
		texts = map[string]string{"id": "none", "length": fmt.Sprint(len(r.ID)), "result": r.ID, "hash": fmt.Sprint("salt-", s.salts)}
	case "test_ticket":
		texts = map[string]string{"id": "none", "code": r.ID}
	case "test_stamp":
		texts = map[string]string{"id": r.ID, "at": r.ID}
	case "test_blob":
		bucket, key, ok := strings.Cut(r.ID, "/")
		if !ok {
			return &tfprotov6.ImportResourceStateResponse{}, nil
		}
		texts = map[string]string{"id": key, "bucket": bucket, "key": key, "etag": "1"}
	case "test_project":
		for id, path := range s.paths {
			if r.ID == id || r.ID == path {
				texts = map[string]string{"id": id, "name": "n", "path": path}
			}
		}
	}
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{{TypeName: r.TypeName, State: s.state(r.TypeName, texts)}}}, nil
}

func (s *sharedIDs) PlanResourceChange(_ context.Context, r *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	planned := s.value(r.TypeName, r.ProposedNewState)
	if !planned.IsNull() && s.value(r.TypeName, r.PriorState).IsNull() {
		vals := planned.AsValueMap()
		for _, a := range s.types[r.TypeName].Block.Attributes {
			if a.Computed {
				vals[a.Name] = cty.UnknownVal(cty.String)
			}
		}
		planned = cty.ObjectVal(vals)
	}
	return &tfprotov6.PlanResourceChangeResponse{PlannedState: s.wire(r.TypeName, planned), PlannedPrivate: r.PriorPrivate}, nil
}

func (s *sharedIDs) ApplyResourceChange(_ context.Context, r *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	v := s.value(r.TypeName, r.PlannedState)
	if v.IsNull() || !s.value(r.TypeName, r.PriorState).IsNull() {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: r.PlannedState}, nil
	}
	s.made++
	texts := map[string]string{"result": fmt.Sprint("made-", s.made), "code": fmt.Sprint("made-", s.made), "etag": fmt.Sprint(s.made)}
	for name, a := range v.AsValueMap() {
		if a.IsKnown() && !a.IsNull() {
			texts[name] = a.AsString()
		}
	}
	texts["id"] = map[string]string{"test_password": "none", "test_ticket": "none", "test_stamp": texts["at"], "test_blob": texts["key"], "test_project": "7"}[r.TypeName]
	texts["path"] = s.paths[texts["id"]]
	known := map[string]string{}
	for _, a := range s.types[r.TypeName].Block.Attributes {
		known[a.Name] = texts[a.Name]
	}
	return &tfprotov6.ApplyResourceChangeResponse{NewState: s.state(r.TypeName, known)}, nil
}

// newSharedIDs returns a scenario with the provider. Its resources are only values, unless it has grants.
func newSharedIDs(t *testing.T, grants contain.Grants) (*crashScenario, *sharedIDs) {
	sc, of := newCrashScenario(t), sharedIDsSchema()
	sc.Catalog.Put(catalog.Entry{Name: "test", Schema: of, Package: provider.Package{Version: "1.0.0", Grants: grants}})
	s := &sharedIDs{t: t, types: of.Resources, paths: map[string]string{}}
	sc.provides = func(provider.Configuration) tfprotov6.ProviderServer { return s }
	configure(sc.World, "ops")
	return sc, s
}

// moveToOps makes the records of objects those of objects of the namespace "ops".
func (sc *crashScenario) moveToOps(names ...string) {
	sc.T.Helper()
	for _, name := range names {
		rec := sc.recordOf(name)
		theirs := &ledger.Instance{Object: rec.Object, Provider: rec.Provider, State: rec.State}
		theirs.Object.Namespace, theirs.Object.UID = "ops", types.UID("ops"+name)
		if err := sc.Ledger.Save(sc.T.Context(), theirs); err != nil {
			sc.T.Fatal(err)
		}
		if err := sc.Ledger.Forget(sc.T.Context(), rec); err != nil {
			sc.T.Fatal(err)
		}
		delete(sc.Stored, "team:"+name)
	}
}

// TestAnImportBesideASharedID imports what has the ID of other objects' resources. The provider itself shows that the ID identifies
// nothing, or required arguments of resources that Hykube created in the account do. Nothing else does.
func TestAnImportBesideASharedID(t *testing.T) {
	blob := func(bucket string) m { return m{"bucket": bucket, "key": "index.html"} }
	for name, tc := range map[string]struct {
		theirs map[string]m
		// edit changes the records of the other objects.
		edit       func(*ledger.Instance)
		kind, id   string
		spec       m
		forbidden  bool
		want, lack string
	}{
		"a value, a password beside one":       {theirs: map[string]m{"test-password/x": {"length": "8"}}, kind: "test-password", id: "secretpw1", spec: m{"length": "9"}},
		"a value, a password by its ID":        {theirs: map[string]m{"test-password/x": {"length": "8"}}, forbidden: true, kind: "test-password", id: "none", spec: m{"length": "4"}},
		"a value, a stamp beside one":          {theirs: map[string]m{"test-stamp/x": {"at": "t"}}, forbidden: true, kind: "test-stamp", id: "t", spec: m{"at": "t"}},
		"a password":                           {theirs: map[string]m{"test-password/x": {"length": "8"}}, kind: "test-password", id: "secretpw1", spec: m{"length": "9"}, want: "Error Resource is managed already"},
		"a ticket beside one":                  {theirs: map[string]m{"test-ticket/x": {}}, kind: "test-ticket", id: "mine", want: "", spec: m{}},
		"a ticket beside an import":            {theirs: map[string]m{"test-ticket/x": {}}, edit: func(i *ledger.Instance) { i.Created = false }, kind: "test-ticket", id: "mine", spec: m{}},
		"a ticket of another account":          {theirs: map[string]m{"test-ticket/x": {}}, edit: func(i *ledger.Instance) { i.Configuration.Arguments = "other" }, kind: "test-ticket", id: "mine", spec: m{}, want: "Error Resource is managed already", lack: "ProviderConfigs reach"},
		"a ticket by its ID":                   {theirs: map[string]m{"test-ticket/x": {}}, kind: "test-ticket", id: "none", spec: m{}, want: "Error Resource is managed already"},
		"a stamp beside one":                   {theirs: map[string]m{"test-stamp/x": {"at": "t"}}, kind: "test-stamp", id: "t", spec: m{"at": "t"}, want: "Error Resource is managed already", lack: "ProviderConfigs reach"},
		"a stamp beside two with equal values": {theirs: map[string]m{"test-stamp/x": {"at": "t"}, "test-stamp/y": {"at": "t"}}, kind: "test-stamp", id: "t", spec: m{"at": "t"}, want: "Error Resource is managed already"},
		"a blob like one of two, with the right": {theirs: map[string]m{"test-blob/x": blob("b1"), "test-blob/y": blob("b3")}, kind: "test-blob", id: "b1/index.html", spec: blob("b1"),
			want: "Warning Resource is managed already", lack: "ProviderConfig"},
		"a blob like one of two, without it": {theirs: map[string]m{"test-blob/x": blob("b1"), "test-blob/y": blob("b3")}, forbidden: true, kind: "test-blob", id: "b1/index.html", spec: blob("b1"),
			want: `Error Resource is managed already: An object of another namespace, which you may not read, manages a resource with the same ID or identity. Other resources of its namespace have that ID, too`},
		"a blob beside one": {theirs: map[string]m{"test-blob/x": blob("b1")}, kind: "test-blob", id: "b2/index.html", spec: blob("b2"), want: "Error Resource is managed already"},
		"a blob beside two": {theirs: map[string]m{"test-blob/x": blob("b1"), "test-blob/y": blob("b3")}, kind: "test-blob", id: "b2/index.html", spec: blob("b2")},
		"a blob of theirs":  {theirs: map[string]m{"test-blob/x": blob("b1"), "test-blob/y": blob("b3")}, forbidden: true, kind: "test-blob", id: "b1/index.html", spec: blob("b1"), want: "Error Resource is managed already"},
		"a blob of theirs that they imported": {theirs: map[string]m{"test-blob/x": blob("b1"), "test-blob/y": blob("b3")}, edit: func(i *ledger.Instance) { i.Created = false },
			kind: "test-blob", id: "b2/index.html", spec: blob("b2"), want: "Error Resource is managed already"},
		"a blob beside two that another account has": {theirs: map[string]m{"test-blob/x": blob("b1"), "test-blob/y": blob("b3")}, edit: func(i *ledger.Instance) { i.Configuration.Arguments = "other" },
			kind: "test-blob", id: "b2/index.html", spec: blob("b2"), want: "Error Resource is managed already"},
		// The project was renamed in the cloud, so its path is not the recorded one.
		"a project by its new path": {theirs: map[string]m{"test-project/x": {"name": "n"}}, kind: "test-project", id: "new/p", spec: m{"name": "n"}, want: "Error Resource is managed already"},
	} {
		t.Run(name, func(t *testing.T) {
			grants := contain.Grants{ReadPaths: []string{"/account"}}
			if strings.HasPrefix(name, "a value, ") {
				grants = contain.Grants{}
			}
			sc, cloud := newSharedIDs(t, grants)
			cloud.paths["7"] = "old/p"
			for object, spec := range tc.theirs {
				sc.put(object, spec, nil)
			}
			sc.apply()
			for object := range tc.theirs {
				if rec := sc.recordOf(object); !rec.Created {
					t.Fatalf("the record of %s does not say that Hykube created it", object)
				} else if tc.edit != nil {
					tc.edit(rec)
					if err := sc.Ledger.Save(t.Context(), rec); err != nil {
						t.Fatal(err)
					}
				}
				sc.moveToOps(object)
				_, short, _ := strings.Cut(object, "/")
				plural := strings.Split(object, "/")[0] + "s"
				sc.Forbidden["ops/"+plural+"/"+short], sc.Forbidden["ann!update:ops/"+plural+"/"+short] = tc.forbidden, tc.forbidden
			}
			cloud.paths["7"] = "new/p"
			sc.put(tc.kind+"/mine", tc.spec, imports(tc.id))
			po := sc.until(sc.newRun(), approving)
			said := sc.said(po)
			said = strings.ReplaceAll(said, "Warning The ID of the import is a secret", "")
			if !strings.Contains(said, tc.want) || tc.want == "" && strings.Contains(said, "managed already") || tc.lack != "" && strings.Contains(said, tc.lack) {
				t.Errorf("said %q", said)
			}
			if refused := strings.HasPrefix(tc.want, "Error"); po.PlanFailed() != refused {
				t.Errorf("failed %t: %q", po.PlanFailed(), said)
			}
		})
	}
}

// TestTwoObjectsOfAPlanImportWithOneID imports two passwords in one plan, and then a third one. Their IDs are equal.
func TestTwoObjectsOfAPlanImportWithOneID(t *testing.T) {
	sc, _ := newSharedIDs(t, contain.Grants{})
	sc.put("test-password/a", m{"length": "9"}, imports("secretpw1"))
	sc.put("test-password/b", m{"length": "9"}, imports("secretpw2"))
	sc.apply()
	sc.put("test-password/c", m{"length": "9"}, imports("secretpw3"))
	po := sc.apply()
	for _, name := range []string{"a", "b", "c"} {
		if rec := sc.recordOf("test-password/" + name); !rec.Exists() || rec.Created || rec.NamedBy != "" {
			t.Errorf("%s: created %t, named by %q: %s", name, rec.Created, rec.NamedBy, sc.said(po))
		}
	}
}

// TestADestroyBesideASharedID destroys resources that have one ID. The plan warns only where the ID may be that of one resource.
func TestADestroyBesideASharedID(t *testing.T) {
	const warning = "Another object manages the same infrastructure"
	for name, tc := range map[string]struct {
		kind   string
		spec   func(i int) m
		edit   func(*ledger.Instance)
		plan   v1alpha1.PlanSpec
		values bool
		warns  bool
	}{
		"passwords": {kind: "test-password", spec: func(int) m { return m{"length": "8"} }, values: true},
		"stamps":    {kind: "test-stamp", spec: func(int) m { return m{"at": "t"} }, plan: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshNone}, values: true},
		"tickets":   {kind: "test-ticket", spec: func(int) m { return m{} }},
		"blobs":     {kind: "test-blob", spec: func(i int) m { return m{"bucket": fmt.Sprint("b", i), "key": "k"} }},
		"imported":  {kind: "test-blob", spec: func(i int) m { return m{"bucket": fmt.Sprint("b", i), "key": "k"} }, edit: func(i *ledger.Instance) { i.Created = false }, warns: true},
		"not read":  {kind: "test-blob", spec: func(i int) m { return m{"bucket": fmt.Sprint("b", i), "key": "k"} }, plan: v1alpha1.PlanSpec{Refresh: v1alpha1.RefreshNone}, warns: true},
	} {
		t.Run(name, func(t *testing.T) {
			grants := contain.Grants{ReadPaths: []string{"/account"}}
			if tc.values {
				grants = contain.Grants{}
			}
			sc, _ := newSharedIDs(t, grants)
			const n = 5
			for i := range n {
				sc.put(fmt.Sprintf("%s/x%d", tc.kind, i), tc.spec(i), nil)
			}
			sc.apply()
			for i := range n {
				if rec := sc.recordOf(fmt.Sprintf("%s/x%d", tc.kind, i)); tc.edit != nil {
					tc.edit(rec)
					if err := sc.Ledger.Save(t.Context(), rec); err != nil {
						t.Fatal(err)
					}
				}
			}
			sc.spec = tc.plan
			sc.spec.Destroy = true
			run := sc.newRun()
			sc.until(run, approving)
			got := 0
			for i := range n {
				c := sc.changeOf(run, i)
				if c.OtherOwner != tc.warns {
					t.Errorf("change %d needs a person: %t, want %t", i, c.OtherOwner, tc.warns)
				}
				for _, d := range c.Diagnostics {
					if d.Summary == warning {
						got++
					}
				}
			}
			if got > 1 || (got == 1) != tc.warns {
				t.Errorf("it warns %d times, want one warning: %t", got, tc.warns)
			}
		})
	}
}

// TestAStaleRecordOfASharedIDWarns destroys an object whose resource was removed outside of Hykube. Another object created one with
// its ID since, which the provider now reads.
func TestAStaleRecordOfASharedIDWarns(t *testing.T) {
	sc := newCrashScenario(t)
	sc.put("test-thing/a", m{"name": "a", "size": "1"}, nil)
	sc.put("test-thing/b", m{"name": "b", "size": "2"}, nil)
	sc.apply()
	stale := sc.recordOf("test-thing/a")
	stale.Attributes = []byte(strings.Replace(string(stale.Attributes), stale.ID(), sc.recordOf("test-thing/b").ID(), 1))
	if err := sc.Ledger.Save(t.Context(), stale); err != nil {
		t.Fatal(err)
	}
	sc.spec = v1alpha1.PlanSpec{Destroy: true, Targets: []string{"test_thing.a"}}
	if said := sc.said(sc.until(sc.newRun(), approving)); !strings.Contains(said, "Warning Another object manages the same infrastructure: test_thing.b") {
		t.Errorf("said %q", said)
	}
}
