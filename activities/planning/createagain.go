package planning

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/resource"
	"github.com/hykube/hykube/internal/shell"
)

// afterFailedCreate returns a warning for a create if an earlier one of the object failed and may nevertheless have
// made the resource. failed is the object's status.failedCreate. replaces is true if the object has a resource.
func afterFailedCreate(r *resource.Resource, failed string, replaces bool) diag.Diagnostics {
	if failed == "" {
		return nil
	}
	d := lang.Problem(r.Address, "", "An earlier create may have made the resource", fmt.Sprintf(
		"A create of %s failed %s. The provider returned no resource, and its error does not exclude that there is one. This plan creates another one. "+
			"Before you approve it, search for the resource by name or tags. If it exists, ", r.Address, failed))
	if replaces { // an import is refused while the object has another resource
		d.Detail += "delete it there."
	} else {
		d.Detail += fmt.Sprintf("discard this plan, and import the resource: kubectl hykube import %s ID -n %s.",
			shell.Word(r.Ref.Kind+"/"+r.Ref.Name), r.Ref.Namespace)
	}
	d.Severity = v1alpha1.SeverityWarning
	return diag.Diagnostics{d}
}
