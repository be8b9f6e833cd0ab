// Package scope finds the values that the expressions of a plan refer to: planned and recorded resources, ConfigMaps,
// Secrets, ephemeral resources and functions of providers. It reads them with the rights of the plan's requester, and
// configures providers with the values.
package scope

import (
	"context"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/audit"
	"github.com/hykube/hykube/internal/catalog"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/metrics"
	"github.com/hykube/hykube/internal/recent"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/session"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/types"
)

// Block returns the schema of an address, or nil if no provider has the type.
func (a *Sources) Block(addr lang.Address) *schema.Block {
	if t := a.Catalog.Schema(addr.Mode, addr.Type); t != nil {
		return t.Block
	}
	return nil
}

// Sets finds ResourceSets, blocks of Modules, and Modules.
type Sets interface {
	// Set returns the ResourceSet whose template has the kind and the name of the reference, or the repeated block of a
	// Module, or nil.
	Set(ctx context.Context, ref v1alpha1.ObjectReference) (*resourceset.Set, error)
	// Module returns the Module with a name, or nil.
	Module(ctx context.Context, namespace, name string) (*resourceset.Module, error)
}

// CreateKey identifies the planned value of a create, decoded with the schema of a type.
type CreateKey struct {
	// UID and Revision are those of the object and of its record, which has the intent.
	UID      types.UID
	Revision int64
	// Provider and Version are those of the schema.
	Provider, Version, Type string
}

const (
	maxCreates  = 4096
	keepCreates = time.Minute
)

// NewCreates returns an empty cache for Sources.Creates.
func NewCreates() *recent.Map[CreateKey, cty.Value] {
	return recent.New[CreateKey, cty.Value](maxCreates, keepCreates)
}

// Sources holds the sources for the values of expressions and the configurations of providers. All fields but
// Sets, Users, Index, Record, Creates and Metrics are required.
type Sources struct {
	Objects store.Objects
	// Sets finds ResourceSets; nil finds none.
	Sets    Sets
	Configs store.Configs
	Access  store.Access
	// Users gives the users of plans the groups that they have now; nil keeps the groups.
	Users store.Users
	// Policies reads the policies for plans.
	Policies store.Policies
	Catalog  *catalog.Catalog
	Ledger   *ledger.Ledger
	// Processes are this process and the others that write to Ledger. It is required to apply plans.
	Processes ledger.Processes
	// Index knows the objects of all namespaces, and which of them a plan visits.
	Index *index.Index
	// Sessions configures the providers.
	Sessions *session.Pool
	// Record records the calls to providers that may change something; nil records nothing.
	Record audit.RecordFunc
	// Creates caches what creates planned that run or have an unknown outcome; nil caches nothing.
	Creates *recent.Map[CreateKey, cty.Value]
	// Metrics counts the steps of applies; nil counts nothing.
	Metrics *metrics.Metrics
}
