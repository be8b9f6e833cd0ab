package lang

import (
	"github.com/hykube/hykube/internal/diag"

	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty/function"
)

// Functions maps names such as "provider::sim::upper" to provider-defined functions. In the name, "sim" is the name of
// the Provider object. In a module, they may include functions that read the module's files, such as "file". The
// function TemplateFile returns the text of a template for its path, and the evaluation renders the template.
type Functions map[string]function.Function

// Prefixes of function names.
const (
	corePrefix     = "core::"
	providerPrefix = "provider::"
)

// call records the function that an expression calls, or reports that there is no such function.
func (p *parser) call(c *hclsyntax.FunctionCallExpr, field string) {
	f, ok := builtins[strings.TrimPrefix(c.Name, corePrefix)]
	if strings.HasPrefix(c.Name, providerPrefix) {
		f, ok = p.opts.Functions[c.Name]
	}
	if !ok && p.opts.Module != "" { // a function that reads the module's files
		f, ok = p.opts.Functions[strings.TrimPrefix(c.Name, corePrefix)]
	}
	if !ok {
		p.fail(columnField(field, c.NameRange), "Call to unknown function", "%s", p.noFunction(c.Name))
		return
	}
	if p.opts.Settled && isImpure(c.Name) {
		p.fail(columnField(field, c.NameRange), "Value known too late",
			"%s() gets its value during planning or the apply, but this field needs its value before. Write the value itself.", c.Name)
		return
	}
	if p.calls == nil {
		p.calls = make(map[string]function.Function)
	}
	p.calls[c.Name] = f
}

// in returns a copy of the program that evaluates in the context.
func (p program) in(at EvaluationContext) program {
	p.context, p.request = at, at.Budget
	if at.Functions != nil {
		p.functions = at.Functions
	}
	if at.Module != "" {
		p.refs, p.module = rebound(p.refs, p.module, at.Module), at.Module
	}
	if at.Instance != nil {
		p.refs = p.instanceReferences(at.Instance)
	}
	if !p.callsGiven() {
		return p
	}
	p.calls = maps.Clone(p.calls)
	for name := range p.calls {
		if f, ok := at.Functions[givenName(name)]; ok {
			p.calls[name] = f
		}
	}
	return p
}

// callsGiven reports whether an expression calls a function that an evaluation gives.
func (p *program) callsGiven() bool {
	for name := range p.calls {
		if givenName(name) != "" {
			return true
		}
	}
	return false
}

// givenName returns the name by which an evaluation gives a function, one of a provider or one that reads files; "" for
// a built-in function.
func givenName(called string) string {
	if strings.HasPrefix(called, providerPrefix) {
		return called
	}
	name := strings.TrimPrefix(called, corePrefix)
	if _, built := builtins[name]; built {
		return ""
	}
	return name
}

func (p *parser) noFunction(name string) string {
	if why, ok := refused[strings.TrimPrefix(name, corePrefix)]; ok {
		return fmt.Sprintf("There is no function %q here: %s.", name, why)
	}
	rest, ok := strings.CutPrefix(name, providerPrefix)
	if !ok {
		if ns, _, ok := strings.Cut(name, "::"); ok && ns+"::" != corePrefix {
			return fmt.Sprintf("There is no function %q. Functions of providers are called as provider::NAME::FUNCTION, where NAME is that of the Provider object.", name)
		}
		hint := diag.DidYouMean(name, sortedKeys(builtins))
		if hint == "" {
			// The prefix "provider::NAME::" may be missing: suggest the full name.
			for _, full := range sortedKeys(p.opts.Functions) {
				if strings.HasSuffix(full, "::"+name) {
					hint = fmt.Sprintf(" Did you mean %q?", full)
					break
				}
			}
		}
		return fmt.Sprintf("There is no function %q.%s", name, hint)
	}
	providers := map[string][]string{}
	for full := range p.opts.Functions {
		provider, fn, _ := strings.Cut(strings.TrimPrefix(full, providerPrefix), "::")
		providers[provider] = append(providers[provider], fn)
	}
	provider, fn, ok := strings.Cut(rest, "::")
	switch {
	case !ok || fn == "":
		return fmt.Sprintf("There is no function %q. Functions of providers are called as provider::NAME::FUNCTION.",
			name)
	case len(providers) == 0:
		return fmt.Sprintf("There is no function %q: no provider with functions is installed.", name)
	case providers[provider] == nil:
		names := sortedKeys(providers)
		return fmt.Sprintf("There is no provider %q with functions.%s Providers with functions: %s.", provider,
			diag.DidYouMean(provider, names), listNames(names))
	default:
		slices.Sort(providers[provider])
		return fmt.Sprintf("The provider %q has no function %q.%s It has: %s.", provider, fn,
			diag.DidYouMean(fn, providers[provider]), listNames(providers[provider]))
	}
}

// listNames returns a list of the first ten names, and the number of the others.
func listNames(names []string) string {
	const most = 10
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// refused maps the Terraform functions that Hykube does not support to the reason.
var refused = map[string]string{
	"abspath":          noFiles,
	"file":             noFiles,
	"filebase64":       noFiles,
	"filebase64sha256": noFiles,
	"filebase64sha512": noFiles,
	"fileexists":       noFiles,
	"filemd5":          noFiles,
	"fileset":          noFiles,
	"filesha1":         noFiles,
	"filesha256":       noFiles,
	"filesha512":       noFiles,
	"pathexpand":       noFiles,
	"templatefile":     noFiles + ", and templatestring(configmap.NAME.KEY, {...}) to render it",
	"type":             "it exists only in Terraform's console",
}

const noFiles = "expressions cannot read files; put the content into a ConfigMap and write ${configmap.NAME.KEY}"
