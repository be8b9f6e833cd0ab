package simprovider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/tests/harness/machine"
	"github.com/hykube/hykube/tests/simcloud"
)

const (
	network = `resource "sim_network" "main" { name = "main" }
`
	estate = `
resource "sim_network" "main" {
  name = "main"
  tags = { team = "a" }
}
resource "sim_subnet" "front" {
  name       = "front"
  network_id = sim_network.main.id
  cidr       = "10.0.1.0/24"
}
resource "sim_instance" "web" {
  name      = "web"
  subnet_id = sim_subnet.front.id
  image     = "debian-13"
  size      = "small"
  public    = true
  tags      = {}
  metadata  = { owner = "me" }
  network_interface { security_groups = ["a", "b"] }
  network_interface { address = "10.0.1.200" }
}
resource "sim_disk" "data" {
  name        = "data"
  size_gb     = 10
  instance_id = sim_instance.web.id
}
resource "sim_dns_record" "www" {
  name   = "www"
  type   = "A"
  ttl    = sim_instance.web.cpu * 60
  values = [sim_instance.web.public_ip]
}
resource "sim_bucket" "logs" {
  name = "logs"
  rule {
    prefix = "a/"
    days   = 1
  }
  rule {
    prefix = "b/"
    days   = 2
  }
}
resource "sim_token" "ci" { name = "ci" }
resource "sim_password" "db" {
  length  = 20
  keepers = { network = sim_network.main.id }
}
data "sim_network" "main" {
  name       = sim_network.main.name
  depends_on = [sim_subnet.front]
}
data "sim_images" "debian" { family = "debian" }
`
)

// TestTerraform tests the provider with Terraform. Each subtest has its own cloud.
func TestTerraform(t *testing.T) {
	machine.Terraform.Need(t) // TestProtocol tests the provider without it
	dir := build(t)
	for name, story := range map[string]func(*testing.T, *terraform){
		"journey": journey, "replace": replace, "partial": partial, "lost answer": lostAnswer, "patience": patience,
		"imports": imports, "refusals": refusals, "updates that fail": failedUpdate,
		"moved": moved, "write-only": writeOnly, "upgraded": upgraded, "ephemeral": ephemeralToken, "functions": functions, "lookups": lookups,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, newTerraform(t, dir, simcloud.Config{Token: "right"}))
		})
	}
	t.Run("mirror", func(t *testing.T) { t.Parallel(); mirror(t, dir) })
}

func journey(t *testing.T, tf *terraform) {
	tf.config(estate)
	tf.apply()
	tf.wantPlan("the first apply", map[string]change{})
	if n := tf.count(simcloud.Filter{Op: "create", Effect: true}); n != 7 {
		t.Errorf("%d objects were created, want 7", n)
	}
	if n := tf.count(simcloud.Filter{Op: "update"}); n != 0 {
		t.Errorf("%d updates, want none", n)
	}
	web, _ := tf.state("sim_instance.web")
	if web["private_ip"] == nil || web["public_ip"] == nil || web["status"] != "running" {
		t.Errorf("the instance's computed values: %v", web)
	}
	if ci, _ := tf.state("sim_token.ci"); ci["secret"] == nil {
		t.Error("the token's secret is not in the state")
	}
	if images, _ := tf.state("data.sim_images.debian"); len(images["images"].([]any)) != 2 {
		t.Errorf("images of the family debian: %v", images)
	}

	tf.config(strings.NewReplacer(`"small"`, `"large"`, `size_gb     = 10`, `size_gb     = 20`).Replace(estate))
	tf.wantPlan("an edit", map[string]change{"sim_instance.web": {Actions: "update"}, "sim_disk.data": {Actions: "update"}})
	tf.apply()
	tf.wantPlan("the update", map[string]change{})
	after, _ := tf.state("sim_instance.web")
	if after["size"] != "large" || after["public_ip"] != web["public_ip"] || after["updated_at"] == web["updated_at"] {
		t.Errorf("after the update: %v", after)
	}

	tf.drift("instance", "web", map[string]any{"size": "huge", "status": "stopped", "metadata": nil})
	tf.drift("bucket", "logs", map[string]any{"rules": []any{map[string]any{"prefix": "b/", "days": 2}}})
	tf.wantPlan("drift", map[string]change{"sim_instance.web": {Actions: "update"}, "sim_bucket.logs": {Actions: "update"}})
	if err := tf.cloud.Destroy(t.Context(), "dns-record", "www"); err != nil {
		t.Fatal(err)
	}
	tf.wantPlan("a deletion behind its back", map[string]change{
		"sim_instance.web": {Actions: "update"}, "sim_bucket.logs": {Actions: "update"}, "sim_dns_record.www": {Actions: "create"},
	})
	tf.apply()
	tf.wantPlan("the repair", map[string]change{})

	tf.destroy()
	stats, err := tf.cloud.Stats(t.Context())
	if err != nil || len(stats.Objects) != 0 {
		t.Errorf("after destroy there are %v, %v", stats.Objects, err)
	}
}

func replace(t *testing.T, tf *terraform) {
	tf.config(estate)
	tf.apply()
	for _, tt := range []struct {
		from, to string
		want     map[string]change
	}{
		{`size_gb     = 10`, `size_gb     = 5`, map[string]change{"sim_disk.data": {Actions: "delete create", Replace: "size_gb"}}},
		{`image     = "debian-13"`, `image     = "debian-12"`, map[string]change{
			"sim_instance.web": {Actions: "delete create", Replace: "image"}, "sim_disk.data": {Actions: "update"}, "sim_dns_record.www": {Actions: "update"},
		}},
		{`length  = 20`, `length  = 21`, map[string]change{"sim_password.db": {Actions: "delete create", Replace: "length"}}},
		{`  tags = { team = "a" }`, `  cidr = "10.0.0.0/15"`, map[string]change{
			"sim_network.main": {Actions: "delete create", Replace: "cidr"}, "sim_subnet.front": {Actions: "delete create", Replace: "network_id"},
			"sim_instance.web": {Actions: "delete create", Replace: "subnet_id"}, "sim_disk.data": {Actions: "update"}, "sim_dns_record.www": {Actions: "update"},
			"sim_password.db":       {Actions: "delete create", Replace: "keepers"},
			"data.sim_network.main": {Actions: "read"},
		}},
	} {
		if !strings.Contains(estate, tt.from) {
			t.Fatalf("the estate has no %q", tt.from)
		}
		tf.config(strings.Replace(estate, tt.from, tt.to, 1))
		tf.wantPlan(tt.to, tt.want)
	}
	// This is the last step.
	tf.apply()
	tf.wantPlan("the replacement", map[string]change{})
	if n := tf.objects("network"); n != 1 {
		t.Errorf("%d networks exist, want 1", n)
	}
}

func partial(t *testing.T, tf *terraform) {
	tf.config(estate)
	tf.fault(simcloud.Fault{Kind: "disk", Op: "attach", Status: 500, Count: 1})
	tf.fault(simcloud.Fault{Kind: "instance", Op: "create", Action: simcloud.ActionFail, Count: 1})
	tf.fails("failed to start")
	if web, tainted := tf.state("sim_instance.web"); web["id"] == nil || !tainted {
		t.Errorf("an instance that failed to start is kept and tainted; got %v, tainted %t", web, tainted)
	}
	tf.fails("attach to ins-")
	if disk, tainted := tf.state("sim_disk.data"); disk["id"] == nil || !tainted || disk["instance_id"] != nil {
		t.Errorf("a disk that could not be attached is kept, detached and tainted; got %v, tainted %t", disk, tainted)
	}
	tf.apply()
	tf.wantPlan("the second try", map[string]change{})
	if n, d := tf.objects("instance"), tf.objects("disk"); n != 1 || d != 1 {
		t.Errorf("%d instances and %d disks exist, want one each", n, d)
	}
}

func lostAnswer(t *testing.T, tf *terraform) {
	for _, f := range []simcloud.Fault{
		{Kind: "network", Op: "create", When: simcloud.After, Action: simcloud.ActionClose, Count: 1},
		{Kind: "network", Op: "create", When: simcloud.After, Status: 503, Count: 1},
	} {
		if err := tf.cloud.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		tf.config(network)
		tf.fault(f)
		tf.fails("Can't create sim_network")
		if n := tf.count(simcloud.Filter{Op: "create"}); n != 1 {
			t.Errorf("%d creates, want 1: one that may have happened is not sent again", n)
		}
		if n := tf.objects("network"); n != 1 {
			t.Errorf("%d networks exist, want 1", n)
		}
	}
	if err := tf.cloud.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	tf.fault(simcloud.Fault{Kind: "network", Op: "create", When: simcloud.After, Action: simcloud.ActionClose, Count: 1})
	tf.config(network + `provider "sim" { retry_lost_creates = true }`)
	tf.apply()
	if n := tf.count(simcloud.Filter{Op: "create"}); n != 2 {
		t.Errorf("%d creates, want 2", n)
	}
	if n := tf.objects("network"); n != 1 {
		t.Errorf("%d networks exist, want 1 thanks to the client token", n)
	}
}

func patience(t *testing.T, tf *terraform) {
	tf.config(estate)
	tf.settings(func(s *simcloud.Settings) {
		s.Throttle = simcloud.Throttle{RatePerSecond: 40, Burst: 2}
		s.Consistency = simcloud.Consistency{Create: millis(80), Update: millis(80), Delete: millis(80)}
		s.Provisioning = map[string]simcloud.Duration{"instance": millis(150)}
	})
	tf.apply()
	tf.wantPlan("a slow apply", map[string]change{})
	tf.config(strings.Replace(estate, `"small"`, `"large"`, 1))
	tf.apply()
	tf.wantPlan("a slow update", map[string]change{})
	if n := tf.count(simcloud.Filter{Status: 429}); n == 0 {
		t.Error("nothing was throttled, so this proves nothing")
	}
	if n := tf.count(simcloud.Filter{Op: "read", Status: 404}); n == 0 {
		t.Error("nothing was read too early, so this proves nothing")
	}
	if n := tf.count(simcloud.Filter{Op: "create", Effect: true}); n != 7 {
		t.Errorf("%d objects were created, want 7", n)
	}
	tf.destroy()
}

func imports(t *testing.T, tf *terraform) {
	tf.config(estate)
	tf.apply()
	for _, kind := range []string{"network.main", "instance.web", "bucket.logs"} {
		address := "sim_" + kind
		before, _ := tf.state(address)
		_, name, _ := strings.Cut(kind, ".")
		for _, id := range []string{before["id"].(string), name} {
			tf.run("state", "rm", address)
			tf.run("import", "-no-color", "-input=false", address, id)
			after, _ := tf.state(address)
			if diff := cmp.Diff(before, after); diff != "" && kind != "instance.web" { // the provider does not distinguish tags = {} from none
				t.Errorf("%s imported by %q (-before +after):\n%s", address, id, diff)
			}
		}
	}
	if _, err := tf.cloud.Create(t.Context(), "network", map[string]any{"name": "main"}); err != nil {
		t.Fatal(err)
	}
	tf.run("state", "rm", "sim_network.main")
	for id, want := range map[string]string{"main": "More than one object has this name", "nobody": "There is nothing to import"} {
		if out, err := tf.try("import", "-no-color", "-input=false", "sim_network.main", id); err == nil || !strings.Contains(out, want) {
			t.Errorf("import of %q: %v, want %q:\n%s", id, err, want, out)
		}
	}
}

func refusals(_ *testing.T, tf *terraform) {
	for hcl, want := range map[string]string{
		`provider "sim" { region = "mars-1" }`:                                                                "Attribute region value must be one of",
		`provider "sim" { token = "wrong" }`:                                                                  "The cloud refuses the token",
		`provider "sim" { endpoint = "http://127.0.0.1:1" }`:                                                  "The cloud can't be reached",
		`provider "sim" { endpoint = "nonsense" }`:                                                            "The endpoint is no address",
		`resource "sim_network" "x" { name = "" }`:                                                            "Empty value",
		"resource \"sim_network\" \"x\" {\n name = \"x\"\n cidr = \"10.0.0.1/16\"\n}":                         "the block is 10.0.0.0/16",
		"resource \"sim_instance\" \"x\" {\n name = \"x\"\n subnet_id = \"sub-1\"\n image = \"debian-13\"\n}": "ReferenceNotFound",
	} {
		tf.config(network + hcl)
		tf.fails(want)
	}
}

func failedUpdate(t *testing.T, tf *terraform) {
	tf.config(estate)
	tf.apply()
	tf.config(strings.Replace(estate, `"small"`, `"large"`, 1))
	tf.fault(simcloud.Fault{Kind: "instance", Op: "update", Status: 500, Count: 1})
	tf.fails("Can't update sim_instance")
	if web, tainted := tf.state("sim_instance.web"); tainted || web["size"] != "small" {
		t.Errorf("a refused update leaves what was; got size %v, tainted %t", web["size"], tainted)
	}
	tf.fault(simcloud.Fault{Kind: "instance", Op: "delete", Status: 500, Count: 1})
	tf.config("")
	tf.fails("Can't delete sim_instance")
	tf.apply()
	if n := tf.objects("instance"); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// mirror installs the provider from a filesystem mirror, as users do.
func mirror(t *testing.T, built string) {
	tf := newTerraform(t, built, simcloud.Config{})
	dir := t.TempDir()
	platform := filepath.Join(dir, "registry.terraform.io", "hykube", "sim", "1.2.3", runtime.GOOS+"_"+runtime.GOARCH)
	if err := os.MkdirAll(platform, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(built, "terraform-provider-sim"), filepath.Join(platform, "terraform-provider-sim_v1.2.3")); err != nil {
		t.Fatal(err)
	}
	rc := filepath.Join(t.TempDir(), "terraform.rc")
	write(t, rc, fmt.Sprintf("provider_installation {\n  filesystem_mirror { path = %q }\n}\n", dir))
	tf.env = append(tf.env, "TF_CLI_CONFIG_FILE="+rc)
	tf.config(network)
	tf.run("init", "-no-color", "-input=false")
	tf.apply()
	if n := tf.objects("network"); n != 1 {
		t.Errorf("%d networks exist, want 1", n)
	}
}
