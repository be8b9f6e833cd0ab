package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"

	"k8s.io/apimachinery/pkg/types"
)

// node is an object of the namespace as the survey sees it.
type node struct {
	*resource
	record *ledger.Instance
	// wanted is false for what is to be destroyed.
	wanted bool
	config *lang.Config
	// expressions are those of the lifecycle.
	expressions []*lang.Expression
	// references are those of all expressions; dependsOn what they name in this namespace, beside lifecycle.dependsOn.
	references []lang.Reference
	dependsOn  []lang.Address
	// configVersion is that of the ProviderConfig, see versionOfConfig.
	configVersion string
	// setting is the ProviderConfig, if that refers to anything. inherited are those of dependsOn that it alone refers to.
	setting   *providerConfigRef
	inherited []lang.Address
	// requires are the resources that the recorded state refers to.
	requires []lang.Address
	// external is true when expressions refer to what no plan of this namespace changes, such as a ConfigMap, and only a look at the
	// node tells whether that changed.
	external bool
	// externalVersions are the versions of what the node follows that is no resource; see the method follow.
	externalVersions map[string]string
	// impure is true when expressions may give another value each time: they read the clock, for example.
	impure bool
	// createsFirst is true when a replace has to create before it destroys.
	createsFirst bool
	// movedFrom is the node whose record this one takes over; that one's movedTo is this one then.
	movedFrom, movedTo *node
	invalid            diag.Diagnostics
}

// nodes reads the objects of the plan's namespace together with what is recorded of them.
func (a *Activities) nodes(ctx context.Context, po *v1alpha1.Plan) ([]*node, diag.Diagnostics, error) {
	records := map[types.UID]*ledger.Instance{}
	for rec, err := range a.Ledger.Instances(ctx, po.Namespace) {
		if err != nil {
			return nil, nil, err
		}
		records[rec.Object.UID] = rec
	}
	var nodes []*node
	var diags diag.Diagnostics
	functions := a.signatures()
	configs := a.providerConfigs(ctx, po)
	for obj, err := range a.Objects.List(ctx, po.Namespace) {
		if err != nil {
			return nil, nil, err
		}
		r, err := resourceOf(obj, a.Catalog)
		if err != nil {
			diags = append(diags, problem(addressOf(obj.GetKind(), obj.GetName()), "Provider not ready", err.Error()))
			continue
		}
		n := &node{resource: r, record: records[r.ref.UID], wanted: !r.deleting && !po.Spec.Destroy}
		delete(records, r.ref.UID)
		if n.record == nil {
			n.record = &ledger.Instance{Object: r.ref}
		}
		for _, s := range n.record.Dependencies {
			if addr, err := lang.ParseAddress(s); err == nil {
				n.requires = append(n.requires, addr)
			}
		}
		if n.wanted && (!po.Spec.RefreshOnly || n.mode != v1alpha1.ModeManaged) { // a resource that is only read needs no configuration
			n.parse(functions)
		}
		if err := n.configure(configs); err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, n)
	}
	if err := a.dropData(ctx, po.Namespace, records); err != nil {
		return nil, nil, err
	}
	return nodes, diags, nil
}

// parse reads the expressions of the spec and of the lifecycle.
func (n *node) parse(functions lang.Functions) {
	var diags diag.Diagnostics
	n.config, diags = lang.ConfigOptions{
		Functions: functions, Namespace: n.ref.Namespace, Ephemeral: n.mode == v1alpha1.ModeEphemeral,
	}.Parse(n.spec(), n.schema.Block)
	n.references = n.config.References()
	n.impure = n.config.Impure()
	for _, which := range []string{preconditions, postconditions} {
		checks, more := checksOf(n.resource, which, lang.ExpressionOptions{Functions: functions})
		n.references, diags = append(n.references, references(checks)...), append(diags, more...)
		for _, c := range checks {
			n.expressions = append(n.expressions, c.condition, c.message)
		}
	}
	triggers, more := triggersOf(n.resource)
	diags = append(diags, more...)
	for _, t := range triggers {
		for _, ref := range t.References() {
			ref.Field, _, _ = strings.Cut(ref.Field, ", ") // the column counts what nobody wrote
			n.references = append(n.references, ref)
		}
	}
	imports, more := n.importExpressions(lang.ExpressionOptions{Functions: functions})
	diags = append(diags, more...)
	for _, e := range imports {
		n.references = append(n.references, e.References()...)
		n.expressions = append(n.expressions, e)
	}
	seen := map[lang.Address]bool{}
	depend := func(addr lang.Address) {
		switch {
		case addr.Namespace != "" || addr.Type == lang.TypeConfigMap || addr.Type == lang.TypeSecret:
			n.external = true
		case addr == n.addr:
			if !seen[addr] {
				diags = append(diags, attributeProblem(n.addr, "", "Self-referential resource",
					fmt.Sprintf("%s refers to itself, and cannot know its own values before it is planned. Remove the reference; a postcondition can speak of self.", n.addr)))
			}
			seen[addr] = true
		case !seen[addr]:
			seen[addr] = true
			n.dependsOn = append(n.dependsOn, addr)
		}
	}
	for _, ref := range n.references {
		depend(ref.Address)
	}
	n.invalid = lang.WithAddress(diags, n.addr)
	slices.SortFunc(n.dependsOn, lang.Address.Compare)
	for i, s := range n.lifecycle.DependsOn {
		addr, err := lang.ParseAddress(s)
		if err != nil {
			n.invalid = append(n.invalid, attributeProblem(n.addr, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Invalid address", err.Error()))
			continue
		}
		if addr == n.addr {
			n.invalid = append(n.invalid, attributeProblem(n.addr, fmt.Sprintf("lifecycle.dependsOn[%d]", i), "Self-referential resource", "A resource cannot depend on itself."))
			continue
		}
		depend(addr)
	}
}
