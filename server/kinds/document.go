package kinds

import (
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/builder3/util"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/schema"
)

// documentVersion is part of every document's hash. Clients cache a document while its hash stays the same. So
// increment it when the format of the documents changes.
const documentVersion = 4

// refPrefix is the prefix of a reference to a model.
const refPrefix = "#/components/schemas/"

// Models that the documents of all groups contain.
const (
	modelLifecycle  = "io.hykube.meta.v1.Lifecycle"
	modelConditions = "io.hykube.meta.v1.Conditions"
	modelStatus     = "io.hykube.meta.v1.Status"
)

// modelLifecycleOf returns the name of the lifecycle model of a mode.
func modelLifecycleOf(mode v1alpha1.Mode) string {
	switch mode {
	case v1alpha1.ModeData:
		return modelLifecycle + "OfData"
	case v1alpha1.ModeEphemeral:
		return modelLifecycle + "OfEphemeral"
	case v1alpha1.ModeAction:
		return modelLifecycle + "OfAction"
	default:
		return modelLifecycle
	}
}

// modelName returns the name of a kind's model. It does not depend on the provider's version.
func (s *served) modelName() string {
	return "io.hykube." + s.Provider + "." + s.GVK.Version + "." + s.GVK.Kind
}

// configurationModel returns the name of the model of the provider's configuration. It is not the model of a kind;
// kubectl hykube shows it.
func (g *group) configurationModel() string {
	return "io.hykube." + g.provider.Name + "." + g.version.Version + ".Configuration"
}

// configuration returns the schema of the provider's configuration, or nil if the provider has none.
func (g *group) configuration() *schema.Block {
	if g.provider.Schema.Config == nil {
		return nil
	}
	return g.provider.Schema.Config.Block
}

// writeDocument writes the OpenAPI v3 document of a group. To stay small, it has the models, and of the operations only
// PATCH. kubectl reads PATCH to detect field validation and dry run. The generator for custom resources writes six
// times as much, which kubectl would fetch and parse at each create. Without models, it has only the operations.
func (g *group) writeDocument(w io.Writer, models bool) error {
	j := newJSONWriter(w)
	j.open("{")
	j.string("openapi", "3.0.0")
	j.object("info", func() {
		j.string("title", fmt.Sprintf("Hykube: kinds of provider %s (%s %s)", g.provider.Name, g.provider.Source,
			g.provider.Version))
		j.string("version", g.version.Version)
	})
	j.object("paths", func() {
		for _, s := range g.kinds {
			j.object(fmt.Sprintf("/apis/%s/namespaces/{namespace}/%s/{name}", g.version, s.GVR.Resource),
				func() { s.writeOperation(j) })
		}
	})
	j.object("components", func() {
		if models {
			j.object("schemas", func() { g.writeModels(j) })
		}
		writeSharedOperations(j)
	})
	j.close("}")
	return j.flush()
}

func (g *group) writeModels(j *jsonWriter) {
	for _, s := range g.kinds {
		j.object(s.modelName(), func() { s.writeModel(j) })
	}
	if b := g.configuration(); b != nil {
		j.object(g.configurationModel(), func() {
			j.string("description", "Arguments of the provider "+g.provider.Name+
				" itself: spec.config of a ProviderConfig.")
			writeBlock(j, b, false)
		})
	}
	g.writeSharedModels(j)
}

func (s *served) writeGVK(j *jsonWriter) {
	j.string("group", s.GVK.Group)
	j.string("version", s.GVK.Version)
	j.string("kind", s.GVK.Kind)
}

// writeGVKs writes the extension from which clients find the model of a kind.
func (s *served) writeGVKs(j *jsonWriter) {
	j.key("x-kubernetes-group-version-kind")
	j.open("[")
	j.next()
	j.open("{")
	s.writeGVK(j)
	j.close("}")
	j.close("]")
}

// description returns the provider's description, or the Terraform type of the kind.
func (s *served) description() string {
	if d := s.Schema.Block.Description; d != "" {
		return d
	}
	return fmt.Sprintf("%s %s of the provider %s.", map[v1alpha1.Mode]string{
		v1alpha1.ModeManaged: "Resource type", v1alpha1.ModeData: "Data source",
		v1alpha1.ModeEphemeral: "Ephemeral resource type", v1alpha1.ModeAction: "Action",
	}[s.Mode], s.Type, s.Provider)
}

// writeOperation writes the parts of a PATCH that kubectl reads: the kind, the parameters, and request bodies without
// strategic merge. A document may contain thousands of them, so it omits the rest.
func (s *served) writeOperation(j *jsonWriter) {
	j.value("parameters", []any{ref("parameters", "namespace"), ref("parameters", "name")})
	j.object("patch", func() {
		j.object("x-kubernetes-group-version-kind", func() { s.writeGVK(j) })
		// kubectl does not follow references here.
		j.value("parameters", []any{parameter("dryRun", "query"), parameter("fieldValidation", "query")})
		j.value("requestBody", ref("requestBodies", "patch"))
		j.object("responses", func() {
			j.object("200", func() { j.string("description", "OK") })
		})
	})
}

func ref(section, name string) map[string]any {
	return map[string]any{"$ref": "#/components/" + section + "/" + name}
}

func parameter(name, in string) map[string]any {
	p := map[string]any{"name": name, "in": in, "schema": map[string]any{"type": "string"}}
	if in == "path" {
		p["required"] = true
	}
	return p
}

// writeSharedOperations writes the parameters and bodies to which all operations refer.
func writeSharedOperations(j *jsonWriter) {
	j.value("parameters", map[string]any{"name": parameter("name", "path"),
		"namespace": parameter("namespace", "path")})
	content := map[string]any{}
	for _, t := range patchTypes() {
		content[t] = map[string]any{"schema": map[string]any{"type": "object"}}
	}
	j.value("requestBodies", map[string]any{"patch": map[string]any{"required": true, "content": content}})
}

const (
	// extensionVersion is the schema version of the type; 0 if omitted.
	extensionVersion = "x-hykube-schema-version"
	// extensionListed marks types whose existing resources the provider can list.
	extensionListed = "x-hykube-listed"
	// extensionBlock marks a nested block, as opposed to an argument.
	extensionBlock = "x-hykube-block"
	// extensionSensitive marks secret arguments.
	extensionSensitive = "x-hykube-sensitive"
)

func (s *served) writeModel(j *jsonWriter) {
	j.string("type", "object")
	j.string("description", s.description())
	s.writeGVKs(j)
	// These extensions have the parts of a configuration in Terraform's JSON plan that OpenAPI lacks. extensionListed
	// shows the types that a query can list.
	if s.Schema.Version > 0 {
		j.number(extensionVersion, s.Schema.Version)
	}
	if s.List != nil {
		j.true(extensionListed)
	}
	j.object("properties", func() {
		j.value("apiVersion", map[string]any{"type": "string",
			"description": "Group and version: " + s.GVK.GroupVersion().String() + "."})
		j.value("kind", map[string]any{"type": "string", "description": "Kind: " + s.GVK.Kind + "."})
		j.object("metadata", func() { writeRef(j, modelOf(metav1.ObjectMeta{}), "Standard object's metadata.") })
		j.object("spec", func() {
			j.string("description", "Arguments of "+s.Type+
				", under the provider's own names. A string with an expression, such as ${sim_network.main.id}, may replace any value.")
			writeBlock(j, s.Schema.Block, false)
		})
		j.object("lifecycle", func() {
			writeRef(j, modelLifecycleOf(s.Mode), "Terraform's meta-arguments.")
		})
		j.object("status", func() { s.writeStatus(j) })
	})
}

// writeStatus writes the attributes, and refers to the model of all other fields.
func (s *served) writeStatus(j *jsonWriter) {
	j.string("type", "object")
	writeRef(j, modelStatus, "Conditions, and the attributes that the provider returned. Read-only.")
	if s.Mode != v1alpha1.ModeManaged && s.Mode != v1alpha1.ModeData {
		return
	}
	j.object("properties", func() {
		j.object("attributes", func() {
			j.string("description", "Attributes that the provider returned last: those that only it sets, and all arguments of spec. Secrets are masked; the subresource \"state\" has them.")
			j.true("x-kubernetes-preserve-unknown-fields")
			writeBlock(j, s.Schema.Block, true)
		})
	})
}

// statusFields returns the models of the fields of a status except conditions and attributes, sorted by name.
func statusFields() iter.Seq2[string, map[string]any] {
	generation := func(description string) map[string]any {
		return map[string]any{"type": "integer", "format": "int64", "description": description}
	}
	return func(yield func(string, map[string]any) bool) {
		_ = yield("appliedGeneration", generation("Generation of spec and lifecycle that was applied last.")) &&
			yield("contributors", contributorsModel()) &&
			yield("failedCreate", map[string]any{"type": "string",
				"description": "Time and plan of a create that failed and may nevertheless have made the resource. It remains until a plan creates or imports the resource."}) &&
			yield("imported", map[string]any{"type": "string",
				"description": "Import that a plan applied, as JSON. It remains when the infrastructure is gone, until a plan destroys or forgets the resource."}) &&
			yield("movedFrom", map[string]any{"type": "string",
				"description": "Address in lifecycle.moved that a plan applied."}) &&
			yield("observedGeneration", generation(
				"Generation of spec and lifecycle that an apply, or a plan without changes, processed last. The conditions are about it."))
	}
}

// contributorsModel returns the model of status.contributors.
func contributorsModel() map[string]any {
	text := map[string]any{"type": "string"}
	return map[string]any{"type": "array", "x-kubernetes-list-type": "atomic",
		"description": "Users who wrote the object since a plan last applied it. Only the server writes the list.",
		"items": map[string]any{"type": "object", "properties": map[string]any{
			"username": map[string]any{"type": "string", "description": "User name; empty if more is true."},
			"groups":   map[string]any{"type": "array", "items": text, "description": "Groups of the user."},
			"tokenFile": map[string]any{"type": "boolean",
				"description": "True if the token file of the server named the user."},
			"more": map[string]any{"type": "boolean",
				"description": "True for the entry that stands for all users whom the list leaves out."},
			"wrote": map[string]any{"type": "array", "items": text,
				"description": "What the user wrote, such as \"spec\", \"labels\" or \"deletion\"."},
			"at": map[string]any{"type": "string", "format": "date-time",
				"description": "Time of the last of the writes."},
		}}}
}

// writeRef writes a reference to a model. In OpenAPI 3.0 a reference cannot have siblings, so it uses allOf.
func writeRef(j *jsonWriter, model, description string) {
	j.string("description", description)
	j.value("allOf", []any{map[string]any{"$ref": refPrefix + model}})
}

// writeBlock writes the body of an object schema. For spec, it writes the arguments. For status, it writes only the
// computed attributes. A status has the arguments, too, but these would double the size of the document.
func writeBlock(j *jsonWriter, b *schema.Block, status bool) {
	j.string("type", "object")
	required := writeProperties(j, b.Attributes, b.Blocks, status)
	if len(required) > 0 {
		j.value("required", required)
	}
}

func writeProperties(j *jsonWriter, attrs []*schema.Attribute, blocks []*schema.NestedBlock,
	status bool) (required []string) {
	j.object("properties", func() {
		for _, a := range attrs {
			if !status && !a.Configurable() || status && !hasComputed(a) {
				continue
			}
			if a.Required && !status {
				required = append(required, a.Name)
			}
			j.object(a.Name, func() { writeAttribute(j, a, status) })
		}
		for _, nb := range blocks {
			if status && !hasComputedPart(nb.Block) {
				continue
			}
			if nb.MinItems > 0 && !status {
				required = append(required, nb.TypeName)
			}
			j.object(nb.TypeName, func() { writeNestedBlock(j, nb, status) })
		}
	})
	return required
}

// hasComputed reports whether the provider computes the attribute or a part of it.
func hasComputed(a *schema.Attribute) bool {
	return a.Computed || a.Nested != nil && slices.ContainsFunc(a.Nested.Attributes, hasComputed)
}

func hasComputedPart(b *schema.Block) bool {
	return slices.ContainsFunc(b.Attributes, hasComputed) ||
		slices.ContainsFunc(b.Blocks, func(nb *schema.NestedBlock) bool { return hasComputedPart(nb.Block) })
}

func writeAttribute(j *jsonWriter, a *schema.Attribute, status bool) {
	if d := attributeDescription(a, status); d != "" {
		j.string("description", d)
	}
	if a.Deprecated && !status {
		j.true("deprecated")
	}
	if (a.Sensitive || a.WriteOnly) && !status {
		j.true(extensionSensitive)
	}
	if a.Nested == nil {
		writeType(j, a.Type)
		return
	}
	writeNesting(j, a.Nested.Nesting, 0, 0, func() {
		j.string("type", "object")
		if required := writeProperties(j, a.Nested.Attributes, nil, status); len(required) > 0 {
			j.value("required", required)
		}
	})
}

// attributeDescription returns the provider's description with notes about the attribute.
func attributeDescription(a *schema.Attribute, status bool) string {
	var parts []string
	if d := strings.TrimSpace(a.Description); d != "" && (!status || !a.Configurable()) {
		parts = append(parts, d)
	}
	switch {
	case status && a.Sensitive:
		parts = append(parts, "(sensitive: masked)")
	case status:
	case a.WriteOnly:
		parts = append(parts, "(sensitive: sent to the provider and not stored in state)")
	case a.Sensitive:
		parts = append(parts, "(sensitive)")
	}
	if !status && a.Deprecated {
		parts = append(parts, "(deprecated)")
	}
	return strings.Join(parts, " ")
}

func writeNestedBlock(j *jsonWriter, nb *schema.NestedBlock, status bool) {
	if d := strings.TrimSpace(nb.Block.Description); d != "" && !status {
		j.string("description", d)
	}
	low, high := nb.MinItems, nb.MaxItems
	if status {
		low, high = 0, 0
	} else {
		j.true(extensionBlock)
	}
	writeNesting(j, nb.Nesting, low, high, func() { writeBlock(j, nb.Block, status) })
}

// writeNesting writes the schema of a collection, given the schema of one element.
func writeNesting(j *jsonWriter, n schema.Nesting, low, high int64, elem func()) {
	switch n {
	case schema.NestingList, schema.NestingSet:
		j.string("type", "array")
		j.string("x-kubernetes-list-type", "atomic")
		if low > 0 {
			j.number("minItems", low)
		}
		if high > 0 {
			j.number("maxItems", high)
		}
		j.object("items", elem)
	case schema.NestingMap:
		j.string("type", "object")
		j.object("additionalProperties", elem)
	default:
		elem()
	}
}

// writeType writes the schema of a cty type. A dynamic type has no type in OpenAPI.
func writeType(j *jsonWriter, ty cty.Type) {
	switch {
	case ty == cty.String:
		j.string("type", "string")
	case ty == cty.Number:
		j.string("type", "number")
	case ty == cty.Bool:
		j.string("type", "boolean")
	case ty.IsListType() || ty.IsSetType():
		j.string("type", "array")
		j.string("x-kubernetes-list-type", "atomic")
		j.object("items", func() { writeType(j, ty.ElementType()) })
	case ty.IsMapType():
		j.string("type", "object")
		j.object("additionalProperties", func() { writeType(j, ty.ElementType()) })
	case ty.IsObjectType():
		j.string("type", "object")
		atys := ty.AttributeTypes()
		j.object("properties", func() {
			for _, name := range sortedKeys(atys) {
				j.object(name, func() { writeType(j, atys[name]) })
			}
		})
	case ty.IsTupleType():
		j.string("type", "array")
		j.string("x-kubernetes-list-type", "atomic")
		j.object("items", func() { j.true("x-kubernetes-preserve-unknown-fields") })
	default:
		j.true("x-kubernetes-preserve-unknown-fields")
	}
}

// writeSharedModels writes the models to which every kind refers, and the models to which these refer. Every reference
// in a document must resolve within it.
func (g *group) writeSharedModels(j *jsonWriter) {
	for _, mode := range modes() {
		if slices.ContainsFunc(g.kinds, func(s *served) bool { return s.Mode == mode }) {
			j.object(modelLifecycleOf(mode), func() { writeLifecycle(j, mode) })
		}
	}
	j.object(modelStatus, func() {
		j.string("type", "object")
		j.object("properties", func() {
			for name, model := range statusFields() {
				j.value(name, model)
			}
			j.object("conditions", func() { writeRef(j, modelConditions, "Ready, Reconciling, Stalled and Drifted.") })
		})
	})
	j.object(modelConditions, func() {
		j.string("type", "array")
		j.string("x-kubernetes-list-type", "map")
		j.value("x-kubernetes-list-map-keys", []string{"type"})
		j.value("items", map[string]any{"allOf": []any{map[string]any{"$ref": refPrefix +
			modelOf(metav1.Condition{})}}})
	})
	for name, model := range metaModels(refPrefix) {
		j.value(name, util.WrapRefs(model))
	}
}

// metaModels returns Kubernetes' models of ObjectMeta and Condition, and the models to which these refer.
func metaModels(prefix string) iter.Seq2[string, *spec.Schema] {
	return func(yield func(string, *spec.Schema) bool) {
		definitions := apiextensions.GetOpenAPIDefinitions(func(name string) spec.Ref {
			return spec.MustCreateRef(prefix + name)
		})
		todo := []string{modelOf(metav1.ObjectMeta{}), modelOf(metav1.Condition{})}
		done := map[string]bool{}
		for len(todo) > 0 {
			name := todo[0]
			todo = todo[1:]
			if done[name] {
				continue
			}
			done[name] = true
			d := definitions[name]
			if !yield(name, &d.Schema) {
				return
			}
			todo = append(todo, d.Dependencies...)
		}
	}
}

func writeLifecycle(j *jsonWriter, mode v1alpha1.Mode) {
	text := func(description string) map[string]any {
		return map[string]any{"type": "string", "description": description}
	}
	j.string("type", "object")
	j.string("description", "Terraform's meta-arguments.")
	j.object("properties", func() {
		for _, f := range lifecycleFields() {
			if !f.in(mode) {
				continue
			}
			j.object(f.name, func() {
				j.string("description", f.description)
				switch f.typ {
				case lifecycleBool:
					j.string("type", "boolean")
				case lifecycleStrings:
					j.string("type", "array")
					j.string("x-kubernetes-list-type", "atomic")
					j.value("items", map[string]any{"type": "string"})
				case lifecycleChecks:
					j.string("type", "array")
					j.string("x-kubernetes-list-type", "atomic")
					j.value("items", map[string]any{"type": "object", "required": []string{"condition", "errorMessage"},
						"properties": map[string]any{
							"condition":    text("Expression that is true or false, such as ${data.sim_image.base.size > 0}."),
							"errorMessage": text("Message for users if the condition is false, with the remedy. It may contain expressions."),
						}})
				case lifecycleImport:
					j.string("type", "object")
					j.value("properties", map[string]any{
						"id": text("ID of the existing resource, in the provider's own format. It may contain expressions whose values are known while planning."),
						"identity": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true,
							"description": "Identity of the existing resource: the attributes by which the provider identifies instances."},
					})
				case lifecycleMoved:
					j.string("type", "object")
					j.value("required", []string{"from"})
					j.value("properties", map[string]any{
						"from": text(`Address that the infrastructure is recorded under, such as "sim_network.old". That object must be marked for deletion, with kubectl delete --wait=false.`),
					})
				default:
					j.string("type", "string")
				}
			})
		}
	})
}

// modelOf returns the model name of a type in the generated definitions.
func modelOf(t interface{ OpenAPIModelName() string }) string { return t.OpenAPIModelName() }
