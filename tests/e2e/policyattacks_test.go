package e2e

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/tests/harness"
)

// policyAttacks are the attacks on the policies of the docs, by the page and the rule.
var policyAttacks = map[string][]attack{
	"policies.md: PlanPolicy/production/two-approvers-for-deletes": append(removals(func(a *attacked, r removal) {
		plan := r.plan(a)
		a.waits(plan, "alice", "bob", "bob")
		if r.spec == "" {
			a.waits(plan, "carol")
		}
		a.applies("dan", plan)
	}), approverAttacks...),
	"tutorial.md: PlanPolicy/production/two-approvers-for-deletes": removals(func(a *attacked, r removal) {
		plan := r.plan(a)
		a.waits(plan, "alice", "alice")
		a.applies("bob", plan)
	}),
	"policies.md: PlanPolicy/automatic/no-destroys": append(removals(func(a *attacked, r removal) {
		plan := a.automatic("eve", r.spec)
		a.waits(plan, "eve")
		a.applies("bob", plan)
	}), automaticAttacks...),
	"policies.md: ClusterPlanPolicy/blast-radius/ten-at-once": blastAttacks,
	"policies.md: ClusterPlanPolicy/cost-tags/cost-centre":    tagAttacks,
	"policies.md: ClusterPlanPolicy/forbidden-types/networks": typeAttacks,
	"policies.md: PlanPolicy/freeze/weekend":                  weekendAttacks,
}

// removal is a way in which a user removes what exists. spec is that of the plan.
type removal struct {
	name, objects, spec string
	act                 func(a *attacked, user string)
}

// plan lets alice remove something and carol make the plan. If the plan itself removes it, alice makes it.
func (r removal) plan(a *attacked) *unstructured.Unstructured {
	user := "carol"
	if r.spec != "" {
		user = "alice"
	}
	return a.plans(user, r.spec)
}

// automatic lets a user make a plan that asks for an automatic approval.
func (a *attacked) automatic(user, spec string) *unstructured.Unstructured {
	a.Helper()
	return a.plans(user, strings.TrimSuffix("approval: Automatic, "+spec, ", "))
}

// ownNetwork returns a network of the administrator, with further fields of lifecycle and spec.
func ownNetwork(name, lifecycle, spec string) string {
	return fmt.Sprintf("apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: %[1]s}\nspec: {name: NS-%[1]s%[2]s}\nlifecycle: {%[3]s}", name, spec, lifecycle)
}

const documentEnd = "\n---\n"

// ownNetworks returns a ResourceSet of networks.
func ownNetworks(keys, spec string) string {
	return "apiVersion: hykube.io/v1alpha1\nkind: ResourceSet\nmetadata: {name: fleet}\nspec:\n  " + keys +
		"\n  template: {apiVersion: sim.hykube.io/v1, kind: sim-network, spec: {" + spec + "}}"
}

// removals returns an attack for each way to remove something. The user who removes is eve in the policy about plans that
// approve themselves, and else alice.
func removals(run func(*attacked, removal)) (all []attack) {
	patch := func(name, patch string) func(*attacked, string) {
		return func(a *attacked, user string) { a.patches(user, name, patch) }
	}
	for _, r := range []removal{
		{name: "delete", objects: ownNetwork("a", "", ""), act: func(a *attacked, user string) { a.deletes(user, "sim-network/a") }},
		{name: "deletecollection", objects: ownNetwork("a", "", ""), act: func(a *attacked, user string) {
			must(a.T, a.client(user, ref("sim-network/a")).DeleteCollection(a.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
		}},
		{name: "forget", objects: ownNetwork("a", "", ""), act: func(a *attacked, user string) {
			a.patches(user, "sim-network/a", `{"lifecycle":{"destroy":false}}`)
			a.deletes(user, "sim-network/a")
		}},
		{name: "taint", objects: ownNetwork("a", "", ""), act: func(a *attacked, user string) {
			a.taints(user, "sim-network/a")
		}},
		{name: "an argument that forces a replacement", objects: ownNetwork("a", "", ""), act: patch("sim-network/a", `{"spec":{"cidr":"10.9.0.0/16"}}`)},
		{name: "a sensitive argument", objects: ownNetwork("a", "", ""), act: patch("sim-network/a", `{"spec":{"cidr":"${sensitive(\"10.9.0.0/16\")}"}}`)},
		{name: "replaceTriggeredBy", objects: ownNetwork("b", "", "") + documentEnd + ownNetwork("a", "replaceTriggeredBy: [sim_network.b]", ""),
			act: patch("sim-network/b", `{"spec":{"tags":{"n":"1"}}}`)},
		{name: "a ConfigMap", objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hosts}\ndata: {cidr: 10.8.0.0/16}" + documentEnd + ownNetwork("a", "", ", cidr: '${configmap.hosts.cidr}'"),
			act: patch("ConfigMap/hosts", `{"data":{"cidr":"10.9.0.0/16"}}`)},
		{name: "the keys of a ResourceSet", objects: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hosts}\ndata: {a: '1', b: '2'}" + documentEnd +
			ownNetworks("forEachFrom: {configMap: {name: hosts}}", `name: "NS-${each.key}"`), act: patch("ConfigMap/hosts", `{"data":{"a":null}}`)},
		{name: "the count of a ResourceSet", objects: ownNetworks("count: 2", `name: "NS-${count.index}"`), act: patch("ResourceSet/fleet", `{"spec":{"count":1}}`)},
		{name: "the template of a ResourceSet", objects: ownNetworks("count: 2", `name: "NS-${count.index}", cidr: 10.8.0.0/16`),
			act: patch("ResourceSet/fleet", `{"spec":{"template":{"spec":{"cidr":"10.9.0.0/16"}}}}`)},
		{name: "a destroy plan", objects: ownNetwork("a", "", ""), spec: "destroy: true", act: func(*attacked, string) {}},
		{name: "a plan that replaces", objects: ownNetwork("a", "", ""), spec: "replace: [sim_network.a]", act: func(*attacked, string) {}},
	} {
		all = append(all, attack{r.name, r.objects, func(a *attacked) {
			a.enforce()
			user := "alice"
			if a.policy.GetName() == "automatic" {
				user = "eve"
			}
			r.act(a, user)
			run(a, r)
		}})
	}
	return all
}

var approverAttacks = []attack{
	{"forget here, import and destroy there", ownNetwork("a", "", ""), func(a *attacked) {
		a.enforce()
		a.patches("alice", "sim-network/a", `{"lifecycle":{"destroy":false}}`)
		a.deletes("alice", "sim-network/a")
		a.waits(a.plans("carol", ""), "alice", "carol", "bob")
		network, err := a.server.cloud.Find(a.Context(), "network", a.text("NS-a"))
		must(a.T, err)
		there := &attacked{T: a.T, server: a.server, ns: a.ns + "-there", policy: a.policy}
		there.prepare("")
		there.creates("alice", "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: b}\nspec: {name: "+a.ns+"-a}\nlifecycle: {import: {id: "+network.ID()+"}}")
		plan := there.plans("alice", "")
		if text := fmt.Sprint(plan.Object["status"]); planned(plan) != "False" || !strings.Contains(text, "Resource is managed already") {
			a.Errorf("the import is planned: %s", text)
		}
		there.deletes("alice", "sim-network/b")
		if n := a.calls("delete", "NS-a"); n > 0 {
			a.Errorf("%d networks were destroyed", n)
		}
	}},
	{"a team of two", ownNetwork("a", "", "") + documentEnd + ownNetwork("b", "", ""), func(a *attacked) {
		a.enforceWith(func(rule map[string]any) { rule["approvals"].(map[string]any)["count"] = int64(1) })
		a.deletes("alice", "sim-network/a")
		a.deletes("bob", "sim-network/b")
		both := a.plans("alice", "")
		a.waits(both, "alice")
		if _, err := a.approves("bob", both); err == nil || !strings.Contains(err.Error(), "those who wrote the changes (bob)") || !strings.Contains(err.Error(), "make a plan with --target") {
			a.Errorf("the refusal is %v", err)
		}
		a.waits(both)
		a.applies("bob", a.plans("alice", "targets: [sim_network.a]"))
		a.applies("alice", a.plans("bob", "targets: [sim_network.b]"))
	}},
	{"a plan that was made again with other changes", ownNetwork("a", "", "") + documentEnd + ownNetwork("b", "", ""), func(a *attacked) {
		a.enforce()
		a.deletes("alice", "sim-network/a")
		a.creates("carol", "apiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: release}\nspec: {targets: [sim_network.a]}")
		read := a.settled("release")
		a.waits(read, "bob")
		a.deletes("carol", "Plan/release")
		a.deletes("alice", "sim-network/b")
		a.creates("carol", "apiVersion: hykube.io/v1alpha1\nkind: Plan\nmetadata: {name: release}\nspec: {targets: [sim_network.b]}")
		made := a.settled("release")
		if _, err := a.approves("dan", read); err == nil || !strings.Contains(err.Error(), "read the plan again") {
			a.Errorf("the approval of the plan that was read: %v", err)
		}
		a.waits(made, "dan") // the approval of the former plan does not count
		a.applies("bob", made)
	}},
}

var automaticAttacks = []attack{
	{"an allowed plan", "", func(a *attacked) {
		a.enforce()
		a.creates("eve", ownNetwork("a", "", ""))
		a.ends(a.automatic("eve", ""), "Applied")
	}},
	{"import", "", func(a *attacked) {
		existing, err := a.server.cloud.Create(a.Context(), "network", map[string]any{"name": a.text("NS-a"), "cidr": "10.0.0.0/16"})
		must(a.T, err)
		a.enforce()
		a.creates("eve", ownNetwork("a", "import: {id: "+existing.ID()+"}", ", cidr: 10.0.0.0/16"))
		a.waits(a.automatic("eve", ""), "eve")
	}},
	{"invoke", onSubnet + documentEnd +
		"apiVersion: sim.hykube.io/v1\nkind: sim-instance\nmetadata: {name: i}\nspec: {name: NS-i, subnet_id: '${sim_subnet.s.id}', image: debian-13}" + documentEnd +
		"apiVersion: sim.hykube.io/v1\nkind: action-sim-reboot\nmetadata: {name: now}\nspec: {instance_id: '${sim_instance.i.id}'}", func(a *attacked) {
		before := a.calls("reboot", "NS-i")
		a.enforce()
		a.waits(a.automatic("eve", "invoke: [action.sim_reboot.now]"), "eve")
		if n := a.calls("reboot", "NS-i"); n != before {
			a.Errorf("%d reboots, then %d", before, n)
		}
	}},
	{"the author lost the right to approve", "", func(a *attacked) {
		a.server.kubectl(a.T, "", "create", "rolebinding", "lora", "-n", a.ns, "--clusterrole=hykube:plan-approver", "--user=lora")
		must(a.T, harness.Within(30*time.Second, func() error {
			_, err := a.client("lora", ref("Plan/x")).List(a.Context(), metav1.ListOptions{})
			return err
		}))
		a.enforceAs("lora")
		a.server.kubectl(a.T, "", "delete", "rolebinding", "lora", "-n", a.ns)
		must(a.T, harness.Within(30*time.Second, func() error {
			if _, err := a.client("lora", ref("Plan/x")).List(a.Context(), metav1.ListOptions{}); err == nil {
				return errNotYet
			}
			return nil
		}))
		a.creates("eve", ownNetwork("a", "", ""))
		a.waits(a.automatic("eve", ""), "eve")
	}},
	{"after a plan that failed", "", func(a *attacked) {
		a.enforce()
		a.creates("eve", ownNetwork("a", "", ", cidr: 10.0.0.0/16")+documentEnd+
			"apiVersion: sim.hykube.io/v1\nkind: sim-subnet\nmetadata: {name: s}\nspec: {name: NS-s, network_id: '${sim_network.a.id}', cidr: 192.168.0.0/24}")
		a.ends(a.automatic("eve", ""), "ApplyFailed")
		a.ends(a.automatic("eve", "refreshOnly: true, refresh: All"), "NoChanges") // it has no record, so the last plan is the failed one
		a.creates("eve", ownNetwork("b", "", ""))
		a.waits(a.automatic("eve", ""), "eve")
	}},
}

// elevenNetworks is a ResourceSet with one instance more than the rule permits to remove.
func elevenNetworks(more string) string {
	return ownNetworks("count: 11"+more, `name: "NS-${count.index}", cidr: 10.8.0.0/16`)
}

var blastAttacks = []attack{
	{"an allowed plan", elevenNetworks(""), func(a *attacked) {
		a.enforce()
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"count":1}}`)
		a.applies("bob", a.plans("carol", ""))
	}},
	{"the count of a ResourceSet", elevenNetworks(""), func(a *attacked) {
		a.enforce()
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"count":0}}`)
		a.refused(a.plans("carol", ""))
	}},
	{"the template of a ResourceSet", elevenNetworks(""), func(a *attacked) {
		a.enforce()
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"template":{"spec":{"cidr":"10.9.0.0/16"}}}}`)
		a.refused(a.plans("carol", ""))
	}},
	{"the waves of a rollout", elevenNetworks("\n  rollout: {waves: [1, 2], pause: 1s}"), func(a *attacked) {
		a.enforce()
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"template":{"spec":{"cidr":"10.9.0.0/16"}}}}`)
		a.refused(a.plans("carol", ""))
	}},
	{"forget", elevenNetworks(""), func(a *attacked) {
		a.enforce()
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"template":{"lifecycle":{"destroy":false}}}}`)
		a.deletes("alice", "ResourceSet/fleet")
		a.refused(a.plans("carol", ""))
	}},
	{"a destroy plan", elevenNetworks(""), func(a *attacked) {
		a.enforce()
		a.refused(a.plans("alice", "destroy: true"))
	}},
	{"an automatic stack", elevenNetworks(""), func(a *attacked) {
		a.enforce()
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"count":0}}`)
		a.refused(a.stackPlan("alice"))
	}},
	{"approved before the policy", elevenNetworks(""), func(a *attacked) {
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"count":0}}`)
		plan := a.plans("carol", "")
		a.enforce()
		a.waits(plan, "bob")
	}},
}

// stackPlan lets a user make an automatic stack of all objects of the namespace, and returns its first plan.
func (a *attacked) stackPlan(user string) *unstructured.Unstructured {
	a.Helper()
	a.creates(user, "apiVersion: hykube.io/v1alpha1\nkind: Stack\nmetadata: {name: all}\nspec: {plan: {settle: 1s}, approval: Automatic}")
	must(a.T, harness.Within(time.Minute, func() error {
		_, err := a.get("Plan/all-1")
		return err
	}))
	return a.settled("all-1")
}

var tagAttacks = []attack{
	{"an allowed plan", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ", tags: {cost-centre: '7'}"))
		a.applies("bob", a.plans("carol", ""))
	}},
	untagged("no tags", ownNetwork("a", "", "")),
	untagged("other tags", ownNetwork("a", "", ", tags: {team: a}")),
	untagged("sensitive tags", ownNetwork("a", "", ", tags: '${sensitive({team = \"a\"})}'")),
	untagged("an empty value", ownNetwork("a", "", ", tags: {cost-centre: ''}")),
	untagged("a value of null", ownNetwork("a", "", ", tags: '${{cost-centre = null}}'")),
	untagged("a ResourceSet", ownNetworks("count: 1", `name: "NS-a"`)),
	{"unknown tags", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ", tags: '${timestamp() == \"\" ? {} : {a = \"b\"}}'"))
		a.unmade(a.plans("carol", ""))
	}},
	{"an unknown empty value", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ", tags: {cost-centre: '${timestamp() == \"\" ? \"7\" : \"\"}'}"))
		a.unmade(a.plans("carol", ""))
	}},
	{"removed later", ownNetwork("a", "", ", tags: {cost-centre: '7'}"), func(a *attacked) {
		a.enforce()
		a.patches("alice", "sim-network/a", `{"spec":{"tags":null}}`)
		a.refused(a.plans("carol", ""))
	}},
	{"import", "", func(a *attacked) {
		existing, err := a.server.cloud.Create(a.Context(), "network", map[string]any{"name": a.text("NS-a"), "cidr": "10.0.0.0/16"})
		must(a.T, err)
		a.enforce()
		a.creates("alice", ownNetwork("a", "import: {id: "+existing.ID()+"}", ", cidr: 10.0.0.0/16"))
		a.refused(a.plans("carol", ""))
	}},
	{"an automatic stack", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ""))
		a.refused(a.stackPlan("alice"))
	}},
}

// untagged is an attack with a network that has no cost centre.
func untagged(name, object string) attack {
	return attack{name, "", func(a *attacked) {
		a.enforce()
		a.creates("alice", object)
		a.refused(a.plans("carol", ""))
	}}
}

// unmade approves a plan of a network, and fails the test if the network was created.
func (a *attacked) unmade(plan *unstructured.Unstructured) {
	a.Helper()
	if approved, err := a.approves("bob", plan); !approved {
		a.Fatalf("approve %s: %v", plan.GetName(), err)
	}
	a.ends(plan, "Stale")
	if n := a.calls("create", "NS-a"); n > 0 {
		a.Errorf("%d networks were created", n)
	}
}

var typeAttacks = []attack{
	{"the platform team", "", func(a *attacked) {
		a.enforce()
		a.creates("paul", ownNetwork("a", "", ""))
		a.applies("paul", a.plans("paul", ""))
	}},
	ofPlatform("create", "", ownNetwork("a", "", "")),
	ofPlatform("a ResourceSet", "", ownNetworks("count: 1", `name: "NS-a"`)),
	ofPlatform("taint", ownNetwork("a", "", ""), ""),
	ofPlatform("a deprecated name of the type", onSubnet, simServer),
	ofPlatform("moved from the deprecated name", onSubnet+documentEnd+simServer, strings.Replace(simServer, "sim-server", "sim-instance", 1)+"\nlifecycle: {moved: {from: sim_server.web}}"),
	ofPlatform("state mv", ownNetwork("old", "", ""), strings.Replace(ownNetwork("new", "moved: {from: sim_network.old}", ""), "NS-new", "NS-old", 1)),
	{"import", "", func(a *attacked) {
		existing, err := a.server.cloud.Create(a.Context(), "network", map[string]any{"name": a.text("NS-a"), "cidr": "10.0.0.0/16"})
		must(a.T, err)
		a.enforce()
		a.creates("alice", ownNetwork("a", "import: {id: "+existing.ID()+"}", ", cidr: 10.0.0.0/16"))
		plan := a.plans("carol", "")
		a.waits(plan, "alice", "bob")
		a.applies("paul", plan)
	}},
	{"the plan of a platform member", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ""))
		a.waits(a.plans("paul", ""), "alice", "bob")
	}},
	{"the automatic stack of a platform member", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ""))
		plan := a.stackPlan("paul")
		a.waits(plan, "alice", "bob")
		a.applies("paul", plan)
	}},
	{"an approver who left the team", "", func(a *attacked) {
		a.enforce()
		a.creates("alice", ownNetwork("a", "", ""))
		plan := a.plans("pia", "")
		a.left("pia")
		a.waits(plan, "pia", "bob")
	}},
}

const (
	onSubnet = "apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: base}\nspec: {name: NS-base}" + documentEnd +
		"apiVersion: sim.hykube.io/v1\nkind: sim-subnet\nmetadata: {name: s}\nspec: {name: NS-s, network_id: '${sim_network.base.id}', cidr: 10.0.1.0/24}"
	simServer = "apiVersion: sim.hykube.io/v1\nkind: sim-server\nmetadata: {name: web}\nspec: {name: NS-web, subnet_id: '${sim_subnet.s.id}', image: debian-13}"
)

// ofPlatform is an attack by users who are not in the platform team. Without an object, alice taints the network of before.
func ofPlatform(name, before, object string) attack {
	return attack{name, before, func(a *attacked) {
		a.enforce("sim_dns_zone", "sim_instance") // which has a deprecated name
		if object == "" {
			a.taints("alice", "sim-network/a")
		} else {
			a.creates("alice", object)
		}
		for from, old := range map[string]string{"sim_server.web": "sim-server/web", "sim_network.old": "sim-network/old"} {
			if strings.Contains(object, "from: "+from) {
				a.deletes("alice", old)
			}
		}
		plan := a.plans("carol", "")
		a.waits(plan, "alice", "bob")
		a.applies("paul", plan)
	}}
}

// left takes a user out of its special group, and waits until the server has read that.
func (a *attacked) left(user string) {
	a.Helper()
	a.server.leave(a.T, user)
	review := a.object("apiVersion: authentication.k8s.io/v1\nkind: SelfSubjectReview")
	must(a.T, harness.Within(time.Minute, func() error {
		who, err := a.server.as(a.T, user).Resource(review.GroupVersionKind().GroupVersion().WithResource("selfsubjectreviews")).Create(a.Context(), review, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		groups, _, _ := unstructured.NestedStringSlice(who.Object, "status", "userInfo", "groups")
		if strings.Contains(fmt.Sprint(groups), "platform") || strings.Contains(fmt.Sprint(groups), "on-call") {
			return errNotYet
		}
		return nil
	}))
}

var weekendAttacks = []attack{
	{"a working day", "", func(a *attacked) {
		a.on(time.Wednesday)
		a.creates("alice", ownNetwork("a", "", ""))
		a.applies("bob", a.plans("carol", ""))
	}},
	{"a plan of the week", "", func(a *attacked) {
		a.on(time.Wednesday)
		a.creates("alice", ownNetwork("a", "", ""))
		plan := a.plans("carol", "")
		a.on(time.Saturday)
		a.waits(plan, "bob", "alice", "carol")
		a.applies("olga", plan)
	}},
	{"an approval of the week", "", func(a *attacked) {
		// The rule of the tutorial asks for a second approval, so that the first one is of Wednesday.
		a.on(time.Wednesday)
		a.creates("dora", "apiVersion: hykube.io/v1alpha1\nkind: PlanPolicy\nmetadata: {name: two}\nspec: {rules: [{name: two, when: 'true', effect: RequireApprovals, approvals: {count: 2}}]}")
		a.creates("alice", ownNetwork("a", "", ""))
		plan := a.plans("carol", "")
		a.waits(plan, "bob")
		a.on(time.Sunday)
		a.waits(plan, "alice")
		a.applies("olga", plan)
	}},
	{"an automatic stack", "", func(a *attacked) {
		a.on(time.Saturday)
		a.creates("alice", ownNetwork("a", "", ""))
		plan := a.stackPlan("alice")
		a.waits(plan, "alice")
		a.applies("olga", plan)
	}},
	{"an automatic stack of a member of on-call", "", func(a *attacked) {
		a.on(time.Saturday)
		a.creates("alice", ownNetwork("a", "", ""))
		a.waits(a.stackPlan("olga"), "alice")
	}},
	{"AllowAutomatic", "", func(a *attacked) {
		a.on(time.Saturday)
		a.creates("dora", "apiVersion: hykube.io/v1alpha1\nkind: PlanPolicy\nmetadata: {name: any}\nspec: {rules: [{name: any, when: 'true', effect: AllowAutomatic}]}")
		a.creates("eve", ownNetwork("a", "", ""))
		a.waits(a.automatic("eve", ""), "eve")
	}},
	{"an approver who left on-call", "", func(a *attacked) {
		a.on(time.Saturday)
		a.creates("dora", "apiVersion: hykube.io/v1alpha1\nkind: PlanPolicy\nmetadata: {name: two}\nspec: {rules: [{name: two, when: 'true', effect: RequireApprovals, approvals: {count: 2}}]}")
		a.creates("alice", ownNetwork("a", "", ""))
		plan := a.plans("carol", "")
		a.waits(plan, "lena")
		a.left("lena")
		a.waits(plan, "bob")
		a.applies("olga", plan)
	}},
	{"a rollout of the week", ownNetworks("count: 2\n  rollout: {maxUnavailable: 1, waves: [1], pause: 5s}", `name: "NS-${count.index}", tags: {release: "1"}`), func(a *attacked) {
		a.on(time.Wednesday)
		a.patches("alice", "ResourceSet/fleet", `{"spec":{"template":{"spec":{"tags":{"release":"2"}}}}}`)
		plan := a.plans("carol", "")
		if approved, err := a.approves("bob", plan); !approved {
			a.Fatal(err)
		}
		a.ends(plan, "RolloutPaused")
		a.on(time.Saturday)
		must(a.T, harness.Within(time.Minute, func() error {
			now, err := a.get("Plan/" + plan.GetName())
			if err == nil && !strings.Contains(fmt.Sprint(now.Object["status"]), "PlanPolicy/freeze/weekend") {
				err = errNotYet
			}
			return err
		}))
		if n := a.calls("update", "NS-*"); n != 1 {
			a.Errorf("%d instances were updated", n)
		}
	}},
}

// on writes the policy as if it was noon of a weekday.
func (a *attacked) on(day time.Weekday) {
	a.Helper()
	a.enforce("Europe/Berlin", zoneOf(day))
}
