package resourceset

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/module"
)

// moduleImports are the import blocks of a Module that no instance has taken yet, by the addresses of the instances.
type moduleImports map[lang.Address]moduleImport

type moduleImport struct {
	by    v1alpha1.InstanceImport
	place string
}

// imports evaluates the import blocks.
func (m *Module) imports(known module.Known) (moduleImports, error) {
	found, diags := m.Expansion.Values(known).Imports()
	out := make(moduleImports, len(found))
	for _, i := range found {
		by, problem := importedBy(i)
		switch _, twice := out[i.To]; {
		case i.Provider != nil:
			problem = "The resource has a block, whose argument provider says which configuration imports it. Remove the argument here."
		case twice:
			problem = fmt.Sprintf("Another import block has the target %s.", i.To)
		}
		if problem != "" {
			diags = append(diags, diag.Errorf(i.Place(), "Invalid import block", "%s", problem))
		}
		out[i.To] = moduleImport{by, i.Place()}
	}
	if diag.HasErrors(diags) {
		return nil, failed(diags)
	}
	return out, nil
}

// importedBy returns the ID or the identity of an import block, or what is wrong with it.
func importedBy(i module.Importing) (by v1alpha1.InstanceImport, problem string) {
	v, isIdentity := i.ID, i.Identity != cty.NilVal
	if isIdentity {
		v = i.Identity
	}
	switch {
	case v.IsNull():
		return by, "The ID or identity is null."
	case lang.HasMarks(v):
		return by, "The ID or identity comes from a sensitive value, and plans show it."
	case !isIdentity && v.AsString() == "":
		return by, "The ID is empty."
	case isIdentity && !v.Type().IsObjectType():
		return by, "The identity must be an object."
	case isIdentity:
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			return by, err.Error()
		}
		by.Identity = &runtime.RawExtension{Raw: raw}
		return by, ""
	}
	by.ID = v.AsString()
	return by, ""
}

// take gives the instances of a set their import blocks.
func (list moduleImports) take(s *Set) error {
	for k := range s.block.Len() {
		a := s.block.AddressOf(k)
		i, ok := list[a]
		if !ok {
			continue
		}
		delete(list, a)
		if s.imports == nil {
			s.imports = map[string]v1alpha1.InstanceImport{}
		}
		s.imports[s.Key(k).Text()] = i.by
		content, err := json.Marshal([]any{s.contents[k][:], i.by})
		if err != nil {
			return fmt.Errorf("encode import block: %w", err)
		}
		s.contents[k] = sha256.Sum256(content)
	}
	return nil
}

// rest returns an error for the blocks whose targets do not exist, unless these may exist after another plan.
func (list moduleImports) rest(m *Module) error {
	var diags diag.Diagnostics
	for a, i := range list {
		if m.Expansion.Waits(a) == nil {
			diags = append(diags, diag.Errorf(i.place, "Configuration for import target does not exist",
				"The module has no %s. Add the resource, or remove the import block.", a))
		}
	}
	if len(diags) == 0 {
		return nil
	}
	return failed(diags)
}
