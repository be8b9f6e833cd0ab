package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resourceset"
	"github.com/hykube/hykube/internal/scope"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// maxOutput is the maximum size, in bytes, of the value of an output.
const maxOutput = 64 << 10

// maxOutputs is the maximum size, in bytes, of the values of all outputs of a Stack, whose status must fit into the
// store.
const maxOutputs = 512 << 10

// Output is the value of an output of a Stack.
type Output struct {
	Name string
	// JSON is the value as JSON, and Text the value of a string, or else JSON.
	JSON, Text string
	Sensitive  bool
	// Writers are the users who wrote, or caused, what the output reads: keys of ConfigMaps and Secrets, and recorded
	// values.
	Writers []v1alpha1.Contributor
}

// OutputError is the error for an output that cannot be evaluated or written, for a reason that a user can correct. Its
// text reveals no secret.
type OutputError struct{ Problem string }

func (e *OutputError) Error() string { return e.Problem }

func noValue(name, problem string) *OutputError {
	return &OutputError{fmt.Sprintf("the output %q has no value: %s", name, problem)}
}

// Outputs evaluates the outputs of a Stack over the recorded values, with the rights of who, and returns them sorted by
// name. It returns an *OutputError for the first one without a value.
func (a *Queries) Outputs(ctx context.Context, who v1alpha1.Identity, namespace string,
	outputs map[string]string) ([]Output, error) {
	// A scope without a namespace checks access to each object, including objects in the stack's own namespace.
	s := a.ScopeOf(&who, "", nil)
	s.Home = namespace
	var out []Output
	total := 0
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		ev := &consoleEvaluator{Scope: s, values: map[lang.Address]cty.Value{}}
		v, diags, err := ev.evaluate(ctx, outputs[name], false)
		if err != nil {
			return nil, fmt.Errorf("evaluate output %q: %w", name, err)
		}
		if diag.HasErrors(diags) {
			return nil, noValue(name, strings.TrimSpace(diag.Describe(s.MaskAll(diags))))
		}
		if problem, err := a.unreadableOrigin(ctx, who, v); problem != "" || err != nil {
			if err != nil {
				return nil, fmt.Errorf("authorize output %q: %w", name, err)
			}
			return nil, noValue(name, problem)
		}
		if missing, held := lang.HoldsPassOnly(v); held {
			return nil, noValue(name, fmt.Sprintf("it is sensitive, and %s", missing))
		}
		one, problem := outputOf(name, v, who.Username)
		if problem != "" {
			return nil, noValue(name, problem)
		}
		if total += len(one.JSON); total > maxOutputs {
			return nil, noValue(name, fmt.Sprintf("all outputs together have more than %d bytes", maxOutputs))
		}
		one.Sensitive = one.Sensitive || refersToSecret(outputs[name], namespace)
		if one.Writers, err = writersOf(ctx, s, outputs[name]); err != nil {
			return nil, fmt.Errorf("find who wrote what the output %q reads: %w", name, err)
		}
		out = append(out, one)
	}
	return out, nil
}

// ModuleOutputs evaluates the outputs of a Module over the recorded values, with the rights of who. It leaves out those
// whose values are not known. It returns an *OutputError for the first one that cannot be evaluated.
func (a *Queries) ModuleOutputs(ctx context.Context, who v1alpha1.Identity,
	m *resourceset.Module) (map[string]v1alpha1.ModuleOutput, error) {
	out, total := map[string]v1alpha1.ModuleOutput{}, 0
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		if m.Outputs[name].Waits != "" {
			continue
		}
		v, problem, err := a.moduleOutput(ctx, who, m, name)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			return nil, noValue(name, problem)
		}
		if bare, _ := v.UnmarkDeep(); !bare.IsWhollyKnown() {
			continue
		}
		one, problem := outputOf(name, v, who.Username)
		if problem != "" {
			return nil, noValue(name, problem)
		}
		if one.Sensitive {
			out[name] = v1alpha1.ModuleOutput{Sensitive: true}
			continue
		}
		if total += len(one.JSON); total > maxOutputs {
			return nil, noValue(name, fmt.Sprintf("all outputs together have more than %d bytes", maxOutputs))
		}
		out[name] = v1alpha1.ModuleOutput{Value: &v1alpha1.JSON{Raw: []byte(one.JSON)}}
	}
	return out, nil
}

// moduleOutput evaluates an output of a Module over the recorded values, with the rights of who. problem is the reason
// why it cannot be evaluated, if a user can correct that; it reveals no secret.
func (a *Queries) moduleOutput(ctx context.Context, who v1alpha1.Identity, m *resourceset.Module,
	name string) (v cty.Value, problem string, err error) {
	s := a.ScopeOf(&who, m.Namespace, nil)
	v, err = s.ModuleOutput(ctx, lang.OutputOf("", m.Name, name))
	if problemOf(err) != "" {
		return cty.NilVal, err.Error(), nil
	}
	if f, ok := errors.AsType[*diag.Failure](err); ok {
		return cty.NilVal, strings.TrimSpace(diag.Describe(s.MaskAll(f.Diagnostics))), nil
	}
	if err != nil {
		return cty.NilVal, "", fmt.Errorf("evaluate output %q: %w", name, err)
	}
	return v, "", nil
}

// StateOutputs evaluates the outputs of a Module as a Terraform state has them, with secrets, over the recorded values
// and with the rights of who. problems are the outputs without a value, and why.
func (a *Queries) StateOutputs(ctx context.Context, who v1alpha1.Identity,
	m *resourceset.Module) (outputs []v1alpha1.StateOutput, problems []v1alpha1.StateProblem, err error) {
	for _, name := range slices.Sorted(maps.Keys(m.Outputs)) {
		v, problem, err := a.stateValue(ctx, who, m, name)
		if err != nil {
			return nil, nil, err
		}
		if problem != "" {
			problems = append(problems, v1alpha1.StateProblem{Address: "output." + name, Problem: problem})
			continue
		}
		if v.IsNull() { // Terraform has none in its states
			continue
		}
		one, err := stateOutput(name, v)
		if err != nil {
			return nil, nil, err
		}
		one.Sensitive = m.Expansion.Root.Config.Outputs[name].Sensitive
		outputs = append(outputs, one)
	}
	return outputs, problems, nil
}

// stateValue returns the known value of an output without marks, or the reason why who does not get one.
func (a *Queries) stateValue(ctx context.Context, who v1alpha1.Identity, m *resourceset.Module,
	name string) (v cty.Value, problem string, err error) {
	if waits := m.Outputs[name].Waits; waits != "" {
		return cty.NilVal, "it is not known yet: " + waits, nil
	}
	v, problem, err = a.moduleOutput(ctx, who, m, name)
	if err != nil || problem != "" {
		return cty.NilVal, problem, err
	}
	if problem, err = a.unreadableOrigin(ctx, who, v); err != nil || problem != "" {
		return cty.NilVal, problem, err
	}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		return cty.NilVal, "it refers to a value that is not recorded yet", nil
	}
	return v, "", nil
}

// stateOutput returns a value without marks as an output of a Terraform state.
func stateOutput(name string, v cty.Value) (v1alpha1.StateOutput, error) {
	value, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return v1alpha1.StateOutput{}, fmt.Errorf("encode output %q: %w", name, err)
	}
	typ, err := ctyjson.MarshalType(v.Type())
	if err != nil {
		return v1alpha1.StateOutput{}, fmt.Errorf("encode the type of output %q: %w", name, err)
	}
	return v1alpha1.StateOutput{Name: name, Value: v1alpha1.JSON{Raw: value}, Type: v1alpha1.JSON{Raw: typ}}, nil
}

// unreadableOrigin returns the reason why a user may not read an object that a value comes from, or "" if the user may
// read all. A resource to which a plan gave the secret of another object keeps that origin.
func (a *Queries) unreadableOrigin(ctx context.Context, who v1alpha1.Identity,
	v cty.Value) (problem string, err error) {
	asker := &store.Asker{Access: a.Access, Who: who}
	for _, o := range lang.OriginsOf(v) {
		rights, err := a.RightsToSecrets(o.Address)
		if err != nil {
			return "", err
		}
		missing, err := asker.Missing(ctx, rights)
		if err != nil {
			return "", err
		}
		if len(missing) > 0 {
			return fmt.Sprintf("it comes from %s, and the user %q has no right to %s in the namespace %q",
				o.Text(""), who.Username, store.ListRights(missing), o.Address.Namespace), nil
		}
	}
	return "", nil
}

// writersOf returns the users who wrote, or caused, what an output reads in a scope.
func writersOf(ctx context.Context, s *scope.Scope, text string) ([]v1alpha1.Contributor, error) {
	refs, _ := lang.ExpressionOptions{Namespace: s.Home}.References(text, "")
	var lists [][]v1alpha1.Contributor
	for _, ref := range refs {
		list, err := s.WritersOf(ctx, ref.Address, ref.Attribute)
		if err != nil {
			return nil, err
		}
		lists = append(lists, list)
	}
	return contributor.Merge(lists...), nil
}

// refersToSecret reports whether an output refers to a Secret outside of a call of nonsensitive(). Some expressions
// lose the mark of a sensitive value, such as an index or a conversion in can().
func refersToSecret(text, namespace string) bool {
	refs, _ := lang.ExpressionOptions{Namespace: namespace}.References(text, "")
	return slices.ContainsFunc(refs,
		func(r lang.Reference) bool { return r.Stored() && r.Type == lang.TypeSecret && !r.Unmarked() })
}

// outputOf returns the output with a value, or the reason why the value cannot be one.
func outputOf(name string, v cty.Value, user string) (o Output, problem string) {
	o = Output{Name: name, Sensitive: v.ContainsMarked()}
	v, _ = v.UnmarkDeep()
	if !v.IsWhollyKnown() {
		return o, fmt.Sprintf("it refers to a value that is not recorded yet, or to a sensitive one that the user %q may not read: that needs the verb \"get\" on the subresource \"state\" of its kind", user)
	}
	raw, err := ctyjson.Marshal(v, v.Type())
	if err != nil {
		return o, "its type has no JSON form"
	}
	if len(raw) > maxOutput {
		return o, fmt.Sprintf("it has %d bytes, and the limit is %d", len(raw), maxOutput)
	}
	o.JSON, o.Text = string(raw), string(raw)
	if v.Type() == cty.String && !v.IsNull() {
		o.Text = v.AsString()
	}
	return o, ""
}
