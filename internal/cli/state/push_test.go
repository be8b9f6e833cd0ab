package state

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/tfstate"
)

const pushedState = `{
  "version": 4, "terraform_version": "1.11.0", "serial": 3, "lineage": "l", "outputs": {},
  "resources": [
    {"mode": "data", "type": "sim_image", "name": "base", "provider": "provider[\"registry.terraform.io/hykube/sim\"]", "instances": [{"schema_version": 0, "attributes": {"id": "i"}}]},
    {"mode": "managed", "type": "sim_network", "name": "main_net", "provider": "provider[\"registry.terraform.io/hykube/sim\"].west",
     "instances": [{"schema_version": 1, "attributes": {"id": "n"}, "private": "AAE=", "identity_schema_version": 2, "identity": {"id": "n"},
       "sensitive_attributes": [[{"type": "get_attr", "value": "secret"}]]}]},
    {"mode": "managed", "type": "sim_subnet", "name": "front", "provider": "provider[\"registry.terraform.io/hykube/sim\"]",
     "instances": [
       {"index_key": 0, "schema_version": 0, "attributes": {"id": "s0"}, "dependencies": ["data.sim_image.base", "sim_network.main_net"], "create_before_destroy": true},
       {"index_key": 0, "deposed": "0a1b2c3d", "status": "tainted", "schema_version": 0, "attributes": {"id": "old"}, "dependencies": ["sim_network.main_net"]},
       {"index_key": 1, "schema_version": 0, "attributes": {"id": "s1"}}]},
    {"module": "module.a[\"x\"]", "mode": "managed", "type": "sim_bucket", "name": "logs", "provider": "provider[\"registry.terraform.io/hykube/sim\"]",
     "instances": [{"index_key": "k/1", "schema_version": 0, "attributes": {"id": "b"}, "dependencies": ["sim_subnet.front"]}]}
  ],
  "check_results": null
}`

func parsed(t *testing.T, text string) *tfstate.File {
	t.Helper()
	f, err := tfstate.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPushedEntriesComeBack maps a state to objects, and the entries back to a state.
func TestPushedEntriesComeBack(t *testing.T) {
	m, err := newStateMapping([]string{`module.a["x"].sim_bucket.logs=sim-bucket/logs`}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := parsed(t, pushedState)
	entries, problems := m.entries(f)
	if len(problems) > 0 || m.data != 1 {
		t.Fatalf("problems %v, %d data sources", problems, m.data)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Address+" = "+e.Type+"."+e.Name+" "+e.ProviderConfig)
	}
	want := []string{
		"sim_network.main_net = sim_network.main-net west", "sim_subnet.front[0] = sim_subnet.front[0] ", "sim_subnet.front[1] = sim_subnet.front[1] ",
		`module.a["x"].sim_bucket.logs["k/1"] = sim_bucket.logs["k\u002f1"] `,
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"sim_network.main-net"}, entries[1].Current.Dependencies); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"sim_subnet.front[0]", "sim_subnet.front[1]"}, entries[3].Current.Dependencies); d != "" {
		t.Error(d)
	}
	back := &tfstate.File{Version: 4, TerraformVersion: f.TerraformVersion, Serial: f.Serial, Lineage: f.Lineage, Outputs: f.Outputs, CheckResults: f.CheckResults}
	if _, err := fill(back, entries); err != nil {
		t.Fatal(err)
	}
	f.Resources = f.Resources[1:] // without the data source
	f.Resources[1].Instances[0].Dependencies = f.Resources[1].Instances[0].Dependencies[1:]
	if d := cmp.Diff(plainJSON(t, f), plainJSON(t, back)); d != "" {
		t.Error(d)
	}
}

func plainJSON(t *testing.T, v any) (out any) {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMappingProblems(t *testing.T) {
	for name, tc := range map[string]struct {
		maps, targets []string
		want          string
	}{
		"a module":                {nil, nil, "it is in a module"},
		"another type":            {[]string{`module.a["x"].sim_bucket.logs=sim-network/logs`}, nil, "has the type sim_bucket"},
		"one object for two":      {[]string{`module.a["x"].sim_bucket.logs=sim-bucket/logs`, "sim_subnet.front[0]=sim-subnet/one", "sim_subnet.front[1]=sim-subnet/one"}, nil, "the same object as sim_subnet.front[0]"},
		"a module, not a target":  {nil, []string{"sim_network.main_net"}, ""},
		"the module as a target":  {nil, []string{"module.a"}, "it is in a module"},
		"an instance as a target": {nil, []string{"sim_subnet.front[1]"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := newStateMapping(tc.maps, nil, tc.targets)
			if err != nil {
				t.Fatal(err)
			}
			entries, problems := m.entries(parsed(t, pushedState))
			if err := m.unused(); err != nil {
				t.Error(err)
			}
			switch {
			case tc.want == "" && (len(problems) > 0 || len(entries) != 1):
				t.Errorf("problems %v, %d entries", problems, len(entries))
			case tc.want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Problem, tc.want)):
				t.Errorf("problems %v, want %q", problems, tc.want)
			}
		})
	}
}

func TestMappingFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		maps, configs, targets []string
		want                   string
	}{
		"no object":         {[]string{"sim_network.main"}, nil, nil, "write ADDRESS=KIND/NAME"},
		"no address":        {[]string{"main=sim-network/main"}, nil, nil, "not the address of a managed resource"},
		"a data source":     {[]string{"sim_network.main_net=data-sim-image/base"}, nil, nil, "--map"},
		"not in the state":  {[]string{"sim_network.gone=sim-network/main"}, nil, nil, "the state has no resource sim_network.gone"},
		"no name":           {nil, []string{"hykube/sim.west"}, nil, "write SOURCE[.ALIAS]=NAME"},
		"another provider":  {nil, []string{"hashicorp/aws=a"}, nil, "no resource of the state has the provider"},
		"no such target":    {nil, nil, []string{"module.b"}, "neither a resource nor a module"},
		"a prefix of names": {nil, nil, []string{"sim_network.main"}, "neither a resource nor a module"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := newStateMapping(tc.maps, tc.configs, tc.targets)
			if err == nil {
				m.entries(parsed(t, pushedState))
				err = m.unused()
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
	m, err := newStateMapping(nil, []string{"hykube/sim.west=far"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if entries, _ := m.entries(parsed(t, pushedState)); entries[0].ProviderConfig != "far" {
		t.Errorf("ProviderConfig %q", entries[0].ProviderConfig)
	}
}

// TestAWideDependencyIsNarrow bounds the dependencies of two resources with many instances.
func TestAWideDependencyIsNarrow(t *testing.T) {
	f := &tfstate.File{Resources: []tfstate.Resource{{Mode: "managed", Type: "a_a", Name: "x"}, {Mode: "managed", Type: "a_a", Name: "y"}}}
	for i := range manyInstances + 1 {
		key, _ := json.Marshal(i)
		for k := range f.Resources {
			f.Resources[k].Provider = `provider["registry.terraform.io/a/a"]`
			f.Resources[k].Instances = append(f.Resources[k].Instances, tfstate.Instance{IndexKey: key, Attributes: json.RawMessage("{}")})
		}
		f.Resources[1].Instances[i].Dependencies = []string{"a_a.x"}
	}
	m, err := newStateMapping(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	entries, _ := m.entries(f)
	last := entries[len(entries)-1]
	if d := cmp.Diff([]string{"a_a.x[64]"}, last.Current.Dependencies); d != "" {
		t.Error(d)
	}
}

func TestTheReportHasAllProblems(t *testing.T) {
	err := problemsError([]v1alpha1.StateProblem{{Address: "b", Problem: "no", Remedy: "do"}, {Address: "a", Problem: "no", Remedy: "do"}, {Address: "c", Problem: "other\x1b[31m"}})
	want := "state push: 3 resources of the state cannot be recorded\n  a\n  b\n    no\n    to mend it: do\n  c\n    other"
	if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\x1b") || !strings.HasSuffix(err.Error(), "\nNo resource was recorded.") {
		t.Errorf("%q", err)
	}
}
