package changes

import (
	"fmt"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diag"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"
	"github.com/hykube/hykube/internal/resource"
)

// RecordLost reports whether a plan applied an object of which the ledger has no record. A create would make its
// infrastructure a second time.
func RecordLost(r *resource.Resource, rec *ledger.Instance) bool {
	return rec.Revision() == 0 && resource.StatusOf(r.Object).ShowsInfrastructure()
}

// LostRecord returns the error for an operation on a resource whose record is lost. It lasts until a user says whether
// the resource exists.
func LostRecord(operation string, r *resource.Resource) error {
	return &diag.Failure{Operation: operation, Diagnostics: diag.Diagnostics{
		lang.Problem(r.Address, "", "Record of the resource is lost", lostRecord(r)+AfterLostCreate(r.Ref)),
	}}
}

// ForgetsLostRecord returns the warning of a plan that removes an object whose record is lost.
func ForgetsLostRecord(r *resource.Resource) v1alpha1.Diagnostic {
	d := lang.Problem(r.Address, "", "The resource may exist",
		lostRecord(r)+"This plan removes the object and destroys nothing. If the resource exists, nothing manages it afterwards.")
	d.Severity = v1alpha1.SeverityWarning
	return d
}

func lostRecord(r *resource.Resource) string {
	known := ""
	if id, ok := resource.StatusOf(r.Object).Attributes["id"].(string); ok {
		known = fmt.Sprintf(" with the ID %s", id)
	}
	return fmt.Sprintf("The status of %s says that a plan applied it, and the ledger has no record of it, as after a restore of another moment. The resource may exist%s. ",
		r.Address, known)
}
