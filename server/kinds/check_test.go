package kinds_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Objects are judged as they are written, together, and nothing is stored.
func TestCheck(t *testing.T) {
	h := newFixture(t, sim())
	for reason, test := range map[string]struct {
		documents string
		want      []string
	}{
		"what is right": {"sim-network a {name: n}\nsim-network b {name: '${sim_network.a.id}'}", nil},
		"what is in another namespace or on the server": {"sim-network a {name: '${sim_network.gone.id} ${namespace.x.sim_network.yonder.id}'}", nil},
		"all mistakes of all objects": {"sim-network a {mtu: abc, nmae: x}\nsim-netwrok b {}\naws/aws-vpc c {}", []string{
			"0 Error spec.mtu: Invalid value", "0 Error spec.name: Required value", "0 Error spec.nmae: Forbidden: unknown field",
			`1 Error kind: provider "sim" has no kind "sim-netwrok"; did you mean "sim-network"?`, `2 Error apiVersion: no provider "aws" is installed, and no Provider among these objects has that name`}},
		"a kind of a provider among the objects": {"sim-network a {name: n}\naws/aws-vpc c {}\nProvider aws {source: hashicorp/aws}", nil},
		"a configuration of no provider":         {"ProviderConfig a {provider: siim}\nProviderConfig b {provider: aws}\nProviderConfig c {provider: sim}\nProvider aws {source: x}", []string{`0 Error spec.provider: no provider "siim" is installed, and no Provider among these objects has that name; did you mean "sim"?`}},
		"two that refer to each other": {"sim-network a {name: '${sim_network.b.id}'}\nsim-network b {name: '${sim_network.a.id}'}\nsim-network c {name: '${sim_network.a.id}'}",
			[]string{"0 Error : refers to itself in a cycle, so no plan can order the objects: sim_network.a -> sim_network.b -> sim_network.a"}},
		"a longer cycle, through dependsOn": {"sim-network a {name: '${sim_network.b.id}'}\nsim-network b {name: n}, lifecycle: {dependsOn: [sim_network.c]}\nsim-network c {name: '${sim_network.a.id}'}",
			[]string{"0 Error : refers to itself in a cycle, so no plan can order the objects: sim_network.a -> sim_network.b -> sim_network.c -> sim_network.a"}},
		"a diamond": {"sim-network a {name: '${sim_network.b.id}${sim_network.c.id}'}\nsim-network b {name: '${sim_network.d.id}'}\nsim-network c {name: '${sim_network.d.id}'}\nsim-network d {name: n}", nil},
		"near names beside spec and in lifecycle": {"sim-network a {name: n}, lifecycle: {preventDestory: true, prevent_destroy: true}, metdata: {}, dependsOn: []", []string{
			`0 Error lifecycle.preventDestory: Forbidden: unknown field "lifecycle.preventDestory" (did you mean "lifecycle.preventDestroy"?)`,
			`0 Error lifecycle.prevent_destroy: Forbidden: unknown field "lifecycle.prevent_destroy" (did you mean "lifecycle.preventDestroy"?)`,
			`0 Error metdata: Forbidden: unknown field "metdata" (did you mean "metadata"?)`, `0 Error dependsOn: Forbidden: unknown field "dependsOn" (did you mean "lifecycle.dependsOn"?)`}},
		"an attribute that another document has not": {"sim-network a {name: n}\nsim-network b {name: '${sim_network.a.ib}'}", []string{`1 Error spec.name, column 3: Reference to a missing attribute: A sim-network has no attribute "ib". Did you mean "id"?`}},
		"a type that no provider has":                {"sim-network b {name: '${sim_netwrk.a.id}'}", []string{`0 Error spec.name, column 3: Reference to an unknown resource type`}},
		"a type of a provider that is not installed": {"sim-network b {name: '${aws_vpc.a.id}'}", []string{`0 Error spec.name, column 3: Reference to an unknown resource type`}},
		"a type of a provider among the objects":     {"Provider aws {source: x}\nsim-network b {name: '${aws_vpc.a.id}'}", nil},
		"a type that such a provider may bring":      {"Provider google-beta {source: x}\nsim-network b {name: '${google_vpc.a.id}'}", []string{`1 Warning spec.name, column 3: Reference to an unknown resource type`}},
		"a type that only an installed provider can have": {"Provider aws {source: x}\nsim-network b {name: '${sim_netwrok.a.id}'}", []string{
			`1 Error spec.name, column 3: Reference to an unknown resource type: There is no resource type "sim_netwrok". Did you mean "sim_network"?`}},
		"types in lifecycle": {"sim-network b {name: n}, lifecycle: {dependsOn: [sim_netwrok.a, data.sim_network.b], replaceTriggeredBy: [sim_subnt.a.id, sim-subnt/a]}", []string{
			`0 Error lifecycle.dependsOn[0]: Reference to an unknown resource type: There is no resource type "sim_netwrok". Did you mean "sim_network"?`,
			`0 Error lifecycle.dependsOn[1]: Reference to an unknown data source type: There is no data source type "sim_network". There is a resource of the type: did you mean sim_network.b?`,
			`0 Error lifecycle.replaceTriggeredBy[0]: Reference to an unknown resource type: There is no resource type "sim_subnt". Did you mean "sim_subnet"?`,
			`0 Error lifecycle.replaceTriggeredBy[1]: Reference to an unknown resource type: There is no resource type "sim_subnt". Did you mean "sim_subnet"?`}},
		"types and attributes in a ProviderConfig": {"ProviderConfig a {provider: sim, config: {x: '${sim_netwrok.a.id}', z: '${sim_network.a.idd}'}}", []string{
			`0 Error spec.config.x, column 3: Reference to an unknown resource type: There is no resource type "sim_netwrok". Did you mean "sim_network"?`,
			`0 Error spec.config.z, column 3: Reference to a missing attribute: A sim-network has no attribute "idd". Did you mean "id"?`}},
		"a ProviderConfig that is not there": {"ProviderConfig europe {provider: sim}\nsim-network a {name: n}, lifecycle: {providerConfig: eurpoe}\nsim-network b {name: n}, lifecycle: {providerConfig: asia}", []string{
			`1 Warning lifecycle.providerConfig: no ProviderConfig "eurpoe" is among these objects; did you mean "europe"?`}},
		"a ProviderConfig of another provider": {"ProviderConfig europe {provider: aws}\nProvider aws {source: x}\nsim-network a {name: n}, lifecycle: {providerConfig: europe}", []string{
			`2 Error lifecycle.providerConfig: "europe" configures the provider "aws", not "sim"`}},
		"a value of another type":                     {"sim-network a {name: n}\nsim-network b {name: n, mtu: '${sim_network.a.tags}'}", []string{`1 Error spec.mtu: Incorrect value type: "mtu" needs a number, but its value is a map of string.`}},
		"a name that is almost that of another":       {"sim-network main {name: n}\nsim-network b {name: '${sim_network.mian.id}'}", []string{`1 Warning spec.name, column 3: no sim-network "mian" is among these objects; did you mean "main"?`}},
		"a key that a ConfigMap of the documents has": {"ConfigMap app {region: eu}\nsim-network a {name: '${configmap.app.region}'}", nil},
		"a key that it has not":                       {"ConfigMap app {region: eu}\nsim-network a {name: '${configmap.app.regoin}'}", []string{`1 Error spec.name, column 3: Reference to a missing attribute: The ConfigMap "app" has no key "regoin". Did you mean "region"?`}},
	} {
		t.Run(reason, func(t *testing.T) {
			var objects []*unstructured.Unstructured
			for line := range strings.SplitSeq(test.documents, "\n") {
				kind, rest, _ := strings.Cut(line, " ")
				name, spec, _ := strings.Cut(rest, " ")
				text := fmt.Sprintf("{apiVersion: sim.hykube.io/v1, kind: %s, metadata: {name: %s, namespace: x}, spec: %s}", kind, name, spec)
				if provider, k, ok := strings.Cut(kind, "/"); ok {
					text = strings.NewReplacer("sim.hykube.io", provider+".hykube.io", kind, k).Replace(text)
				}
				if kind == "ConfigMap" {
					text = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: x}, data: %s}", name, spec)
				}
				if strings.HasPrefix(kind, "Provider") {
					text = strings.Replace(text, "sim.hykube.io/v1", "hykube.io/v1alpha1", 1)
				}
				u := &unstructured.Unstructured{}
				if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
					t.Fatal(err)
				}
				objects = append(objects, u)
			}
			var got []string
			problems, err := h.kinds.Check(t.Context(), objects)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				got = append(got, fmt.Sprintf("%d %s %s: %s", p.Index, p.Severity, p.Field, p.Message))
			}
			if len(got) != len(test.want) {
				t.Fatal(cmp.Diff(test.want, got))
			}
			for _, want := range test.want {
				found := false
				for _, g := range got {
					found = found || strings.HasPrefix(g, want)
				}
				if !found {
					t.Errorf("want %q in %q", want, got)
				}
			}
		})
	}
}

// TestCheckReportsNoMore checks objects with more cycles than a Validation reports, and with more unknown types than
// get a hint.
func TestCheckReportsNoMore(t *testing.T) {
	h := newFixture(t, sim())
	object := func(name, spec string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(fmt.Appendf(nil, "{apiVersion: sim.hykube.io/v1, kind: sim-network, metadata: {name: %s, namespace: x}, spec: {name: %q}}", name, spec), &u.Object); err != nil {
			t.Fatal(err)
		}
		return u
	}
	refs := func(n int, reference string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, "${"+reference+"}", i)
		}
		return out.String()
	}
	circular := []*unstructured.Unstructured{object("hub", refs(30, "sim_network.n%d.id"))}
	for i := range 30 {
		circular = append(circular, object(fmt.Sprintf("n%d", i), "${sim_network.hub.id}"))
	}
	for name, tc := range map[string]struct {
		objects []*unstructured.Unstructured
		text    string
		want    int
	}{
		"cycles":        {circular, "refers to itself in a cycle", 20},
		"unknown types": {[]*unstructured.Unstructured{object("b", refs(110, "sim_network%d.x.id"))}, "Did you mean", 100},
	} {
		problems, err := h.kinds.Check(t.Context(), tc.objects)
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for _, p := range problems {
			if strings.Contains(p.Message, tc.text) {
				got++
			}
		}
		if got != tc.want {
			t.Errorf("%s: %d problems, want %d of %d", name, got, tc.want, len(problems))
		}
	}
}
