package shape

//lint:file-ignore SA1019 a provider of the legacy SDK says so with it

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/hykube/hykube/tests/conformance/cloud"
)

// Options are in a file beside the executable: the seeds of the provider's types.
type Options struct {
	First int64 `json:"first"`
	Count int64 `json:"count"`
	// File is a file beside the executable with more types; see ReadFile.
	File string `json:"file,omitempty"`

	fromFile []*Shape
}

// OptionsFile is the name of the file.
const OptionsFile = "shape.json"

// OwnOptions reads the options beside this executable. Without the file, it returns the first seed.
func OwnOptions() (Options, error) {
	o := Options{First: 1, Count: 1}
	exe, err := os.Executable()
	if err != nil {
		return o, err
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(exe), OptionsFile))
	if errors.Is(err, os.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	if err := json.Unmarshal(data, &o); err != nil || o.File == "" {
		return o, err
	}
	o.fromFile, err = ReadFile(filepath.Join(filepath.Dir(exe), o.File))
	return o, err
}

// ObjectState is the key of an object's state, as JSON, among its fields in the cloud. ObjectTitle is the key of its
// title.
const (
	ObjectState = "state"
	ObjectTitle = "title"
)

// server is the provider for protocol 6. Methods that none of its types needs are nil, and must not be called.
type server struct {
	tfprotov6.ProviderServer
	legacy    bool
	resources map[string]*Shape
	data      map[string]*Shape

	mu    sync.Mutex
	cloud *cloud.Cloud // nil until the provider is configured
}

// New6 returns the provider for protocol 6. name is the provider's name, which is the prefix of its types.
func New6(name string, o Options) tfprotov6.ProviderServer { return newServer(name, o, false) }

func newServer(name string, o Options, legacy bool) *server {
	s := &server{legacy: legacy, resources: map[string]*Shape{}, data: map[string]*Shape{}}
	for seed := o.First; seed < o.First+o.Count; seed++ {
		resources, data := Make(name, seed, legacy)
		for _, r := range resources {
			s.resources[r.Name] = r
		}
		s.data[data.Name] = data
	}
	for _, r := range o.fromFile {
		s.resources[r.Name] = r
	}
	return s
}

// providerType is the type of the provider's configuration.
func providerType() tftypes.Object {
	return tftypes.Object{AttributeTypes: map[string]tftypes.Type{"directory": tftypes.String}}
}

func (s *server) GetMetadata(context.Context, *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	out := &tfprotov6.GetMetadataResponse{}
	for _, name := range sortedKeys(s.resources) {
		out.Resources = append(out.Resources, tfprotov6.ResourceMetadata{TypeName: name})
	}
	for _, name := range sortedKeys(s.data) {
		out.DataSources = append(out.DataSources, tfprotov6.DataSourceMetadata{TypeName: name})
	}
	return out, nil
}

func (s *server) GetProviderSchema(context.Context, *tfprotov6.GetProviderSchemaRequest) (*tfprotov6.GetProviderSchemaResponse, error) {
	out := &tfprotov6.GetProviderSchemaResponse{
		Provider: &tfprotov6.Schema{Block: &tfprotov6.SchemaBlock{Attributes: []*tfprotov6.SchemaAttribute{
			{Name: "directory", Type: tftypes.String, Optional: true},
		}}},
		ResourceSchemas: map[string]*tfprotov6.Schema{}, DataSourceSchemas: map[string]*tfprotov6.Schema{},
		ServerCapabilities: &tfprotov6.ServerCapabilities{GetProviderSchemaOptional: true, PlanDestroy: !s.legacy},
	}
	for name, r := range s.resources {
		out.ResourceSchemas[name] = &tfprotov6.Schema{Block: r.Block.schema6()}
	}
	for name, d := range s.data {
		out.DataSourceSchemas[name] = &tfprotov6.Schema{Block: d.Block.schema6()}
	}
	return out, nil
}

func (s *server) GetResourceIdentitySchemas(context.Context, *tfprotov6.GetResourceIdentitySchemasRequest) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	out := &tfprotov6.GetResourceIdentitySchemasResponse{IdentitySchemas: map[string]*tfprotov6.ResourceIdentitySchema{}}
	for name, r := range s.resources {
		if r.Identity {
			out.IdentitySchemas[name] = &tfprotov6.ResourceIdentitySchema{IdentityAttributes: []*tfprotov6.ResourceIdentitySchemaAttribute{
				{Name: "key", Type: tftypes.String, RequiredForImport: true},
			}}
		}
	}
	return out, nil
}

func (s *server) ValidateProviderConfig(_ context.Context, req *tfprotov6.ValidateProviderConfigRequest) (*tfprotov6.ValidateProviderConfigResponse, error) {
	return &tfprotov6.ValidateProviderConfigResponse{PreparedConfig: req.Config}, nil
}

func (s *server) ConfigureProvider(_ context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	config, err := req.Config.Unmarshal(providerType())
	if err != nil {
		return nil, err
	}
	c, err := cloud.Open(cmp.Or(text(fields(config)["directory"]), os.Getenv(cloud.DirectoryEnv)))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cloud = c
	return &tfprotov6.ConfigureProviderResponse{}, nil
}

func (s *server) StopProvider(context.Context, *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return &tfprotov6.StopProviderResponse{}, nil
}

func (s *server) GetFunctions(context.Context, *tfprotov6.GetFunctionsRequest) (*tfprotov6.GetFunctionsResponse, error) {
	return &tfprotov6.GetFunctionsResponse{}, nil
}

// call is a call about a type, with its decoded values. cloud is nil until the provider is configured.
type call struct {
	*Shape
	t      tftypes.Object
	cloud  *cloud.Cloud
	values []tftypes.Value
}

// on returns the call about a type with some values.
func (s *server) on(types map[string]*Shape, name string, encoded ...*tfprotov6.DynamicValue) (c call, err error) {
	r := types[name]
	if r == nil {
		return c, fmt.Errorf("there is no type %q", name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c = call{r, r.Block.ObjectType(), s.cloud, make([]tftypes.Value, len(encoded))}
	for i, v := range encoded {
		if c.values[i], err = v.Unmarshal(c.t); err != nil {
			return c, err
		}
	}
	return c, nil
}

// wrong returns a diagnostic about a call that a client must not make.
func wrong(format string, args ...any) []*tfprotov6.Diagnostic {
	return []*tfprotov6.Diagnostic{{Severity: tfprotov6.DiagnosticSeverityError, Summary: "The client broke a rule", Detail: fmt.Sprintf(format, args...)}}
}

func (s *server) UpgradeResourceState(_ context.Context, req *tfprotov6.UpgradeResourceStateRequest) (*tfprotov6.UpgradeResourceStateResponse, error) {
	c, err := s.on(s.resources, req.TypeName)
	if err != nil {
		return nil, err
	}
	v, err := req.RawState.Unmarshal(c.t)
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	out, err := tfprotov6.NewDynamicValue(c.t, v)
	return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &out}, err
}

func (s *server) UpgradeResourceIdentity(_ context.Context, req *tfprotov6.UpgradeResourceIdentityRequest) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	v, err := req.RawIdentity.Unmarshal(identityType())
	if err != nil {
		return nil, err
	}
	out, err := tfprotov6.NewDynamicValue(identityType(), v)
	return &tfprotov6.UpgradeResourceIdentityResponse{UpgradedIdentity: &tfprotov6.ResourceIdentityData{IdentityData: &out}}, err
}

// identity returns the identity of a state; nil if the type has none.
func (r *Shape) identity(state tftypes.Value) (*tfprotov6.ResourceIdentityData, error) {
	if !r.Identity || state.IsNull() {
		return nil, nil
	}
	v, err := tfprotov6.NewDynamicValue(identityType(), tftypes.NewValue(identityType(), map[string]tftypes.Value{"key": fields(state)[r.Key]}))
	return &tfprotov6.ResourceIdentityData{IdentityData: &v}, err
}

// private is the provider's private data: the object that it belongs to and, between plan and apply, the planned value.
type private struct {
	Key     string `json:"key,omitempty"`
	Planned string `json:"planned,omitempty"`
}

func readPrivate(data []byte) (p private, err error) {
	if len(data) > 0 {
		err = json.Unmarshal(data, &p)
	}
	return p, err
}

func (s *server) ReadResource(_ context.Context, req *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	c, err := s.on(s.resources, req.TypeName, req.CurrentState)
	if err != nil {
		return nil, err
	}
	key := text(fields(c.values[0])[c.Key])
	p, err := readPrivate(req.Private)
	if err != nil || p.Key != "" && p.Key != key || p.Planned != "" {
		return &tfprotov6.ReadResourceResponse{Diagnostics: wrong("%q was read with the private data %q", key, req.Private)}, nil
	}
	found, err := c.load(key)
	if err != nil {
		return nil, err
	}
	out, err := tfprotov6.NewDynamicValue(c.t, found)
	if err != nil {
		return nil, err
	}
	id, err := c.identity(found)
	return &tfprotov6.ReadResourceResponse{NewState: &out, Private: []byte(marshal(private{Key: key})), NewIdentity: id}, err
}

// load reads an object; null if there is none.
func (c call) load(key string) (tftypes.Value, error) {
	o, err := c.cloud.Get(c.Name, key)
	if err != nil || o == nil {
		return tftypes.NewValue(c.t, nil), err
	}
	v, err := tfprotov6.RawState{JSON: []byte(o[ObjectState])}.Unmarshal(c.t)
	if err != nil {
		return v, fmt.Errorf("read object %q: %w", key, err)
	}
	return v, nil
}

func (s *server) PlanResourceChange(_ context.Context, req *tfprotov6.PlanResourceChangeRequest) (*tfprotov6.PlanResourceChangeResponse, error) {
	c, err := s.on(s.resources, req.TypeName, req.PriorState, req.Config, req.ProposedNewState)
	if err != nil {
		return nil, err
	}
	r, t, prior, config, proposed := c.Shape, c.t, c.values[0], c.values[1], c.values[2]
	asked := map[string]any{"prior": plainJSON(prior, t), "config": plainJSON(config, t), "proposed": plainJSON(proposed, t)}
	if c.cloud != nil {
		if err := c.cloud.Log(cloud.Call{RPC: "Plan", Type: r.Name, Name: r.title(proposed, prior), Detail: marshal(asked)}); err != nil {
			return nil, err
		}
	}
	out := &tfprotov6.PlanResourceChangeResponse{PlannedPrivate: req.PriorPrivate, UnsafeToUseLegacyTypeSystem: s.legacy} //nolint:staticcheck // the protocol defines it for this use
	planned := proposed
	if !proposed.IsNull() {
		planned, out.RequiresReplace = r.plan(s.legacy, prior, config, proposed)
		p, err := readPrivate(req.PriorPrivate)
		if err != nil {
			return nil, err
		}
		p.Planned = shown(planned, t)
		out.PlannedPrivate = []byte(marshal(p))
	}
	dv, err := tfprotov6.NewDynamicValue(t, planned)
	if err != nil {
		return nil, err
	}
	out.PlannedState = &dv
	out.PlannedIdentity = req.PriorIdentity
	if out.PlannedIdentity == nil {
		out.PlannedIdentity, err = r.identity(planned)
	}
	return out, err
}

// title returns the title of the first state that exists.
func (r *Shape) title(states ...tftypes.Value) string {
	for _, v := range states {
		if !v.IsNull() {
			return text(fields(v)[r.Title])
		}
	}
	return ""
}

func (s *server) ApplyResourceChange(_ context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	c, err := s.on(s.resources, req.TypeName, req.PriorState, req.PlannedState, req.Config)
	if err != nil {
		return nil, err
	}
	r, t, prior, planned, config := c.Shape, c.t, c.values[0], c.values[1], c.values[2]
	action := cloud.ActionOf(prior.IsNull(), planned.IsNull())
	asked := map[string]any{"prior": plainJSON(prior, t), "config": plainJSON(config, t), "planned": plainJSON(planned, t), "private": string(req.PlannedPrivate)}
	if err := c.cloud.Log(cloud.Call{RPC: "Apply", Action: action, Type: r.Name, Name: r.title(planned, prior), Detail: marshal(asked)}); err != nil {
		return nil, err
	}
	key := text(fields(prior)[r.Key])
	if action == "Delete" {
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PlannedState}, c.cloud.Remove(r.Name, key)
	}
	p, err := readPrivate(req.PlannedPrivate)
	switch {
	case err != nil:
		return nil, err
	case p.Planned != shown(planned, t) && !s.legacy:
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Diagnostics: wrong("what is to be applied is not what came with its private data:\n%s\n%s", shown(planned, t), p.Planned)}, nil
	case !config.IsFullyKnown():
		return &tfprotov6.ApplyResourceChangeResponse{NewState: req.PriorState, Diagnostics: wrong("the configuration is not known: %s", shown(config, t))}, nil
	}
	title := r.title(planned)
	if action == "Create" {
		if key, err = c.cloud.Create(r.Name, file(title), cloud.Object{}); err != nil {
			return nil, err
		}
	}
	made, err := r.complete(s.legacy, planned, key)
	if err != nil {
		return nil, err
	}
	if err := c.cloud.Put(r.Name, key, cloud.Object{ObjectTitle: title, ObjectState: shown(made, t)}); err != nil {
		return nil, err
	}
	dv, err := tfprotov6.NewDynamicValue(t, made)
	if err != nil {
		return nil, err
	}
	id, err := r.identity(made)
	return &tfprotov6.ApplyResourceChangeResponse{
		NewState: &dv, Private: []byte(marshal(private{Key: key})), NewIdentity: id,
		UnsafeToUseLegacyTypeSystem: s.legacy, //nolint:staticcheck // the protocol defines it for this use
	}, err
}

// file converts a title to the beginning of a file name.
func file(title string) string {
	return strings.Map(func(r rune) rune {
		if r == '/' || r == '.' || r < ' ' {
			return '-'
		}
		return r
	}, title)
}

// ImportResourceState imports by key, or by title: the newest object with that title.
func (s *server) ImportResourceState(_ context.Context, req *tfprotov6.ImportResourceStateRequest) (*tfprotov6.ImportResourceStateResponse, error) {
	c, err := s.on(s.resources, req.TypeName)
	if err != nil {
		return nil, err
	}
	r, t, key := c.Shape, c.t, req.ID
	if req.Identity != nil && req.Identity.IdentityData != nil {
		id, err := req.Identity.IdentityData.Unmarshal(identityType())
		if err != nil {
			return nil, err
		}
		key = text(fields(id)["key"])
	}
	ids, err := c.cloud.IDs(r.Name)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if strings.HasPrefix(id, file(req.ID)+"-") && req.ID != "" {
			key = id
		}
	}
	m := map[string]tftypes.Value{}
	for name, at := range t.AttributeTypes {
		m[name] = tftypes.NewValue(at, nil)
	}
	// The collections of blocks are never null.
	for _, n := range r.Block.Blocks {
		m[n.Name] = n.empty()
	}
	m[r.Key] = tftypes.NewValue(tftypes.String, key)
	v := tftypes.NewValue(t, m)
	dv, err := tfprotov6.NewDynamicValue(t, v)
	if err != nil {
		return nil, err
	}
	id, err := r.identity(v)
	return &tfprotov6.ImportResourceStateResponse{ImportedResources: []*tfprotov6.ImportedResource{{TypeName: r.Name, State: &dv, Identity: id}}}, err
}

// empty returns a block that is not configured.
func (n *Nested) empty() tftypes.Value {
	t := collection(n.Mode, n.Block.ObjectType())
	switch n.Mode {
	case Single:
		return tftypes.NewValue(t, nil)
	case Group:
		m := map[string]tftypes.Value{}
		for _, a := range n.Block.Attributes {
			m[a.Name] = tftypes.NewValue(a.ValueType(), nil)
		}
		for _, b := range n.Block.Blocks {
			m[b.Name] = b.empty()
		}
		return tftypes.NewValue(t, m)
	}
	return zero(t)
}

// ReadDataSource returns the arguments, and generates the other values.
func (s *server) ReadDataSource(_ context.Context, req *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	c, err := s.on(s.data, req.TypeName, req.Config)
	if err != nil {
		return nil, err
	}
	d, t, config := c.Shape, c.t, c.values[0]
	if !config.IsFullyKnown() {
		return &tfprotov6.ReadDataSourceResponse{Diagnostics: wrong("the configuration is not known: %s", shown(config, t))}, nil
	}
	if err := c.cloud.Log(cloud.Call{RPC: "ReadData", Type: d.Name, Name: d.title(config), Detail: shown(config, t)}); err != nil {
		return nil, err
	}
	v, _ := d.plan(false, tftypes.NewValue(t, nil), config, config)
	if v, err = d.complete(false, v, "data "+d.title(config)); err != nil {
		return nil, err
	}
	dv, err := tfprotov6.NewDynamicValue(t, v)
	return &tfprotov6.ReadDataSourceResponse{State: &dv}, err
}
