package instance

import (
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
)

func (t *Type) encode(v cty.Value) (*tfprotov6.DynamicValue, error) {
	return encodeFor(t.Name, t.Schema, v)
}

func (t *Type) decode(d *tfprotov6.DynamicValue) (cty.Value, error) {
	return schema.Decode(d, t.Schema.Block.ImpliedType())
}

// encodeFor encodes a value of a type for the protocol, without its marks.
func encodeFor(name string, s *schema.Schema, v cty.Value) (*tfprotov6.DynamicValue, error) {
	d, err := schema.Encode(unmarked(v), s.Block.ImpliedType())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

// encodeMeta encodes the provider_meta value. It returns nil if the provider has no schema for it.
func encodeMeta(meta cty.Value, block *schema.Block) (*tfprotov6.DynamicValue, error) {
	if block == nil {
		return nil, nil
	}
	ty := block.ImpliedType()
	if none(meta) {
		meta = cty.NullVal(ty)
	}
	d, err := schema.Encode(unmarked(meta), ty)
	if err != nil {
		return nil, fmt.Errorf("provider metadata: %w", err)
	}
	return d, nil
}

// none reports whether an optional value is absent.
func none(v cty.Value) bool { return v == cty.NilVal || v.IsNull() }

// deferred returns the error for a deferred answer: a *DeferredError if the caller allows it, else a bug of the
// provider. It returns nil if the answer is not deferred.
func deferred(operation, name string, d *tfprotov6.Deferred, allowed bool) error {
	if d == nil {
		return nil
	}
	reason := strings.ToLower(d.Reason.String())
	if !allowed {
		return fmt.Errorf("%s %s: the provider deferred the call (%s), although Hykube did not allow that; this is a bug of the provider", operation, name, reason)
	}
	return &DeferredError{Reason: reason}
}

// checkWriteOnly returns an error if a state holds write-only values, which must never be stored.
func (t *Type) checkWriteOnly(operation string, state cty.Value) error {
	if errs := plan.CheckWriteOnly(t.Schema.Block, state); len(errs) > 0 {
		return inconsistentResult(operation, t.Name, "returned write-only values, which must never be stored,", errs)
	}
	return nil
}

func inconsistentResult(operation, typeName, what string, errs []error) error {
	d := diag.Diagnostics{{
		Severity: v1alpha1.SeverityError,
		Summary:  "Provider produced an inconsistent result",
		Detail: fmt.Sprintf("The provider %s for %s. This is a bug of the provider; please report it there.", what,
			typeName),
	}}
	for _, e := range errs {
		d[0].Detail += "\n  - " + e.Error()
	}
	return &diag.Failure{Operation: operation, Diagnostics: d}
}
