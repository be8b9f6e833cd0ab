package module

import (
	"cmp"
	"crypto/sha256"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"
)

// Config is the configuration of one module: the root, or one call of a module. It is immutable after Load.
type Config struct {
	// Path has the names of the calls that lead to the module; empty for the root.
	Path []string
	// Dir is the module's directory within the files; "." for the root.
	Dir       string
	Variables map[string]*Variable
	Locals    map[string]*Expr
	Outputs   map[string]*Output
	Calls     map[string]*Call
	Blocks    map[BlockID]*Block
	Providers map[ProviderID]*Provider
	// Required are the providers by their local names.
	Required map[string]*RequiredProvider
	// Versions are the constraints of required_version.
	Versions []string
	Moved    []*Moved
	Imports  []*Import
	Removed  []*Removed
	Checks   map[string]*Check
	// Children are the configurations of the called modules, by the names of the calls.
	Children map[string]*Config

	positions Positions
}

// BlockID identifies a block in its module.
type BlockID struct {
	// Mode is empty for a managed resource.
	Mode       v1alpha1.Mode
	Type, Name string
}

// compare orders blocks by mode, type and name.
func (id BlockID) compare(other BlockID) int {
	return cmp.Or(strings.Compare(string(id.Mode), string(other.Mode)), strings.Compare(id.Type, other.Type),
		strings.Compare(id.Name, other.Name))
}

// String returns the address of the block in its module, such as data.sim_image.base.
func (id BlockID) String() string {
	if id.Mode == "" {
		return id.Type + "." + id.Name
	}
	return string(id.Mode) + "." + id.Type + "." + id.Name
}

// Variable is an input variable.
type Variable struct {
	Name string
	// Type is the type constraint; cty.DynamicPseudoType without one. Defaults are those of optional attributes in it.
	Type     cty.Type
	Defaults *typeexpr.Defaults
	// Default has the type; NilVal if the variable is required.
	Default                        cty.Value
	Nullable, Sensitive, Ephemeral bool
	Deprecated                     string
	Validations                    []Condition
	Range                          hcl.Range

	written writtenVariable
}

// Condition is a condition with its error message.
type Condition struct{ Condition, Message *Expr }

// Output is an output value.
type Output struct {
	Name                 string
	Value                *Expr
	Sensitive, Ephemeral bool
	Deprecated           string
	DependsOn            []Target
	Preconditions        []Condition
	Range                hcl.Range
}

// Repetition has the expressions that repeat a block or a module; nil for those that it does not have.
type Repetition struct{ Count, ForEach, Enabled *Expr }

// Call is a module block.
type Call struct {
	Name, Source, Version string
	Repetition
	// Arguments are the expressions for the variables.
	Arguments map[string]*Expr
	// Providers maps the provider addresses in the called module to those of the caller.
	Providers []PassedProvider
	DependsOn []Target
	Range     hcl.Range
}

// PassedProvider is an entry of the argument providers of a module block.
type PassedProvider struct {
	Inner ProviderID
	Outer ProviderRef
}

// Block is a resource, data source, ephemeral resource or action.
type Block struct {
	BlockID
	Repetition
	// Spec is the body as a spec with templates. All instances share it, so no caller may change it.
	Spec map[string]any
	// Provider is the provider configuration; nil for the default one of the type.
	Provider  *ProviderRef
	DependsOn []Target
	Lifecycle Lifecycle
	// Check is the name of the check block with the data source; empty outside of one.
	Check string
	Range hcl.Range

	positions Positions
	// spec is the parsed spec, without its schema. digest is that of the block as written.
	spec   *lang.Expression
	digest [sha256.Size]byte
}

// Lifecycle has the arguments of a lifecycle block; nil for those that it does not have.
type Lifecycle struct {
	CreateBeforeDestroy           *bool
	PreventDestroy, Destroy       *Expr
	IgnoreAll                     bool
	IgnoreChanges                 []string
	ReplaceTriggeredBy            []*Expr
	Preconditions, Postconditions []Condition
	Triggers                      []Trigger
}

// Trigger is an action_trigger block.
type Trigger struct {
	Events    []string
	Condition *Expr
	Actions   []*Expr
	Range     hcl.Range
}

// ProviderID identifies a provider configuration in its module. Alias is empty for the default configuration.
type ProviderID struct{ Name, Alias string }

// String returns the address as in Terraform: aws or aws.west.
func (id ProviderID) String() string {
	if id.Alias == "" {
		return id.Name
	}
	return id.Name + "." + id.Alias
}

// ProviderRef refers to a provider configuration. Key is the expression of its key, if it has for_each; nil otherwise.
type ProviderRef struct {
	ProviderID
	Key *Expr
}

// Provider is a provider block.
type Provider struct {
	ProviderID
	ForEach *Expr
	// Spec has the arguments, as the spec of a block.
	Spec  map[string]any
	Range hcl.Range

	positions Positions
}

// RequiredProvider is an entry of required_providers.
type RequiredProvider struct {
	// Source is the source address, such as hashicorp/aws; empty without one.
	Source, Version string
	// Aliases are the configuration_aliases: configurations that the caller must pass.
	Aliases []ProviderID
	Range   hcl.Range
}

// Moved is a moved block.
type Moved struct {
	From, To Target
	Range    hcl.Range
}

// Import is an import block.
type Import struct {
	To           Target
	ForEach      *Expr
	ID, Identity *Expr
	Provider     *ProviderRef
	Range        hcl.Range
}

// Removed is a removed block.
type Removed struct {
	From Target
	// Destroy is false if the infrastructure stays.
	Destroy bool
	Range   hcl.Range
}

// Check is a check block. Its data source is one of the module's blocks.
type Check struct {
	Name       string
	Assertions []Condition
	Range      hcl.Range
}

// Target is the address of a module or a block, or of one of their instances, relative to the module that names it.
type Target struct {
	Steps []TargetStep
	// Block is the zero BlockID if the target is a module. Key is the key of its instance; nil without one.
	Block BlockID
	Key   *Expr
	// Text is the address as written.
	Text  string
	Range hcl.Range
}

// TargetStep is a module call in a target. Key is the key of the instance; nil for all instances.
type TargetStep struct {
	Name string
	Key  *Expr
}

// Expr is a constant or an expression of a file, in the form that internal/lang reads.
type Expr struct {
	// Value is a JSON value with templates.
	Value any
	// Field is the field by which diagnostics name the expression.
	Field string
	Range hcl.Range
	// of maps the field to the file.
	of     Positions
	parsed *lang.Expression
	// constant is the value of an input without expressions, which is not parsed; NilVal for all others.
	constant cty.Value
	// members are the expressions of the object's attributes, if it is one with literal keys.
	members map[string]*Expr
}
