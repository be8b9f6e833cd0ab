package applying

import (
	"errors"
	"fmt"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// checkSize returns an error if the planned state of the resource is too large to store. Call it before the intent is
// written: after the call, the step stores the provider's answer whatever its size.
func (s *stepRun) checkSize(p *instance.Planned) error {
	raw, err := ctyjson.Marshal(cty.UnknownAsNull(lang.WithoutMarks(p.Value)), s.resource.Schema.Block.ImpliedType())
	if err != nil {
		return fmt.Errorf("encode planned state of %s: %w", s.resource.Address, err)
	}
	return changes.TooLarge(s.resource.Address,
		s.Ledger.CheckState(s.resource.Address.String(), &ledger.State{Attributes: raw, Private: p.Private}))
}

// warnTooLarge adds a warning if the stored state exceeds the limit.
func (s *stepRun) warnTooLarge(rec *ledger.Instance) {
	tooLarge, ok := errors.AsType[*ledger.TooLargeError](s.Ledger.CheckState(s.resource.Address.String(), &rec.State))
	if !ok {
		return
	}
	s.warnings = append(s.warnings,
		v1alpha1.Diagnostic{Severity: v1alpha1.SeverityWarning, Summary: "State exceeds the limit",
			Detail: diag.Sentence(tooLarge.Error()) +
				" Hykube keeps the state, because the provider made the change. Later plans of the resource may fail."})
}
