// Package chaos kills, stops and cuts off a real server at random moments of plans and applies, and lets the log of the simulated
// cloud judge: nothing exists twice, nothing exists that no object manages, and no acknowledged write is lost.
//
//	go test ./tests/chaos -seed 7 -rounds 500 -timeout 0
//
// A failed round prints its seed and its number.
package chaos

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/harness/database"
	"github.com/hykube/hykube/tests/simcloud"
	"github.com/hykube/hykube/tests/temporal"
)

var (
	seed    = flag.Uint64("seed", 1, "seed of the edits and the faults")
	rounds  = flag.Int("rounds", 5, "rounds of each kind of database")
	workers = flag.Int("workers", 0, "workers of TestChaosWithWorkers; 0 skips it")
	only    = flag.String("fault", "", "only the faults whose names contain this text")
)

const (
	// networks is the number of names of networks, each with a subnet of its own that may exist.
	networks = 10
	// maxInstances is the maximum count of the ResourceSet.
	maxInstances = 12
	// endLimit is the time within which a plan ends after a fault, or names the person who must act. A minute is the promise; other tests
	// may use the machine, too.
	endLimit = 2 * time.Minute
	// settleLimit is the maximum number of plans after a fault until nothing is left to do.
	settleLimit = 8
)

// TestChaosOnSQLite and TestChaosOnPostgreSQL run rounds of edits, faults and judgement.
func TestChaosOnSQLite(t *testing.T) { newWorld(t).run() }

func TestChaosOnPostgreSQL(t *testing.T) {
	dsn, restart := database.RestartablePostgreSQL(t)
	w := newWorld(t, "--datastore-endpoint", dsn, "--create-database")
	w.faults = append(w.faults, fault{"the database restarts", restart})
	w.run()
}

// TestChaosWithWorkers has workers beside the server, on one PostgreSQL and one Temporal.
func TestChaosWithWorkers(t *testing.T) {
	if *workers == 0 {
		t.Skip("make chaos runs it, with -workers")
	}
	key := filepath.Join(t.TempDir(), "root.key")
	if err := os.WriteFile(key, []byte(base64.StdEncoding.EncodeToString(make([]byte, 32))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	dsn, restart := database.RestartablePostgreSQL(t)
	flags := append([]string{"--datastore-endpoint", dsn, "--encryption-key-file", key}, temporal.Serve(t)...)
	w := newWorld(t, append([]string{"--create-database"}, flags...)...)
	for range *workers {
		worker := &harness.Server{Worker: true, Env: w.server.Env, Args: flags}
		worker.Serve(t)
		w.workers = append(w.workers, worker)
	}
	w.faults = slices.DeleteFunc(w.faults, func(f fault) bool { return strings.Contains(f.name, "Temporal") })
	w.faults = append(w.faults, fault{"the database restarts", restart}, fault{"a worker is killed", w.killWorker}, fault{"a worker stops and starts", w.restartWorker},
		fault{"a worker is suspended", w.suspendWorker}, fault{"a worker is suspended for longer than its lease", w.loseWorker})
	w.run()
}

// network is the wanted state of a network, and of its subnet.
type network struct {
	exists, subnet bool
	// cidr and tag are counters: another cidr replaces the network and its subnet, another tag updates the network.
	cidr, tag int
}

// moduleFile is the file of the Module.
const moduleFile = `
variable "number" {}
variable "tag" {}
resource "sim_network" "main" {
  count = var.number
  name  = "module-${count.index}"
  cidr  = "10.201.0.0/16"
  tags  = { v = var.tag }
}
`

// world is a server, a cloud, and what the cloud should have.
type world struct {
	*testing.T
	random   *rand.Rand
	cloud    *harness.Cloud
	server   *harness.Server
	workers  []*harness.Server
	faults   []fault
	networks [networks]network
	// instances and tag are those of the ResourceSet, and of the Module.
	instances, tag int
	// plans is the number of plans, and unknown that of the creates that somebody had to look after.
	plans, unknown int
}

// fault is something that happens to a server.
type fault struct {
	name string
	do   func() error
}

func newWorld(t *testing.T, args ...string) *world {
	w := &world{T: t, random: rand.New(rand.NewPCG(*seed, 0)), cloud: harness.NewCloud(t, simcloud.Config{})}
	err := w.cloud.Change(t.Context(), func(s *simcloud.Settings) {
		s.IgnoreClientTokens = true // a repeated create makes a second object
		s.SetLatency(simcloud.Latency{Delay: simcloud.Duration(20 * time.Millisecond), Jitter: simcloud.Duration(120 * time.Millisecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	w.server = &harness.Server{Env: []string{"SIMCLOUD_ADDRESS=" + w.cloud.Address}, Args: args}
	w.server.Serve(t)
	err = w.server.Install(t.Context(), harness.Provider{Name: "sim", Source: "hykube/sim", Environment: []string{"SIMCLOUD_ADDRESS"}})
	if err != nil {
		t.Fatal(err)
	}
	w.kubectl("", "create", "namespace", "chaos")
	w.kubectl("", "create", "configmap", "module-tf", "--from-literal=main.tf="+moduleFile)
	w.faults = []fault{
		{"the server is killed", w.kill},
		{"the server is killed", w.kill},
		{"the server stops and starts", w.restart},
		{"the server is killed, and Temporal's files are lost", w.loseTemporal},
		{"the server is suspended", w.suspend},
		{"the providers are killed", w.killProviders},
		{"answers of the cloud are lost", w.loseAnswers},
		{"nothing happens", func() error { return nil }},
	}
	return w
}

// kubectl runs kubectl in the namespace, and returns its output.
func (w *world) kubectl(stdin string, args ...string) string {
	w.Helper()
	out, err := w.try(stdin, args...)
	if err != nil {
		w.Fatalf("kubectl %s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (w *world) try(stdin string, args ...string) (string, error) {
	return w.server.Kubectl(w.Context(), stdin, append(args, "-n", "chaos")...)
}

func (w *world) run() {
	w.faults = slices.DeleteFunc(w.faults, func(f fault) bool { return !strings.Contains(f.name, *only) })
	for round := range *rounds {
		w.edit()
		plan := w.newPlan()
		f := w.faults[w.random.IntN(len(w.faults))]
		delay := time.Duration(w.random.IntN(1200)) * time.Millisecond
		w.Logf("seed %d, round %d: %s after %s; %d networks, %d instances", *seed, round, f.name, delay, w.wanted(), w.instances)
		time.Sleep(delay)
		if err := f.do(); err != nil {
			w.Fatalf("%s: %v", f.name, err)
		}
		w.awaitEnd(plan)
		w.settle()
		w.judge()
		if w.Failed() {
			w.FailNow()
		}
	}
	w.Logf("%d creates had an unknown outcome", w.unknown)
}

func (w *world) wanted() (n int) {
	for i := range w.networks {
		if w.networks[i].exists {
			n++
		}
	}
	return n
}

// edit changes some of the wanted state, and records it. The server has acknowledged it then.
func (w *world) edit() {
	var gone []string
	for i := range w.networks {
		n := &w.networks[i]
		switch w.random.IntN(8) {
		case 0, 1, 2:
			n.subnet = n.exists
			n.exists = true
		case 3:
			n.tag++
		case 4:
			n.cidr++
		case 5:
			n.exists, n.subnet = false, false
		case 6:
			n.subnet = false
		}
		if !n.subnet {
			gone = append(gone, fmt.Sprintf("sim-subnet/s%d", i))
		}
		if !n.exists {
			gone = append(gone, fmt.Sprintf("sim-network/n%d", i))
		}
	}
	w.instances = w.random.IntN(maxInstances + 1)
	w.tag += w.random.IntN(2)
	w.kubectl(w.manifest(), "apply", "--server-side", "--force-conflicts", "-f", "-")
	w.kubectl("", append([]string{"delete", "--ignore-not-found", "--wait=false"}, gone...)...)
}

func (w *world) manifest() string {
	var text strings.Builder
	text.WriteString("apiVersion: hykube.io/v1alpha1\nkind: ProviderConfig\nmetadata: {name: sim}\nspec: {provider: sim, limits: {concurrency: 6}}\n")
	fmt.Fprintf(&text, "---\napiVersion: hykube.io/v1alpha1\nkind: ResourceSet\nmetadata: {name: many}\nspec:\n  count: %d\n  template:\n    apiVersion: sim.hykube.io/v1\n"+
		"    kind: sim-network\n    spec: {name: \"many-${count.index}\", cidr: 10.200.0.0/16, tags: {v: \"%d\"}}\n", w.instances, w.tag)
	fmt.Fprintf(&text, "---\napiVersion: hykube.io/v1alpha1\nkind: Module\nmetadata: {name: module}\nspec:\n  source: {configMap: module-tf}\n  inputs: {number: %d, tag: \"%d\"}\n", w.instances/2, w.tag)
	for i, n := range w.networks {
		if n.exists {
			fmt.Fprintf(&text, "---\napiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: n%d}\nspec: {name: n%d, cidr: %s, tags: {v: \"%d\"}}\n", i, i, n.block(i, 16), n.tag)
		}
		if n.subnet {
			fmt.Fprintf(&text, "---\napiVersion: sim.hykube.io/v1\nkind: sim-subnet\nmetadata: {name: s%d}\nspec: {name: s%d, network_id: \"${sim_network.n%d.id}\", cidr: %s}\n", i, i, i, n.block(i, 24))
		}
	}
	return text.String()
}

// block returns the addresses of a network, or of the subnet in it.
func (n network) block(i, bits int) string { return fmt.Sprintf("10.%d.0.0/%d", i*20+n.cidr%20, bits) }

// newPlan makes a plan that approves itself, and returns its name.
func (w *world) newPlan() string {
	w.plans++
	name := fmt.Sprintf("p%d", w.plans)
	w.kubectl(fmt.Sprintf("apiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: %s}\nspec: {approval: Automatic}\n", name), "create", "-f", "-")
	return name
}

// awaitEnd waits until a plan has ended, or needs a person.
func (w *world) awaitEnd(name string) *v1alpha1.Plan {
	w.Helper()
	p := &v1alpha1.Plan{}
	ctx, cancel := context.WithTimeout(w.Context(), endLimit)
	defer cancel()
	err := harness.Poll(ctx, 100*time.Millisecond, func() error {
		out, err := w.try("", "get", "plan", name, "-o", "json")
		if err != nil {
			return err
		}
		*p = v1alpha1.Plan{}
		if err := json.Unmarshal([]byte(out), p); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady); p.Ended() || ready != nil && ready.Reason == v1alpha1.ReasonAwaitingApproval {
			return nil
		}
		return errors.New("it has not ended")
	})
	if err != nil {
		w.Fatalf("plan %s: %v\n%s%s", name, err, w.kubectl("", "hykube", "status", name), w.kubectl("", "get", "plan", name, "-o", "yaml"))
	}
	return p
}

// settle settles creates with an unknown outcome, as a person does, and makes plans until nothing is left to do.
func (w *world) settle() {
	for range settleLimit {
		w.resolve()
		p := w.awaitEnd(w.newPlan())
		if !p.Ended() { // it warns that an earlier create may have made a resource; resolve has looked
			w.kubectl("", "hykube", "approve", p.Name, "--digest", p.Status.Digest)
			p = w.awaitEnd(p.Name)
		}
		if s := p.Status.Summary; !p.PlanFailed() && s != nil && s.Create+s.Update+s.Replace+s.Delete+s.Forget+s.Read == 0 {
			return
		}
	}
	w.Fatalf("after %d plans, changes are left:\n%s", settleLimit, w.kubectl("", "hykube", "plan"))
}

// resolve settles the resources without an ID by what the cloud has under their names.
func (w *world) resolve() {
	found := map[string]map[string][]simcloud.Object{"sim_network": w.objects("network"), "sim_subnet": w.objects("subnet")}
	for _, r := range w.resources() {
		address, inModule := strings.CutPrefix(r.address, "module.module.")
		kind, name, _ := strings.Cut(address, ".")
		name = strings.NewReplacer("[", "-", "]", "").Replace(name)
		if inModule {
			name = strings.Replace(name, "main", "module", 1)
		}
		exists := found[kind][name]
		switch {
		case r.id != "" && r.reason != v1alpha1.ReasonCreateUnknown:
		case len(exists) > 1:
			w.Fatalf("%s exists %d times", r.address, len(exists))
		case len(exists) == 1 && inModule: // it cannot be imported
			w.unknown++
			if err := w.cloud.Destroy(w.Context(), "network", exists[0].ID()); err != nil {
				w.Fatal(err)
			}
			if r.reason == v1alpha1.ReasonCreateUnknown {
				w.kubectl("", "hykube", "resolve", r.address, "--retry", "--auto-approve")
			}
		case len(exists) == 1:
			w.unknown++
			if r.reason == v1alpha1.ReasonCreateUnknown {
				w.kubectl("", "hykube", "resolve", r.address, "--adopt", exists[0].ID(), "--auto-approve")
			} else { // the provider answered with an error after the create
				w.kubectl("", "hykube", "import", r.address, exists[0].ID(), "--auto-approve")
			}
		case r.reason == v1alpha1.ReasonCreateUnknown:
			w.unknown++
			w.kubectl("", "hykube", "resolve", r.address, "--retry", "--auto-approve")
		}
	}
}

// resource is a resource as its status shows it.
type resource struct{ address, id, reason string }

// resources returns all resources, with the instances of the set and of the Module.
func (w *world) resources() (all []resource) {
	for _, args := range [][]string{{"get", "sim-network", "-o", "json"}, {"get", "sim-subnet", "-o", "json"}, {"hykube", "instances", "many", "-o", "json"}, {"hykube", "instances", "module/module", "-o", "json"}} {
		var list unstructured.UnstructuredList
		if err := json.Unmarshal([]byte(w.kubectl("", args...)), &list); err != nil {
			w.Fatal(err)
		}
		for _, u := range list.Items {
			if u.GetDeletionTimestamp() != nil {
				continue
			}
			kind, name := strings.ReplaceAll(u.GetKind(), "-", "_"), u.GetName()
			r := resource{address: kind + "." + name}
			if own, ok := strings.CutPrefix(name, "module.module:"); ok {
				r.address = "module.module." + kind + "." + own
			}
			r.id, _, _ = unstructured.NestedString(u.Object, "status", "attributes", "id")
			r.reason, _ = condition.Find(&u, v1alpha1.ConditionReady)["reason"].(string)
			all = append(all, r)
		}
	}
	return all
}

// objects returns the objects of the cloud by name.
func (w *world) objects(kind string) map[string][]simcloud.Object {
	all, err := w.cloud.Objects(w.Context(), kind, "")
	if err != nil {
		w.Fatal(err)
	}
	found := map[string][]simcloud.Object{}
	for _, o := range all {
		found[o.Name()] = append(found[o.Name()], o)
	}
	return found
}

// judge compares the cloud with what was recorded. Each wanted object exists once, with its arguments, and nothing else exists.
func (w *world) judge() {
	want := map[string]map[string]string{"network": {}, "subnet": {}}
	for i, n := range w.networks {
		if n.exists {
			want["network"][fmt.Sprintf("n%d", i)] = n.block(i, 16)
		}
		if n.subnet {
			want["subnet"][fmt.Sprintf("s%d", i)] = n.block(i, 24)
		}
	}
	for i := range w.instances {
		want["network"][fmt.Sprintf("many-%d", i)] = "10.200.0.0/16"
	}
	for i := range w.instances / 2 {
		want["network"][fmt.Sprintf("module-%d", i)] = "10.201.0.0/16"
	}
	for kind, names := range want {
		found := w.objects(kind)
		for _, name := range slices.Sorted(maps.Keys(found)) {
			if cidr, ok := names[name]; !ok {
				w.Errorf("the %s %s exists, and no object manages it", kind, name)
			} else if has := fmt.Sprint(found[name][0]["cidr"]); has != cidr {
				w.Errorf("the %s %s has the block %s, and its object %s", kind, name, has, cidr)
			}
			if n := len(found[name]); n > 1 {
				w.Errorf("the %s %s exists %d times; the calls: %s", kind, name, n, w.callsOf(name))
			}
		}
		for name := range names {
			if len(found[name]) == 0 {
				w.Errorf("the %s %s is missing", kind, name)
			}
		}
	}
	if out, err := w.try("", "hykube", "plan", "--refresh=All", "--detailed-exitcode"); err != nil {
		w.Errorf("a plan that reads all finds changes: %v\n%s", err, out)
	}
}

// callsOf returns the calls to the cloud for a name.
func (w *world) callsOf(name string) string {
	calls, err := w.cloud.Calls(w.Context(), simcloud.Filter{Name: name})
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, c := range calls {
		fmt.Fprintf(&text, "\n%s %s %s, status %d, effect %t", c.Time.UTC().Format(time.TimeOnly+".000"), c.Op, c.Object, c.Status, c.Effect)
	}
	return text.String()
}

func (w *world) kill() error {
	w.server.Kill()
	return w.server.Start(w.Context())
}

// worker returns one of the workers.
func (w *world) worker() *harness.Server { return w.workers[w.random.IntN(len(w.workers))] }

func (w *world) killWorker() error {
	worker := w.worker()
	worker.Kill()
	return worker.Start(w.Context())
}

func (w *world) restartWorker() error {
	worker := w.worker()
	return errors.Join(worker.Stop(), worker.Start(w.Context()))
}

func (w *world) suspendWorker() error {
	worker := w.worker()
	if err := worker.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(time.Duration(1+w.random.IntN(4)) * time.Second)
	return worker.Signal(syscall.SIGCONT)
}

// loseWorker suspends a worker until the server has ended its lease. The worker ends when it runs again.
func (w *world) loseWorker() error {
	worker := w.worker()
	if err := worker.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(25 * time.Second)
	if err := worker.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := worker.Ended(time.Minute); err == nil {
		return errors.New("the worker ended without an error")
	}
	return worker.Start(w.Context())
}

func (w *world) loseTemporal() error {
	w.server.Kill()
	return errors.Join(os.RemoveAll(filepath.Join(w.server.Data(), "temporal")), w.server.Start(w.Context()))
}

func (w *world) restart() error {
	return errors.Join(w.server.Stop(), w.server.Start(w.Context()))
}

// suspend stops the process for a while, as a virtual machine that moves is.
func (w *world) suspend() error {
	if err := w.server.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(time.Duration(1+w.random.IntN(4)) * time.Second)
	return w.server.Signal(syscall.SIGCONT)
}

// killProviders kills the processes of the providers, while a create runs if one begins within a second.
func (w *world) killProviders() error {
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	_ = harness.Poll(ctx, 5*time.Millisecond, func() error {
		if n, err := w.cloud.CountCalls(ctx, simcloud.Filter{Op: "create", Pending: true}); err != nil || n == 0 {
			return errors.New("no create runs")
		}
		return nil
	})
	err := exec.CommandContext(w.Context(), "pkill", "-9", "-f", filepath.Join(w.server.Data(), "providers")).Run()
	if none := new(exec.ExitError); errors.As(err, &none) && none.ExitCode() == 1 { // no process runs
		return nil
	}
	return err
}

// loseAnswers lets the cloud do some creates, and close the connections without an answer.
func (w *world) loseAnswers() error {
	_, err := w.cloud.Fault(w.Context(), simcloud.Fault{
		Kind: "network", Op: "create", When: simcloud.After, Action: simcloud.ActionClose, Count: 1 + w.random.IntN(3),
	})
	return err
}
