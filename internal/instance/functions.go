package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// functionTimeout limits a call of a provider-defined function, which only computes.
const functionTimeout = time.Minute

// Functions returns the provider's functions for use in expressions, by names such as "provider::sim::upper".
// providerName is the name of the Provider object. call acquires a provider process, which need not be configured, and
// returns the function that releases it. With a nil call, functions can be type-checked but every result is unknown.
func Functions(providerName string, s *schema.Provider,
	call func(context.Context) (tfprotov6.ProviderServer, func(), error)) lang.Functions {
	out := make(lang.Functions, len(s.Functions))
	for name, f := range s.Functions {
		out["provider::"+providerName+"::"+name] = newFunction(name, f, call)
	}
	return out
}

func newFunction(name string, f *schema.Function,
	call func(context.Context) (tfprotov6.ProviderServer, func(), error)) function.Function {
	spec := &function.Spec{Description: f.Summary, Type: function.StaticReturnType(f.Return)}
	for _, p := range f.Parameters {
		spec.Params = append(spec.Params, parameter(p))
	}
	if f.Variadic != nil {
		v := parameter(f.Variadic)
		spec.VarParam = &v
	}
	spec.Impl = func(args []cty.Value, result cty.Type) (cty.Value, error) {
		for i, arg := range args {
			// cty handles wholly unknown arguments. A parameter without AllowUnknown does not accept partly unknown
			// arguments either.
			if !parameterAt(f, i).AllowUnknown && !arg.IsWhollyKnown() {
				return cty.UnknownVal(result), nil
			}
		}
		if call == nil {
			return cty.UnknownVal(result), nil
		}
		return callFunction(name, f, args, call)
	}
	return function.New(spec)
}

func parameter(p *schema.Parameter) function.Parameter {
	return function.Parameter{
		Name: p.Name, Description: p.Description, Type: p.Type, AllowNull: p.AllowNull, AllowUnknown: p.AllowUnknown,
		AllowDynamicType: true, // the static result type does not depend on the argument types
	}
}

func parameterAt(f *schema.Function, i int) *schema.Parameter {
	if i < len(f.Parameters) {
		return f.Parameters[i]
	}
	return f.Variadic
}

func callFunction(name string, f *schema.Function, args []cty.Value,
	call func(context.Context) (tfprotov6.ProviderServer, func(), error)) (cty.Value, error) {
	req := &tfprotov6.CallFunctionRequest{Name: name}
	for i, arg := range args {
		d, err := schema.Encode(arg, parameterAt(f, i).Type)
		if err != nil {
			return cty.NilVal, function.NewArgError(i, err)
		}
		req.Arguments = append(req.Arguments, d)
	}
	// The evaluation of an expression has no context.
	ctx, cancel := context.WithTimeout(context.Background(), functionTimeout)
	defer cancel()
	server, release, err := call(ctx)
	if err != nil {
		return cty.NilVal, err
	}
	defer release()
	resp, err := server.CallFunction(ctx, req)
	if err != nil {
		return cty.NilVal, err
	}
	if e := resp.Error; e != nil {
		if e.FunctionArgument != nil && *e.FunctionArgument >= 0 && *e.FunctionArgument < int64(len(args)) {
			return cty.NilVal, function.NewArgErrorf(int(*e.FunctionArgument), "%s", e.Text)
		}
		return cty.NilVal, fmt.Errorf("%s", e.Text)
	}
	if resp.Result == nil {
		return cty.NilVal, fmt.Errorf("the provider returned no result, which is a bug of the provider")
	}
	v, err := schema.Decode(resp.Result, f.Return)
	if err != nil {
		return cty.NilVal, fmt.Errorf(
			"the provider returned a value that is not of the function's type, which is a bug of the provider: %w", err)
	}
	return v, nil
}
