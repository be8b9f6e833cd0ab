package cli

// Hints for users who type Terraform's commands.

// terraformVerb holds hints for Terraform's verbs that this command lacks.
var terraformVerb = map[string]string{
	"init":         "there is no init: a Provider object installs its provider, see `kubectl explain provider.spec`",
	"output":       "values are in the status of objects: kubectl get KIND NAME -o jsonpath={.status.attributes.ATTRIBUTE}",
	"workspace":    "use a namespace for each workspace: kubectl create namespace NAME, then -n NAME",
	"force-unlock": "plans need no state lock: apply waits while another plan changes the same resources",
	"login":        "the kubeconfig has your credentials",
	"logout":       "the kubeconfig has your credentials",
	"providers":    "kubectl hykube provider list",
}
