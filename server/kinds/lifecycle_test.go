package kinds_test

import (
	"net/http"
	"strings"
	"testing"
)

const (
	images  = "/apis/sim.hykube.io/v1/namespaces/default/data-sim-images"
	tokens  = "/apis/sim.hykube.io/v1/namespaces/default/ephemeral-sim-tokens"
	reboots = "/apis/sim.hykube.io/v1/namespaces/default/action-sim-reboots"
)

// Objects of each mode, named x.
const (
	image  = `{"apiVersion":"sim.hykube.io/v1","kind":"data-sim-image","metadata":{"name":"x"},"spec":{"family":"f"}}`
	token  = `{"apiVersion":"sim.hykube.io/v1","kind":"ephemeral-sim-token","metadata":{"name":"x"},"spec":{"role":"r"}}`
	reboot = `{"apiVersion":"sim.hykube.io/v1","kind":"action-sim-reboot","metadata":{"name":"x"},"spec":{"instance_id":"${sim_network.main.id}"}}`
)

func TestLifecycle(t *testing.T) {
	h := newFixture(t, sim())
	managed := network("x", `{"name":"n"}`)
	checks := func(list string) string { return `{"preconditions":` + list + `}` }
	for reason, test := range map[string]struct{ path, body, lifecycle, want string }{
		"all of it": {networks, managed, `{"providerConfig":"eu","dependsOn":["sim_network.a","data.sim_image.b","action.sim_reboot.c","data-sim-image/d"],
			"preventDestroy":true,"createBeforeDestroy":true,"ignoreChanges":["tags","rule[0].port","all"],"destroy":false,
			"replaceTriggeredBy":["sim_network.a","sim-network/a","sim_network.a.mtu","sim_network[\"a.b\"].rule[0].port","other_type.a.anything"],
			"preconditions":[{"condition":"${data.sim_image.b.size > 1}","errorMessage":"The image ${data.sim_image.b.id} is too small."}],
			"postconditions":[{"condition":"${self.mtu == 1500}","errorMessage":"The MTU is ${self.mtu}."}]}`, ""},
		"all of a data source": {images, image, `{"providerConfig":"eu","dependsOn":["sim_network.a"],
			"preconditions":[{"condition":"${sim_network.a.mtu > 1}","errorMessage":"e"}],"postconditions":[{"condition":"${self.size > 0}","errorMessage":"e"}]}`, ""},
		"all of an ephemeral resource": {tokens, token, `{"providerConfig":"eu","dependsOn":["sim_network.a"],
			"preconditions":[{"condition":"${sim_network.a.mtu > 1}","errorMessage":"e"}],"postconditions":[{"condition":"${self.value != \"\"}","errorMessage":"e"}]}`, ""},
		"all of an action": {reboots, reboot, `{"providerConfig":"eu","dependsOn":["sim_network.a"],
			"preconditions":[{"condition":"${sim_network.a.mtu > 1}","errorMessage":"e"}]}`, ""},
		"import by id":       {networks, managed, `{"import":{"id":"net-${sim_network.a.mtu}"}}`, ""},
		"import by identity": {networks, managed, `{"import":{"identity":{"number":"${sim_network.a.mtu}","account":"a"}}}`, ""},
		"moved":              {networks, managed, `{"moved":{"from":"sim_network.old"}}`, ""},
		"moved and import":   {networks, managed, `{"moved":{"from":"sim_network.old"},"import":{"id":"1"}}`, ""},
		"nothing":            {networks, managed, `{"import":null,"preconditions":[],"dependsOn":null}`, ""},

		"unknown field":         {networks, managed, `{"foo":1}`, `unknown field "lifecycle.foo"`},
		"Terraform's name":      {networks, managed, `{"prevent_destroy":true}`, `did you mean "lifecycle.preventDestroy"?`},
		"Terraform's block":     {networks, managed, `{"precondition":{}}`, `did you mean "lifecycle.preconditions"?`},
		"field of another mode": {images, image, `{"preventDestroy":true}`, `unknown field "lifecycle.preventDestroy" (a data source has no such argument`},
		"import of an action":   {reboots, reboot, `{"import":{"id":"x"}}`, `unknown field "lifecycle.import" (an action has no such argument`},
		"result of an action":   {reboots, reboot, `{"postconditions":[]}`, `unknown field "lifecycle.postconditions"`},
		"moved token":           {tokens, token, `{"moved":{"from":"sim_network.a"}}`, `unknown field "lifecycle.moved" (an ephemeral resource`},
		"string for boolean":    {networks, managed, `{"preventDestroy":"yes"}`, "lifecycle.preventDestroy: Invalid value"},
		"boolean for destroy":   {networks, managed, `{"destroy":"no"}`, "lifecycle.destroy: Invalid value"},
		"string for list":       {networks, managed, `{"dependsOn":"sim_network.a"}`, "lifecycle.dependsOn: Invalid value"},
		"number in list":        {networks, managed, `{"dependsOn":["sim_network.a",1]}`, "lifecycle.dependsOn[1]: Invalid value"},
		"no address":            {networks, managed, `{"dependsOn":["nothing"]}`, `lifecycle.dependsOn[0]: Invalid value: "nothing"`},
		"on itself":             {images, image, `{"dependsOn":["data.sim_image.x"]}`, "must not be the object itself"},
		"on another namespace":  {networks, managed, `{"dependsOn":["namespace.shared.sim_network.a"]}`, "own namespace"},
		"on a ConfigMap":        {networks, managed, `{"dependsOn":["configmap.a"]}`, "lifecycle.dependsOn[0]"},
		"no such argument":      {networks, managed, `{"ignoreChanges":["tagz"]}`, `lifecycle.ignoreChanges[0]: Invalid value: "tagz"`},
		"no name of a config":   {networks, managed, `{"providerConfig":"A B"}`, "lifecycle.providerConfig: Invalid value"},
		"not an object":         {networks, managed, `[]`, "lifecycle: Invalid value"},
		"endless list":          {networks, managed, `{"ignoreChanges":[` + strings.Repeat(`"tags",`, 1000) + `"tags"]}`, "lifecycle.ignoreChanges: Too many"},

		"trigger that is no address":           {networks, managed, `{"replaceTriggeredBy":["sim_network"]}`, "lifecycle.replaceTriggeredBy[0]: Invalid value"},
		"trigger with a function":              {networks, managed, `{"replaceTriggeredBy":["upper(sim_network.a.id)"]}`, "lifecycle.replaceTriggeredBy[0]: Invalid value"},
		"trigger that is a data source":        {networks, managed, `{"replaceTriggeredBy":["data.sim_image.a"]}`, "must be the address of a managed resource"},
		"trigger in another namespace":         {networks, managed, `{"replaceTriggeredBy":["namespace.b.sim_network.a"]}`, "must be the address of a managed resource"},
		"trigger that is the object":           {networks, managed, `{"replaceTriggeredBy":["sim_network.x.mtu"]}`, "must not be the object itself"},
		"trigger of no attribute":              {networks, managed, `{"replaceTriggeredBy":["sim_network.a.mtux"]}`, `a sim-network has no attribute "mtux"`},
		"trigger of a near attribute":          {networks, managed, `{"replaceTriggeredBy":["sim_network.a.mtux"]}`, `did you mean "mtu"?`},
		"trigger that is a kind's name":        {networks, managed, `{"replaceTriggeredBy":["sim-network/x"]}`, "must not be the object itself"},
		"trigger that is a kind's attribute":   {networks, managed, `{"replaceTriggeredBy":["sim-network/a.mtu"]}`, `write sim_network.a.mtu for the attribute, or sim_network["a.mtu"] for the resource of that name`},
		"trigger that is a data source's kind": {networks, managed, `{"replaceTriggeredBy":["data-sim-image/a"]}`, "must be the address of a managed resource"},
		"trigger of an instance":               {networks, managed, `{"replaceTriggeredBy":["sim_network.a[0]"]}`, ""},
		"moved from itself":                    {networks, managed, `{"moved":{"from":"sim-network/x"}}`, "must not be the object itself"},
		"moved from nowhere":                   {networks, managed, `{"moved":{}}`, "lifecycle.moved.from: Required value"},
		"moved from a data source":             {networks, managed, `{"moved":{"from":"data.sim_image.a"}}`, "must be the address of a managed resource"},
		"moved from another namespace":         {networks, managed, `{"moved":{"from":"namespace.a.sim_network.b"}}`, "own namespace"},
		"moved from a type that is not there":  {networks, managed, `{"moved":{"from":"other_thing.a"}}`, "lifecycle.moved.from: Invalid value: \"other_thing.a\": no installed provider has resources of this type; install the provider"},
		"moved from a near type":               {networks, managed, `{"moved":{"from":"sim_networks.a"}}`, `did you mean "sim_network.a"?`},
		"moved from the plural of a kind":      {networks, managed, `{"moved":{"from":"sim-networks/a"}}`, `did you mean "sim_network.a"?`},
		"moved from another type":              {networks, managed, `{"moved":{"from":"sim_subnet.a"}}`, ""},
		"all, as in Terraform":                 {networks, managed, `{"ignoreChanges":"all"}`, `lifecycle.ignoreChanges: Invalid value: "all": must be a list of strings, got a string; write ["all"]`},
		"an address, and no list":              {networks, managed, `{"dependsOn":"sim_network.a"}`, `write ["sim_network.a"]`},
		"moved without the field":              {networks, managed, `{"moved":"sim_network.old"}`, "lifecycle.moved: Invalid value"},
		"moved to":                             {networks, managed, `{"moved":{"from":"sim_network.old","to":"sim_network.x"}}`, `unknown field "lifecycle.moved.to"`},
		"import by nothing":                    {networks, managed, `{"import":{}}`, "lifecycle.import: Required value: id or identity"},
		"import by both":                       {networks, managed, `{"import":{"id":"1","identity":{"number":1}}}`, "id and identity exclude each other"},
		"import by an empty id":                {networks, managed, `{"import":{"id":""}}`, "lifecycle.import.id: Required value"},
		"import by a number":                   {networks, managed, `{"import":{"id":1}}`, "put it in quotes"},
		"import by a broken expression":        {networks, managed, `{"import":{"id":"${sim_network.}"}}`, "lifecycle.import.id"},
		"import by an incomplete identity":     {networks, managed, `{"import":{"identity":{"account":"a"}}}`, "lifecycle.import.identity.number: Required value: number of the existing resource. Number in the cloud."},
		"import by an unknown attribute":       {networks, managed, `{"import":{"identity":{"number":1,"nmuber":2}}}`, `unknown field "lifecycle.import.identity.nmuber"; the identity of a sim_network has account, etag, number`},
		"import by what the provider sets":     {networks, managed, `{"import":{"identity":{"number":1,"etag":"x"}}}`, "lifecycle.import.identity.etag: Forbidden"},
		"import by a wrong type":               {networks, managed, `{"import":{"identity":{"number":"one"}}}`, "lifecycle.import.identity.number"},
		"import of a type without identity": {strings.Replace(networks, "networks", "subnets", 1),
			`{"apiVersion":"sim.hykube.io/v1","kind":"sim-subnet","metadata":{"name":"x"},"spec":{"network_id":"n","pool":[{"size":1}]}}`,
			`{"import":{"identity":{"number":1}}}`, "lifecycle.import.identity: Forbidden: the provider gives a sim_subnet no identity"},

		"no list of conditions":              {networks, managed, checks(`{"condition":"${sim_network.a.mtu > 1}","errorMessage":"e"}`), "lifecycle.preconditions: Invalid value"},
		"condition without message":          {networks, managed, checks(`[{"condition":"${sim_network.a.mtu > 1}"}]`), "lifecycle.preconditions[0].errorMessage: Required value"},
		"message without condition":          {networks, managed, checks(`[{"errorMessage":"e"}]`), "lifecycle.preconditions[0].condition: Required value"},
		"Terraform's error_message":          {networks, managed, checks(`[{"condition":"${sim_network.a.mtu > 1}","error_message":"e"}]`), `did you mean "errorMessage"?`},
		"condition that is a truth":          {networks, managed, checks(`[{"condition":true,"errorMessage":"e"}]`), "lifecycle.preconditions[0].condition: Invalid value"},
		"condition as text":                  {networks, managed, checks(`[{"condition":"sim_network.a.mtu > 1","errorMessage":"e"}]`), "must be one expression"},
		"condition of a constant":            {networks, managed, checks(`[{"condition":"${1 == 1}","errorMessage":"e"}]`), "must refer to something"},
		"condition of a list":                {networks, managed, checks(`[{"condition":"${[sim_network.a.mtu]}","errorMessage":"e"}]`), "lifecycle.preconditions[0].condition"},
		"precondition of the result":         {networks, managed, checks(`[{"condition":"${self.mtu > 1}","errorMessage":"e"}]`), "lifecycle.preconditions[0].condition"},
		"condition on nothing that self has": {networks, managed, `{"postconditions":[{"condition":"${1 > 0 && self.mtx > 1}","errorMessage":"e"}]}`, `lifecycle.postconditions[0].condition, column 16: Invalid value: self has no attribute "mtx". Did you mean "mtu"?`},
		"message on nothing that self has":   {networks, managed, `{"postconditions":[{"condition":"${self.mtu > 1}","errorMessage":"It is ${self.nmae}."}]}`, `lifecycle.postconditions[0].errorMessage, column 13: Invalid value: self has no attribute "nmae". Did you mean "name"?`},
		"condition that is a list of self's": {networks, managed, `{"postconditions":[{"condition":"${self.rule}","errorMessage":"e"}]}`, "lifecycle.postconditions[0].condition: Invalid value: The result must be a bool"},
		"condition that adds to text":        {networks, managed, `{"postconditions":[{"condition":"${self.rule + 1 > 2}","errorMessage":"e"}]}`, "lifecycle.postconditions[0].condition, column 3: Invalid value: "},
		"import by the time":                 {networks, managed, `{"import":{"id":"${timestamp()}"}}`, "lifecycle.import.id, column 3: Invalid value: timestamp() gets its value during planning or the apply"},
		"broken condition":                   {networks, managed, checks(`[{"condition":"${sim_network.a.mtu > }","errorMessage":"e"}]`), "lifecycle.preconditions[0].condition"},
		"broken message":                     {networks, managed, checks(`[{"condition":"${sim_network.a.mtu > 1}","errorMessage":"${"}]`), "lifecycle.preconditions[0].errorMessage"},
		"function of a provider":             {networks, managed, checks(`[{"condition":"${provider::sim::upper(sim_network.a.name) == \"A\"}","errorMessage":"e"}]`), ""},
		"no function of a provider":          {networks, managed, checks(`[{"condition":"${provider::sim::uper(sim_network.a.name) == \"A\"}","errorMessage":"e"}]`), "lifecycle.preconditions[0].condition"},
	} {
		t.Run(reason, func(t *testing.T) {
			body := strings.Replace(test.body, `"spec":`, `"lifecycle":`+test.lifecycle+`,"spec":`, 1)
			a := h.do(t, admin, http.MethodPost, test.path+"?dryRun=All", body)
			switch {
			case test.want == "" && a.code != http.StatusCreated:
				t.Errorf("%d %s", a.code, a.message())
			case test.want != "" && (a.code != http.StatusUnprocessableEntity || !strings.Contains(a.message(), test.want)):
				t.Errorf("%d %s", a.code, a.message())
			}
		})
	}
}

// Server-side apply takes the structured fields apart, and strict validation knows which fields there are.
func TestLifecycleIsApplied(t *testing.T) {
	h := newFixture(t, sim())
	apply := func(manager, lifecycle string) answer {
		return h.do(t, admin, http.MethodPatch, networks+"/x?fieldValidation=Strict&fieldManager="+manager,
			"apiVersion: sim.hykube.io/v1\nkind: sim-network\nmetadata: {name: x}\nspec: {name: n}\nlifecycle: "+lifecycle, "Content-Type: application/apply-patch+yaml")
	}
	if a := apply("one", `{import: {id: "1"}, preconditions: [{condition: "${sim_network.a.mtu > 1}", errorMessage: e}]}`); a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.message())
	}
	if a := apply("two", `{import: {id: "2"}}`); a.code != http.StatusConflict || !strings.Contains(a.message(), ".lifecycle.import.id") {
		t.Errorf("another manager, another id: %d %s", a.code, a.message())
	}
	a := apply("one", `{import: {identity: {number: 1}}}`)
	if a.code != http.StatusOK || a.object(t).GetGeneration() != 2 {
		t.Fatalf("identity for id: %d %s", a.code, a.message())
	}
	lifecycle := a.object(t).Object["lifecycle"].(map[string]any)
	if by := lifecycle["import"].(map[string]any); by["id"] != nil || lifecycle["preconditions"] != nil {
		t.Errorf("what is no longer applied stays: %v", lifecycle)
	}
	if a := h.do(t, admin, http.MethodPost, images+"?dryRun=All&fieldValidation=Strict", strings.Replace(image, `"spec"`, `"lifecycle":{"destroy":false},"spec"`, 1)); a.code != http.StatusBadRequest || !strings.Contains(a.message(), `unknown field "lifecycle.destroy"`) {
		t.Errorf("strict: %d %s", a.code, a.message())
	}
}
