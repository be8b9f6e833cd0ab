package lang

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
)

// This file reads references in Terraform modules. Besides objects, they are to named values, whose addresses have one
// of the modes below. A scope evaluates the expression of such a value.

// The modes of named values.
const (
	// ModeVariable and ModeLocal are var.NAME and local.NAME.
	ModeVariable v1alpha1.Mode = "var"
	ModeLocal    v1alpha1.Mode = "local"
	// ModeModule is module.NAME, or one instance of it: an object of the outputs, or of instances by their keys.
	ModeModule v1alpha1.Mode = "module"
	// ModeOutput is an output. The module of its address is the called one.
	ModeOutput v1alpha1.Mode = "output"
	// ModePath and ModeTerraform are path.NAME and terraform.NAME.
	ModePath      v1alpha1.Mode = "path"
	ModeTerraform v1alpha1.Mode = "terraform"
)

// Named reports whether the address is that of a named value of a module, and not of an object.
func (a Address) Named() bool {
	switch a.Mode {
	case ModeVariable, ModeLocal, ModeModule, ModeOutput, ModePath, ModeTerraform:
		return true
	}
	return false
}

// isValue reports whether the address is that of one value, and not of a module or an object.
func (a Address) isValue() bool {
	return a.Mode == ModeVariable || a.Mode == ModeLocal || a.Mode == ModeOutput
}

// UsesKey reports whether the reference has the key of an instance that its text does not give, as in
// sim_network.n[count.index].
func (r Reference) UsesKey() bool { return r.key != nil }

// At returns the part of the value of the reference's address that the reference is to. It stops before a step into a
// value that is unknown or sensitive. ok is false if the value has no such part.
func (r Reference) At(v cty.Value) (part cty.Value, ok bool) {
	for _, s := range r.steps {
		if v.IsMarked() || !v.IsKnown() {
			return v, true
		}
		next, diags := s.TraversalStep(v)
		if diags.HasErrors() {
			return cty.NilVal, false
		}
		v = next
	}
	return v, true
}

// ObjectName returns the name of the object with the address, with the path of its module.
func (a Address) ObjectName() string { return v1alpha1.ModuleObjectName(a.Module, a.Name) }

// CalledPath returns the path of the called module that an address of ModeModule names.
func (a Address) CalledPath() string { return a.output("").Module }

// Covers reports whether another address is within this one: the same, an instance of it, or in the module that an
// address of ModeModule names, or in an instance of that module.
func (a Address) Covers(other Address) bool {
	if a.Mode != ModeModule {
		set, _, _ := other.Set()
		return a == other || a == set
	}
	rest, ok := strings.CutPrefix(other.Module, a.CalledPath())
	return ok && a.Namespace == other.Namespace && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// output returns the address of an output of the called module that an address of ModeModule names.
func (a Address) output(name string) Address {
	call, key, instance := a.Set()
	path := v1alpha1.ModulePath(a.Module, call.Name, nil)
	if instance {
		path = v1alpha1.ModulePath(a.Module, call.Name, &key)
	}
	return Address{Namespace: a.Namespace, Module: path, Mode: ModeOutput, Name: name}
}

// Called returns the address of the call of the module that an output is in: module.NAME, or one instance of it.
func (a Address) Called() Address {
	caller, call, key := v1alpha1.LastCall(a.Module)
	out := Address{Namespace: a.Namespace, Module: caller, Mode: ModeModule, Name: call}
	if key != nil {
		return out.Instance(*key)
	}
	return out
}

// rebind returns the address in another instance of its module: from is the path of the module in the address, and to
// the path that replaces it.
func (a Address) rebind(from, to string) Address {
	if rest, ok := strings.CutPrefix(a.Module, from); ok {
		a.Module = to + rest
	}
	return a
}

// rebound returns references with another path of their own module.
func rebound(refs []Reference, from, to string) []Reference {
	if from == to || len(refs) == 0 {
		return refs
	}
	out := slices.Clone(refs)
	for i := range out {
		out[i].Address, out[i].written = out[i].Address.rebind(from, to), out[i].written.rebind(from, to)
	}
	return out
}

// rootResource may precede a resource type in a module.
const rootResource = "resource"

// moduleAddress reads a reference in a module. n is the number of steps that the address takes.
func (p *parser) moduleAddress(t hcl.Traversal, at string) (a Address, n int, ok bool) {
	root := t.RootName()
	a = Address{Module: p.opts.Module, Mode: v1alpha1.Mode(root)}
	switch {
	case root == rootCount || root == rootEach || root == rootSelf:
		p.fail(at, `Reference to "`+root+`" in the wrong context`, "%s", contextOf[root])
		return a, 0, false
	case a.Mode == ModeModule:
		return p.callAddress(t, at)
	case a.Mode == ModeOutput: // a resource type may have this name
		a.Mode = ""
	case a.Named():
		if a.Name, ok = attribute(t, 1); !ok {
			p.fail(at, "Invalid reference",
				"The %q object cannot be accessed directly. Instead, access one of its attributes.", root)
			return a, 0, false
		}
		if names := attributesOf[a.Mode]; names != nil && !slices.Contains(names, a.Name) {
			p.fail(at, "Invalid \""+root+"\" attribute", "The %q object does not have an attribute named %q. Write %s.",
				root, a.Name, root+"."+strings.Join(names, " or "+root+"."))
			return a, 0, false
		}
		return a, 2, true
	case a.Mode == v1alpha1.ModeData || a.Mode == v1alpha1.ModeEphemeral:
		n = 1
	case root == rootResource:
		a.Mode, n = "", 1
	case a.Mode == v1alpha1.ModeAction:
		p.fail(at, "Invalid reference", "An action has no result, so nothing can refer to it.")
		return a, 0, false
	default:
		a.Mode = ""
	}
	return p.resourceAddress(a, t, n, at)
}

// contextOf has the texts for objects that exist only in some blocks.
var contextOf = map[string]string{
	rootCount: `The "count" object can only be used in "module", "resource", and "data" blocks, and only when the "count" argument is set.`,
	rootEach:  `The "each" object can be used only in "module" or "resource" blocks, and only when the "for_each" argument is set.`,
	rootSelf:  `The "self" object is the block's own result, which only a postcondition can refer to.`,
}

// attributesOf are the attributes of the objects whose attributes are fixed.
var attributesOf = map[v1alpha1.Mode][]string{
	ModePath: {"module", "root", "cwd"}, ModeTerraform: {"workspace", "applying"},
}

// resourceAddress reads TYPE.NAME and the key of an instance, from the step n on.
func (p *parser) resourceAddress(a Address, t hcl.Traversal, n int, at string) (Address, int, bool) {
	var okType, okName bool
	if n == 0 {
		a.Type, okType = t.RootName(), true
	} else {
		a.Type, okType = attribute(t, n)
	}
	a.Name, okName = attribute(t, n+1)
	if !okType || !okName {
		p.fail(at, "Invalid reference",
			"A reference to a resource type must be followed by at least one attribute access, specifying the resource name.")
		return a, 0, false
	}
	if key, ok := keyStep(t, n+2); ok && a.hasInstances() {
		return a.Instance(key), n + 3, true
	}
	return a, n + 2, true
}

// callAddress reads module.NAME, the key of an instance, and the name of an output.
func (p *parser) callAddress(t hcl.Traversal, at string) (a Address, n int, ok bool) {
	a = Address{Module: p.opts.Module, Mode: ModeModule}
	if a.Name, ok = attribute(t, 1); !ok {
		p.fail(at, "Invalid reference",
			`The "module" object cannot be accessed directly. Instead, access one of its attributes.`)
		return a, 0, false
	}
	n = 2
	if key, ok := keyStep(t, n); ok {
		a, n = a.Instance(key), n+1
	}
	if name, ok := attribute(t, n); ok {
		return a.output(name), n + 1, true
	}
	return a, n, true
}

// outputAddress reads module.NAME.OUTPUT outside of a module: an output of a Module. The step n is the root.
func (p *parser) outputAddress(namespace string, t hcl.Traversal, n int, at string) (a Address, steps int, ok bool) {
	module, named := step(t, n+1)
	output, ok := attribute(t, n+2)
	if !named || !ok {
		p.fail(at, "Invalid reference",
			"%q alone is not a reference: %s. For a resource of a Module, add an output to its files.", ModeModule,
			reservedRoots[string(ModeModule)])
		return a, 0, false
	}
	if !validName(module) || strings.Contains(module, ".") {
		p.fail(at, "Invalid reference",
			"%q cannot be the name of a Module. A name consists of lower case letters, digits and dashes.", module)
		return a, 0, false
	}
	return OutputOf(namespace, module, output), n + 3, true
}

// OutputOf returns the address of an output of a Module, for references from outside of it.
func OutputOf(namespace, module, output string) Address {
	return Address{Namespace: namespace, Module: v1alpha1.ModulePath("", module, nil), Mode: ModeOutput, Name: output}
}

// IsModuleOutput reports whether the address is that of an output of a Module, and not of a module that it calls.
func (a Address) IsModuleOutput() bool {
	if a.Mode != ModeOutput {
		return false
	}
	caller, _, _ := v1alpha1.LastCall(a.Module)
	return caller == ""
}

// attribute returns the i-th step of a traversal if it is an attribute.
func attribute(t hcl.Traversal, i int) (string, bool) {
	if i >= len(t) {
		return "", false
	}
	s, ok := t[i].(hcl.TraverseAttr)
	return s.Name, ok
}

// place returns the steps from the root of an expression's variables to the referenced value.
func (r Reference) place() []string {
	a := r.written
	var at []string
	if a.Namespace != "" {
		at = append(at, rootNamespace, a.Namespace)
	}
	if a.Mode == ModeOutput {
		return append(append(at, callPlace(a.Called())...), a.Name)
	}
	if a.Mode == ModeModule {
		return append(at, callPlace(a)...)
	}
	if r.explicit {
		at = append(at, rootResource)
	}
	if a.Mode != "" {
		at = append(at, string(a.Mode))
	}
	if a.Type != "" {
		at = append(at, a.Type)
	}
	set, key, instance := a.Set()
	at = append(at, set.Name)
	if instance {
		at = append(at, key.Text()) // HCL converts the index of an object to a string
	}
	return at
}

func callPlace(a Address) []string {
	call, key, instance := a.Set()
	if instance {
		return []string{string(ModeModule), call.Name, key.Text()}
	}
	return []string{string(ModeModule), call.Name}
}

// optional reports whether a missing value is an error of the expression around it, which try() can handle.
func (r Reference) optional() bool {
	return v1alpha1.IsInstanceName(r.Name) || r.Mode == ModeOutput
}

// undeclared returns the error for a named value that a module does not declare.
func undeclared(r Reference) v1alpha1.Diagnostic {
	switch r.Mode {
	case ModeVariable:
		return diag.Errorf(r.Field, "Reference to undeclared input variable",
			"An input variable with the name %q has not been declared. This variable can be declared with a variable %q {} block.", r.Name, r.Name)
	case ModeLocal:
		return diag.Errorf(r.Field, "Reference to undeclared local value",
			"A local value with the name %q has not been declared.", r.Name)
	default:
		return diag.Errorf(r.Field, "Reference to undeclared module", "No module call named %q is declared.", r.Name)
	}
}

// validModuleName reports whether s is a name in a module: an identifier of the language.
func validModuleName(s string) bool { return hclsyntax.ValidIdentifier(s) }
