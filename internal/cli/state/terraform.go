package state

// terraformState holds hints for verbs of `terraform state` that `state` lacks.
var terraformState = map[string]string{
	"replace-provider": "change spec.source of the Provider object",
	"get":              "kubectl hykube state show KIND/NAME",
	"describe":         "kubectl hykube state show KIND/NAME",
	"remove":           "kubectl hykube state rm KIND/NAME",
	"delete":           "kubectl hykube state rm KIND/NAME",
	"forget":           "kubectl hykube state rm KIND/NAME",
	"move":             "kubectl hykube state mv OLD NEW",
	"rename":           "kubectl hykube state mv OLD NEW",
}
