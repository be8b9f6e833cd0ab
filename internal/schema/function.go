package schema

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

// Function is the signature of a provider-defined function.
type Function struct {
	// Parameters, in order.
	Parameters []*Parameter
	// Variadic is the parameter for all arguments after Parameters; nil if there are none.
	Variadic *Parameter
	// Return is the type of the result.
	Return  cty.Type
	Summary string
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name, Description string
	Type              cty.Type
	// AllowNull and AllowUnknown permit such arguments. Without AllowUnknown, a call with an unknown argument has an
	// unknown result and does not reach the provider.
	AllowNull, AllowUnknown bool
}

// FunctionsFromProto converts signatures from the protocol. Errors name the function and the parameter.
func FunctionsFromProto(in map[string]*tfprotov6.Function) (map[string]*Function, error) {
	out := make(map[string]*Function, len(in))
	for name, f := range in {
		c, err := fromFunction(f)
		if err != nil {
			return nil, fmt.Errorf("function %q: %w", name, err)
		}
		out[name] = c
	}
	return out, nil
}

func fromFunction(f *tfprotov6.Function) (*Function, error) {
	if f == nil || f.Return == nil {
		return nil, fmt.Errorf("it has no return type")
	}
	out := &Function{Summary: f.Summary}
	var err error
	if out.Return, err = fromType(f.Return.Type); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}
	for _, p := range f.Parameters {
		c, err := fromParameter(p)
		if err != nil {
			return nil, err
		}
		out.Parameters = append(out.Parameters, c)
	}
	if f.VariadicParameter != nil {
		if out.Variadic, err = fromParameter(f.VariadicParameter); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func fromParameter(p *tfprotov6.FunctionParameter) (*Parameter, error) {
	ty, err := fromType(p.Type)
	if err != nil {
		return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
	}
	return &Parameter{
		Name: p.Name, Description: p.Description, Type: ty, AllowNull: p.AllowNullValue,
		AllowUnknown: p.AllowUnknownValues,
	}, nil
}
