package planning

import (
	"context"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/scope"

	"k8s.io/apimachinery/pkg/types"
)

// node is an object of the namespace during a survey.
type node struct {
	*resource.Resource
	record *ledger.Instance
	// wanted is false if the plan destroys the object's infrastructure.
	wanted bool
	resource.Expressions
	// configVersion is the version of the ProviderConfig; see scope.VersionOfConfig.
	configVersion string
	// providerConfig is the ProviderConfig if it has references. inherited lists the DependsOn that only the
	// ProviderConfig refers to.
	providerConfig *scope.ProviderConfigRef
	inherited      []lang.Address
	// requires lists the addresses that the recorded state refers to.
	requires []lang.Address
	// externalVersions holds the versions of dependencies that are not resources; see findExternalVersions.
	externalVersions map[string]string
	// createsFirst is true if a replace must create before it destroys.
	createsFirst bool
	// movedFrom is the node whose record moves to this one. The other node's movedTo is this node.
	movedFrom, movedTo *node
}

// nodes returns the objects of the plan's namespace with their records.
func (a *Planner) nodes(ctx context.Context, po *v1alpha1.Plan) ([]*node, diag.Diagnostics, error) {
	records := map[types.UID]*ledger.Instance{}
	for rec, err := range a.Ledger.Instances(ctx, po.Namespace) {
		if err != nil {
			return nil, nil, err
		}
		records[rec.Object.UID] = rec
	}
	var nodes []*node
	var diags diag.Diagnostics
	configs := a.ProviderConfigs(ctx, po)
	for obj, err := range a.Objects.List(ctx, po.Namespace) {
		if err != nil {
			return nil, nil, err
		}
		r, err := resource.Of(obj, a.Catalog)
		if err != nil {
			diags = append(diags, lang.Problem(resource.AddressOf(obj.GetKind(), obj.GetName()), "", "Provider not ready", err.Error()))
			continue
		}
		n := &node{Resource: r, record: records[r.Ref.UID], wanted: !r.Deleting && !po.Spec.Destroy}
		delete(records, r.Ref.UID)
		if n.record == nil {
			n.record = &ledger.Instance{Object: r.Ref}
		}
		for _, s := range n.record.Dependencies {
			if addr, err := lang.ParseAddress(s); err == nil {
				n.requires = append(n.requires, addr)
			}
		}
		// a resource that is only read needs no configuration
		if n.wanted && (!po.Spec.RefreshOnly || n.Mode != v1alpha1.ModeManaged) {
			n.Expressions = *n.Parse()
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
