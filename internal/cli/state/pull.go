package state

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
	"github.com/hykube/hykube/internal/tfstate"
)

// oldestVersion is the version of Terraform in a state that none has written: one that all versions with its format
// read.
const oldestVersion = "1.0.0"

// PullOptions holds the options of state pull, with which module release saves a state.
type PullOptions struct {
	*session.Session
	Module string
}

func newStatePull(s *session.Session) *cobra.Command {
	o := &PullOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "pull",
		Short: "Print the records of a namespace or a Module as a state of Terraform",
		Long: `Print the records of a namespace or a Module as a state of Terraform, with their secrets.

A resource that was pushed has the address that it had in that state. The lineage is that of the last push, and each pull has a
higher serial. "terraform plan" in a directory with the same resources then finds no changes. While both Hykube and Terraform
have the state, only one of them may apply; "state push --force" takes back what Terraform changed.

With --module, the state has the resources of a Module alone, under their addresses in the files of the Module, and its outputs.
The lineage is that of the last push into it. An output that you may not read is left out, with a warning.

The command needs the right to create statepulls, and get of the subresource "state" for each kind with a record.`,
		Example: `  kubectl hykube state pull -n prod > terraform.tfstate
  kubectl hykube state pull -n prod --module shop > terraform.tfstate`,
		Args: cobra.NoArgs,
		RunE: session.Run(o),
	}
	cmd.Flags().StringVar(&o.Module, "module", "",
		"Only the resources of this Module, with their addresses in its files")
	return cmd
}

func (o *PullOptions) Complete([]string) error { return o.Connect() }

func (o *PullOptions) Run(ctx context.Context) error {
	file, err := o.State(ctx)
	if err != nil {
		return err
	}
	out, err := EncodeState(file)
	if err != nil {
		return fmt.Errorf("state pull: %w", err)
	}
	_, err = o.Out.Write(out)
	return err
}

// EncodeState returns a state as Terraform writes it.
func EncodeState(file *tfstate.File) ([]byte, error) {
	out, err := json.MarshalIndent(file, "", "  ")
	return append(out, '\n'), err
}

// State returns the records as a state. It warns about names that no block can have.
func (o *PullOptions) State(ctx context.Context) (*tfstate.File, error) {
	var of *v1alpha1.Module
	if o.Module != "" {
		var err error
		if of, err = objects.GetModule(ctx, o.Session, o.Module); err != nil {
			return nil, fmt.Errorf("state pull: %w", err)
		}
	}
	file, entries, err := o.pages(ctx)
	if err != nil {
		return nil, err
	}
	if of != nil {
		for i := range entries {
			entries[i].ProviderConfig = aliasOf(of, entries[i].ProviderConfig)
		}
	}
	if err := oneEach(entries); err != nil {
		return nil, fmt.Errorf("state pull: %w", err)
	}
	odd, err := fill(file, entries)
	if err != nil {
		return nil, fmt.Errorf("state pull: %w", err)
	}
	if len(odd) > 0 {
		fmt.Fprintf(o.ErrOut, "No block of Terraform can have these names, so Terraform would destroy the resources. Rename their objects first, with kubectl hykube state mv KIND/OLD KIND/NEW:\n  %s\n", strings.Join(odd, "\n  "))
	}
	return file, nil
}

// pages reads all pages of the state.
func (o *PullOptions) pages(ctx context.Context) (*tfstate.File, []v1alpha1.StateEntry, error) {
	file := &tfstate.File{Version: tfstate.Version, Outputs: map[string]tfstate.Output{},
		Resources: []tfstate.Resource{}, CheckResults: json.RawMessage("null")}
	var entries []v1alpha1.StateEntry
	for cont := ""; ; {
		in, out := &v1alpha1.StatePull{Spec: v1alpha1.StatePullSpec{Module: o.Module, Continue: cont}},
			&v1alpha1.StatePull{}
		in.Namespace = o.Namespace
		err := o.Hykube.Post().Namespace(o.Namespace).Resource("statepulls").Body(in).Do(ctx).Into(out)
		if err != nil {
			return nil, nil, refusedState(err, o.Session, "pull")
		}
		if cont == "" {
			file.Lineage, file.Serial, file.TerraformVersion = out.Status.Lineage, uint64(out.Status.Serial),
				cmp.Or(out.Status.TerraformVersion, oldestVersion)
		}
		entries = append(entries, out.Status.Entries...)
		for _, v := range out.Status.Outputs {
			file.Outputs[v.Name] = tfstate.Output{Value: v.Value.Raw, Type: v.Type.Raw, Sensitive: v.Sensitive}
		}
		o.warnOutputs(out.Status.Problems)
		if cont = out.Status.Continue; cont == "" {
			return file, entries, nil
		}
	}
}

// warnOutputs warns about outputs that the state lacks.
func (o *PullOptions) warnOutputs(problems []v1alpha1.StateProblem) {
	if len(problems) == 0 {
		return
	}
	fmt.Fprintln(o.ErrOut, "The state lacks these outputs, so Terraform shows them as new:")
	for _, p := range problems {
		fmt.Fprintf(o.ErrOut, "  %s: %s\n", p.Address, diff.Clean(p.Problem, false))
	}
}

// aliasOf returns the alias in the files of a Module that has a ProviderConfig; "" for the configuration without one.
func aliasOf(m *v1alpha1.Module, config string) string {
	for _, address := range slices.Sorted(maps.Keys(m.Spec.Providers)) {
		if m.Spec.Providers[address] == config {
			_, alias, _ := strings.Cut(address, ".")
			return alias
		}
	}
	return ""
}

// oneEach returns an error if two records have one address in the state: that of a pushed resource, and that of another
// object.
func oneEach(entries []v1alpha1.StateEntry) error {
	objects := map[string][]string{}
	for _, e := range entries {
		objects[e.Address] = append(objects[e.Address], v1alpha1.KindOf(e.Type)+"/"+e.Name)
	}
	var lines []string
	for _, address := range slices.Sorted(maps.Keys(objects)) {
		if of := objects[address]; len(of) > 1 {
			lines = append(lines, diff.Clean(fmt.Sprintf("%s: %s", address, strings.Join(of, ", ")), false))
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("several objects have one address in the state, because they were pushed from different addresses. Rename all but one of each, with "+
		"kubectl hykube state mv KIND/OLD KIND/NEW and a plan, or forget them with state rm:\n  %s",
		strings.Join(lines, "\n  "))
}

// fill adds entries to a state. odd are addresses with a name that no block can have.
func fill(f *tfstate.File, entries []v1alpha1.StateEntry) (odd []string, err error) {
	addresses := map[string]string{} // in the state, by that of the object
	for _, e := range entries {
		addresses[addrs.Target{Mode: v1alpha1.ModeManaged, Type: e.Type, Name: e.Name}.Address()] = e.Address
	}
	index := map[string]int{}
	for i := range entries {
		e := &entries[i]
		r, key, err := resourceOf(e)
		if err != nil {
			return nil, err
		}
		at, ok := index[r.Address()+r.Provider]
		if !ok {
			at = len(f.Resources)
			index[r.Address()+r.Provider] = at
			f.Resources = append(f.Resources, r)
			if !hclsyntax.ValidIdentifier(r.Name) {
				odd = append(odd, diff.Clean(r.Address(), false))
			}
		}
		if e.Current != nil {
			f.Resources[at].Instances = append(f.Resources[at].Instances, fileInstance(e.Current, key, addresses))
		}
		for k := range e.Deposed {
			f.Resources[at].Instances = append(f.Resources[at].Instances, fileInstance(&e.Deposed[k], key, addresses))
		}
	}
	slices.SortFunc(f.Resources, func(a, b tfstate.Resource) int {
		return cmp.Or(strings.Compare(a.Module, b.Module), strings.Compare(a.Address(), b.Address()),
			strings.Compare(a.Provider, b.Provider))
	})
	for i := range f.Resources {
		slices.SortStableFunc(f.Resources[i].Instances, compareInstances)
	}
	slices.Sort(odd)
	return odd, nil
}

// compareInstances orders instances by their keys, and puts the current one before the deposed ones.
func compareInstances(a, b tfstate.Instance) int {
	keyA, _ := instanceKey(&a)
	keyB, _ := instanceKey(&b)
	return cmp.Or(keyA.Compare(keyB), strings.Compare(a.Deposed, b.Deposed))
}

// resourceOf returns the resource of an entry, without instances, and the key of the entry as JSON.
func resourceOf(e *v1alpha1.StateEntry) (tfstate.Resource, json.RawMessage, error) {
	module, typ, name, keyText, ok := tfstate.SplitAddress(e.Address)
	if !ok { // the name of an object may have dots
		typ, name = e.Type, e.Name
		if base, key, keyed := v1alpha1.ParseInstanceName(e.Name); keyed {
			name, keyText = base, key.String()
		}
	}
	r := tfstate.Resource{Module: module, Mode: tfstate.ModeManaged, Type: typ, Name: name,
		Provider: tfstate.ProviderAddress{Source: e.Provider, Alias: e.ProviderConfig}.String()}
	if keyText == "" {
		return r, nil, nil
	}
	_, key, ok := v1alpha1.ParseInstanceName(name + keyText)
	if !ok {
		return r, nil, fmt.Errorf("the key of %s is damaged", e.Address)
	}
	if !key.Named {
		raw, err := json.Marshal(key.Index)
		return r, raw, err
	}
	raw, err := json.Marshal(key.Name)
	return r, raw, err
}

// decodeKey returns the key of an instance in a state.
func decodeKey(raw json.RawMessage) (key v1alpha1.InstanceKey, ok bool) {
	if json.Unmarshal(raw, &key.Index) == nil {
		return key, true
	}
	key.Named = true
	return key, json.Unmarshal(raw, &key.Name) == nil
}

// fileInstance returns an instance in the form of the file. addresses are those in the state, by those of the objects.
func fileInstance(in *v1alpha1.StateInstance, key json.RawMessage, addresses map[string]string) tfstate.Instance {
	out := tfstate.Instance{
		IndexKey: key, Deposed: in.Key, SchemaVersion: in.SchemaVersion, Attributes: rawOf(in.Attributes),
		AttributesFlat:        in.FlatAttributes,
		IdentitySchemaVersion: in.IdentityVersion, Identity: rawOf(in.Identity), Private: in.Private,
		CreateBeforeDestroy: in.CreateBeforeDestroy,
	}
	if in.Tainted {
		out.Status = tfstate.Tainted
	}
	for _, path := range in.SensitivePaths {
		out.SensitiveAttributes = append(out.SensitiveAttributes, json.RawMessage(path))
	}
	for _, d := range in.Dependencies {
		out.Dependencies = append(out.Dependencies, tfstate.WithoutKeys(cmp.Or(addresses[d], d)))
	}
	slices.Sort(out.Dependencies)
	out.Dependencies = slices.Compact(out.Dependencies)
	return out
}

func rawOf(v *runtime.RawExtension) json.RawMessage {
	if v == nil {
		return nil
	}
	return v.Raw
}
