package simprovider_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hykube/hykube/tests/simcloud"
)

// The tests below use other parts of Terraform's language. Import blocks with identities, list resources and actions
// are newer than the oldest supported Terraform; TestProtocol covers them.

// edit changes the recorded state to that of an older version of the provider.
func (tf *terraform) edit(change func(resource map[string]any)) {
	tf.t.Helper()
	file := filepath.Join(tf.dir, "terraform.tfstate")
	b, err := os.ReadFile(file)
	if err != nil {
		tf.t.Fatal(err)
	}
	var state map[string]any
	if err := json.Unmarshal(b, &state); err != nil {
		tf.t.Fatal(err)
	}
	for _, r := range state["resources"].([]any) {
		change(r.(map[string]any))
	}
	if b, err = json.Marshal(state); err != nil {
		tf.t.Fatal(err)
	}
	write(tf.t, file, string(b))
}

func moved(t *testing.T, tf *terraform) {
	tf.config(strings.NewReplacer("sim_instance", "sim_server").Replace(estate))
	tf.apply()
	before, _ := tf.state("sim_server.web")
	tf.config(estate + "moved {\n  from = sim_server.web\n  to   = sim_instance.web\n}\n")
	tf.wantPlan("the move", map[string]change{})
	tf.apply()
	after, _ := tf.state("sim_instance.web")
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("the move (-before +after):\n%s", diff)
	}
	if n := tf.count(simcloud.Filter{Kind: "instance", Op: "create"}); n != 1 {
		t.Errorf("%d instances were made, want 1", n)
	}
	tf.config(strings.ReplaceAll(estate, "sim_instance", "sim_server") + "moved {\n  from = sim_instance.web\n  to   = sim_server.web\n}\n")
	tf.fails("Unable to Move Resource State")
}

const database = `
resource "sim_database" "app" {
  name                      = "app"
  engine                    = "postgres"
  engine_version            = "17"
  admin_password_wo         = "sim-first-password"
  admin_password_wo_version = 1
}
`

func writeOnly(t *testing.T, tf *terraform) {
	password := func() any {
		o, err := tf.cloud.Find(t.Context(), "database", "app")
		if err != nil {
			t.Fatal(err)
		}
		return o["admin_password"]
	}
	tf.config(database)
	tf.apply()
	if password() != "sim-first-password" {
		t.Errorf("the cloud has the password %v", password())
	}
	tf.config(strings.ReplaceAll(database, "first", "second"))
	tf.wantPlan("another password with the same version", map[string]change{})
	tf.config(strings.NewReplacer("first", "second", "version = 1", "version = 2").Replace(database))
	tf.wantPlan("another version", map[string]change{"sim_database.app": {Actions: "update"}})
	tf.apply()
	if password() != "sim-second-password" {
		t.Errorf("the cloud has the password %v", password())
	}
	b, err := os.ReadFile(filepath.Join(tf.dir, "terraform.tfstate"))
	if err != nil || strings.Contains(string(b), "sim-second-password") {
		t.Errorf("the state holds the password (%v)", err)
	}
	tf.config(strings.Replace(database, `engine_version            = "17"`, `engine_version            = "9"`, 1))
	tf.fails("postgres has no version")
}

func upgraded(t *testing.T, tf *terraform) {
	tf.config(database)
	tf.apply()
	before, _ := tf.state("sim_database.app")
	for version, old := range map[int]map[string]any{
		0: {"engine": "postgres-17", "storage": "10GB"},
		1: {"engine": "postgres", "engine_version": "17", "storage": "10GB"},
	} {
		tf.edit(func(r map[string]any) {
			i := r["instances"].([]any)[0].(map[string]any)
			now := i["attributes"].(map[string]any)
			attributes := map[string]any{"id": now["id"], "name": now["name"], "address": now["address"], "created_at": now["created_at"]}
			maps.Copy(attributes, old)
			i["schema_version"], i["attributes"] = version, attributes
		})
		// An older state has no version of the password.
		tf.wantPlan("an older provider", map[string]change{"sim_database.app": {Actions: "update"}})
		tf.apply()
		after, _ := tf.state("sim_database.app")
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("upgraded from version %d (-before +after):\n%s", version, diff)
		}
	}
	tf.edit(func(r map[string]any) {
		i := r["instances"].([]any)[0].(map[string]any)
		i["schema_version"], i["attributes"].(map[string]any)["storage"] = 0, "plenty"
	})
	tf.fails(`recorded as "plenty"`)
}

func ephemeralToken(t *testing.T, tf *terraform) {
	tf.config(`ephemeral "sim_token" "admin" {
  name = "admin"
  ttl  = "400ms"
}
` + strings.Replace(database, `"sim-first-password"`, "ephemeral.sim_token.admin.value", 1))
	tf.settings(func(s *simcloud.Settings) {
		s.Provisioning = map[string]simcloud.Duration{"database": millis(900)}
	})
	tf.apply()
	o, err := tf.cloud.Find(t.Context(), "database", "app")
	if password, _ := o["admin_password"].(string); err != nil || !strings.HasPrefix(password, "simsession-") {
		t.Errorf("the cloud has the password %q, %v; want the token's value", password, err)
	}
	opened, renewed, closed := tf.count(simcloud.Filter{Kind: "session", Op: "create"}), tf.count(simcloud.Filter{Kind: "session", Op: "renew"}), tf.count(simcloud.Filter{Kind: "session", Op: "delete"})
	if opened != 2 || closed != 2 || renewed < 2 || tf.objects("session") != 0 {
		t.Errorf("opened %d, renewed %d and closed %d sessions, %d are left; want 2 for plan and apply, renewed while the database starts", opened, renewed, closed, tf.objects("session"))
	}
	// Without a time to live, the cloud sets one.
	tf.config(`ephemeral "sim_token" "admin" { name = "admin" }
` + strings.NewReplacer(`"sim-first-password"`, "ephemeral.sim_token.admin.value", "version = 1", "version = 2").Replace(database))
	tf.apply()
	tf.fault(simcloud.Fault{Kind: "session", Op: "create", Status: 403, Message: "no more tokens today", Count: 1})
	tf.fails("no more tokens today")
}

func functions(t *testing.T, tf *terraform) {
	tf.config(network + `
output "number" { value = provider::sim::parse_id(sim_network.main.id).number }
output "joined" { value = provider::sim::cidr_join("10.0.0.0/24", "10.0.1.0/24", "10.0.6.0/24") }
output "one"    { value = provider::sim::cidr_join("10.0.0.7/24") }
`)
	tf.apply()
	var out map[string]struct{ Value any }
	if err := json.Unmarshal([]byte(tf.run("output", "-json")), &out); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for name, v := range out {
		got[name] = v.Value
	}
	if diff := cmp.Diff(map[string]any{"number": 1.0, "joined": "10.0.0.0/21", "one": "10.0.0.0/24"}, got); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	for call, want := range map[string]string{
		`parse_id("main")`:                    `"main" is no identifier`,
		`cidr_join("10.0.0.0/8", "fd00::/8")`: "different address families",
		`cidr_join("10.0.0.0/8", "nonsense")`: "is no CIDR block",
	} {
		tf.config("output \"x\" { value = provider::sim::" + call + " }\n")
		tf.fails(want)
	}
}

func lookups(t *testing.T, tf *terraform) {
	const subject = `
terraform {
  provider_meta "sim" { module_name = "lookups" }
}
data "sim_image" "base" { family = "debian" }
data "sim_network" "main" {
  name       = sim_network.main.name
}
` + network
	tf.config(subject)
	tf.apply()
	if base, _ := tf.state("data.sim_image.base"); base["name"] != "debian-13" || base["id"] != "img-debian-13" {
		t.Errorf("the latest debian: %v", base)
	}
	calls, err := tf.cloud.Calls(t.Context(), simcloud.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, c := range calls {
		if c.Module == "lookups" {
			seen = append(seen, c.Op+" "+c.Kind)
		}
	}
	slices.Sort(seen)
	if diff := cmp.Diff([]string{"create network", "list image", "list network", "read network"}, slices.Compact(seen)); diff != "" {
		t.Errorf("calls made for the module (-want +got):\n%s", diff)
	}
	for hcl, want := range map[string]string{
		`data "sim_image" "x" { name = "windows" }`: `No image has the name "windows"`,
		`data "sim_image" "x" { family = "bsd" }`:   `No image has the family "bsd"`,
		`data "sim_image" "x" {}`:                   "Invalid Attribute Combination",
		`data "sim_network" "x" { name = "none" }`:  `0 networks are named "none"`,
	} {
		tf.config(hcl)
		tf.fails(want)
	}
}
