package module

import "github.com/hashicorp/hcl/v2"

// This file has the schemas of the language's blocks. Bodies of resources, data sources, providers and module calls
// have further arguments.

func schemaOf(attributes []string, blocks ...hcl.BlockHeaderSchema) *hcl.BodySchema {
	s := &hcl.BodySchema{Blocks: blocks}
	for _, name := range attributes {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: name})
	}
	return s
}

func blockOf(kind string, labels ...string) hcl.BlockHeaderSchema {
	return hcl.BlockHeaderSchema{Type: kind, LabelNames: labels}
}

var (
	fileSchema = schemaOf(nil,
		blockOf("terraform"), blockOf("required_providers"), blockOf("provider", "name"), blockOf("variable", "name"),
		blockOf("locals"),
		blockOf("output", "name"), blockOf("module", "name"), blockOf("resource", "type", "name"),
		blockOf("data", "type", "name"),
		blockOf("ephemeral", "type", "name"), blockOf("action", "type", "name"), blockOf("moved"), blockOf("import"),
		blockOf("removed"),
		blockOf("check", "name"))
	terraformSchema = schemaOf([]string{"required_version", "experiments", "language"},
		blockOf("backend", "type"), blockOf("cloud"), blockOf("required_providers"),
		blockOf("provider_meta", "provider"), blockOf("encryption"))
	variableSchema = schemaOf([]string{"description", "default", "type", "sensitive", "ephemeral", "nullable",
		"deprecated"}, blockOf("validation"))
	outputSchema = schemaOf([]string{"description", "value", "depends_on", "sensitive", "ephemeral", "deprecated"},
		blockOf("precondition"))
	callSchema = schemaOf([]string{"source", "version", "count", "for_each", "depends_on", "providers"},
		blockOf("lifecycle"))
	providerSchema = schemaOf([]string{"alias", "version", "for_each"})
	resourceSchema = schemaOf([]string{"count", "for_each", "provider", "depends_on"},
		blockOf("lifecycle"), blockOf("connection"), blockOf("provisioner", "type"))
	actionSchema = schemaOf([]string{"count", "for_each", "provider", "depends_on"}, blockOf("config"),
		blockOf("lifecycle"))
	lifecycleSchema = schemaOf([]string{"create_before_destroy", "prevent_destroy", "ignore_changes",
		"replace_triggered_by", "enabled", "destroy"},
		blockOf("precondition"), blockOf("postcondition"), blockOf("action_trigger"))
	triggerSchema   = schemaOf([]string{"events", "condition", "actions"})
	conditionSchema = schemaOf([]string{"condition", "error_message"})
	movedSchema     = schemaOf([]string{"from", "to"})
	importSchema    = schemaOf([]string{"to", "id", "identity", "for_each", "provider"})
	removedSchema   = schemaOf([]string{"from"}, blockOf("lifecycle"), blockOf("connection"),
		blockOf("provisioner", "type"))
	checkSchema = schemaOf(nil, blockOf("data", "type", "name"), blockOf("assert"))
)

// metaArguments are the names in the body of a block that are not fields of its spec.
var metaArguments = []string{"count", "for_each", "provider", "depends_on", "lifecycle", "connection", "provisioner"}
