package simprovider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
)

// defaultTimeout is the maximum time of an operation without its own timeout.
const defaultTimeout = 5 * time.Minute

// model is a resource type's state, as a pointer to the struct M with its tfsdk tags.
type model[M any] interface {
	*M
	// key returns the object's ID; "" before its create.
	key() string
	// encode returns the body of a create or an update. It omits fields that the cloud sets and, for an update,
	// immutable ones.
	encode(ctx context.Context, creating bool, diags *diag.Diagnostics) map[string]any
	// decode sets all fields from the cloud's object.
	decode(ctx context.Context, o object, diags *diag.Diagnostics)
}

// These interfaces are for methods that only some models have.
type (
	// settler reports whether an object has reached the desired state. It returns an error if the object never will.
	settler interface{ settled(object) (bool, error) }
	// stepper makes further calls after the create or update. It returns nil if there were none.
	stepper interface {
		steps(ctx context.Context, c *cloud, now object) (object, error)
	}
	// releaser makes calls before the delete.
	releaser interface {
		release(ctx context.Context, c *cloud) error
	}
	// configured reads values that only the configuration has, such as write-only ones. before is nil on create.
	configured interface {
		takeConfig(ctx context.Context, config tfsdk.Config, before *tfsdk.State, diags *diag.Diagnostics)
	}
	// timed has timeouts in its configuration.
	timed interface {
		timeout(operation string) time.Duration
	}
)

// cloudResource is a resource type whose objects are in the cloud.
type cloudResource[M any, P model[M]] struct {
	typeName, collection string
	schema               schema.Schema
	// modifyPlan changes the plan of an update, given the prior and the planned value; nil if the type needs none.
	modifyPlan func(state, plan P)
	cloud      *cloud
}

func (r *cloudResource[M, P]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName
}

func (r *cloudResource[M, P]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.schema
}

func (r *cloudResource[M, P]) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	r.cloud, _ = req.ProviderData.(*cloud)
}

func (r *cloudResource[M, P]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	m := P(new(M))
	if resp.Diagnostics.Append(load(ctx, req.Plan, m)...); resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	ctx, cancel := deadline(withModule(ctx, req.ProviderMeta, &resp.Diagnostics), m, "create")
	defer cancel()
	if c, ok := any(m).(configured); ok {
		c.takeConfig(ctx, req.Config, nil, &resp.Diagnostics)
	}
	fields := m.encode(ctx, true, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	o, err := r.cloud.create(ctx, r.collection, fields)
	if err != nil {
		r.failed(&resp.Diagnostics, "create", err)
		return
	}
	r.finish(ctx, "create", m, o, &resp.State, &resp.Diagnostics)
	r.identify(ctx, resp.Identity, m.key(), &resp.Diagnostics)
	if renewal, ok := o["renewal"].(string); ok { // only the private data have it
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, "renewal", []byte(strconv.Quote(renewal)))...)
	}
}

// finish makes the further steps and waits. From here on the object exists, so it always stores the state. If it fails,
// a create leaves a tainted resource, and not an orphan.
func (r *cloudResource[M, P]) finish(ctx context.Context, operation string, m P, o object, state *tfsdk.State, diags *diag.Diagnostics) {
	last, err := r.settle(ctx, m, o)
	// Keep the first answer as well, because only the answer to a create has a secret.
	m.decode(ctx, o, diags)
	m.decode(ctx, last, diags)
	diags.Append(store(ctx, state, m)...)
	if err != nil {
		r.failed(diags, operation, fmt.Errorf("the object %s exists, but: %w", o.id(), err))
	}
}

func (r *cloudResource[M, P]) settle(ctx context.Context, m P, o object) (object, error) {
	var done func(object) bool
	var never error
	if s, ok := any(m).(settler); ok {
		done = func(o object) bool {
			settled, err := s.settled(o)
			never = err
			return settled || err != nil
		}
	}
	last, err := r.cloud.visible(ctx, r.collection, o, done)
	if err = errors.Join(err, never); err != nil {
		return last, err
	}
	s, ok := any(m).(stepper)
	if !ok {
		return last, nil
	}
	next, err := s.steps(ctx, r.cloud, last)
	if err != nil || next == nil {
		return last, err
	}
	return r.cloud.visible(ctx, r.collection, next, nil)
}

func (r *cloudResource[M, P]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	m := P(new(M))
	if resp.Diagnostics.Append(load(ctx, req.State, m)...); resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	ctx, cancel := context.WithTimeout(withModule(ctx, req.ProviderMeta, &resp.Diagnostics), defaultTimeout)
	defer cancel()
	// This also applies to a missing object, because the framework expects an identity after every read.
	r.identify(ctx, resp.Identity, m.key(), &resp.Diagnostics)
	o, err := r.cloud.read(ctx, r.collection, m.key())
	if isNotFound(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "read", err)
		return
	}
	m.decode(ctx, o, &resp.Diagnostics)
	resp.Diagnostics.Append(store(ctx, &resp.State, m)...)
}

func (r *cloudResource[M, P]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	m := P(new(M))
	if resp.Diagnostics.Append(load(ctx, req.Plan, m)...); resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	ctx, cancel := deadline(withModule(ctx, req.ProviderMeta, &resp.Diagnostics), m, "update")
	defer cancel()
	if c, ok := any(m).(configured); ok {
		c.takeConfig(ctx, req.Config, &req.State, &resp.Diagnostics)
	}
	fields := m.encode(ctx, false, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	var id string
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("id"), &id)...)
	o, err := r.cloud.update(ctx, r.collection, id, fields)
	if err != nil {
		// The framework keeps the former state if none is set.
		r.failed(&resp.Diagnostics, "update", err)
		return
	}
	r.finish(ctx, "update", m, o, &resp.State, &resp.Diagnostics)
	r.identify(ctx, resp.Identity, m.key(), &resp.Diagnostics)
}

func (r *cloudResource[M, P]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	m := P(new(M))
	if resp.Diagnostics.Append(load(ctx, req.State, m)...); resp.Diagnostics.HasError() || !r.ready(&resp.Diagnostics) {
		return
	}
	ctx, cancel := deadline(withModule(ctx, req.ProviderMeta, &resp.Diagnostics), m, "delete")
	defer cancel()
	var err error
	if rel, ok := any(m).(releaser); ok {
		err = rel.release(ctx, r.cloud)
	}
	if err == nil {
		err = r.cloud.remove(ctx, r.collection, m.key())
	}
	if err == nil {
		err = r.cloud.gone(ctx, r.collection, m.key())
	}
	if err != nil {
		r.failed(&resp.Diagnostics, "delete", err)
	}
}

func (r *cloudResource[M, P]) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if r.modifyPlan == nil || req.State.Raw.IsNull() || req.Plan.Raw.IsNull() {
		return
	}
	state, plan := P(new(M)), P(new(M))
	resp.Diagnostics.Append(load(ctx, req.State, state)...)
	if resp.Diagnostics.Append(load(ctx, req.Plan, plan)...); resp.Diagnostics.HasError() {
		return
	}
	// A plan without changes must not get any.
	if req.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	r.modifyPlan(state, plan)
	resp.Diagnostics.Append(store(ctx, &resp.Plan, plan)...)
}

// ImportState accepts an ID, a unique name, or an identity.
func (r *cloudResource[M, P]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if !r.ready(&resp.Diagnostics) {
		return
	}
	if req.ID == "" && req.Identity != nil {
		r.importIdentity(ctx, req.Identity, resp)
		return
	}
	id := req.ID
	if _, err := r.cloud.read(ctx, r.collection, id); isNotFound(err) {
		found, err := r.cloud.named(ctx, r.collection, req.ID)
		switch {
		case err != nil:
			r.failed(&resp.Diagnostics, "import", err)
			return
		case len(found) == 0:
			resp.Diagnostics.AddError("There is nothing to import", fmt.Sprintf("No %s has the id or the name %q.", r.typeName, req.ID))
			return
		case len(found) > 1:
			resp.Diagnostics.AddError("More than one object has this name",
				fmt.Sprintf("%d objects of type %s are named %q. Import one of them by its id, such as %s.", len(found), r.typeName, req.ID, found[0].id()))
			return
		}
		id = found[0].id()
	} else if err != nil {
		r.failed(&resp.Diagnostics, "import", err)
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
	r.identify(ctx, resp.Identity, id, &resp.Diagnostics)
}

func (r *cloudResource[M, P]) ready(diags *diag.Diagnostics) bool {
	return configuredCloud(r.cloud, diags)
}

// failed returns an error of the cloud as a diagnostic about its attribute.
func (r *cloudResource[M, P]) failed(diags *diag.Diagnostics, operation string, err error) {
	summary := fmt.Sprintf("Can't %s %s", operation, r.typeName)
	detail := "The cloud did not do it: " + err.Error()
	if e, ok := asAPIError(err); ok {
		switch e.status {
		case http.StatusTooManyRequests:
			detail += ". The cloud throttles calls; try again later, or with fewer at once."
		case http.StatusForbidden:
			detail += ". Ask for a higher quota, or delete what is not needed."
		}
		if _, known := r.schema.Attributes[e.field]; known {
			diags.AddAttributeError(path.Root(e.field), summary, detail)
			return
		}
	}
	diags.AddError(summary, detail)
}

func asAPIError(err error) (*apiError, bool) { return errors.AsType[*apiError](err) }

func deadline(ctx context.Context, m any, operation string) (context.Context, context.CancelFunc) {
	d := defaultTimeout
	if t, ok := m.(timed); ok {
		if own := t.timeout(operation); own > 0 {
			d = own
		}
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("%s took longer than its timeout of %s", operation, d))
}
