package speculation

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
)

// conflicts returns the fields of the files that other managers own, one line per object and manager.
func (sp *Speculation) conflicts() []string {
	if sp.Recorder.Force {
		return nil
	}
	var lines []string
	// without results, prerequisites are missing
	for i, m := range sp.Manifests[:min(len(sp.Manifests), len(sp.Results))] {
		var causes []metav1.StatusCause // one for each manager
		for _, c := range sp.Results[i].Conflicts {
			if n := len(causes); n > 0 && causes[n-1].Message == c.Message {
				causes[n-1].Field += ", " + c.Field
				continue
			}
			causes = append(causes, c)
		}
		for _, c := range causes {
			lines = append(lines, fmt.Sprintf("  %s: %s %q: %s: %s", m.Where(), m.Object.GetKind(), m.Object.GetName(),
				c.Message, c.Field))
		}
	}
	return lines
}

// PrintRecorded prints the objects other than resources that were created or changed, which no plan lists.
func (sp *Speculation) PrintRecorded() {
	var names []string
	for i, m := range sp.Manifests {
		r := sp.Results[i]
		if m.Pruned || addrs.IsResource(m.Object) || r.Outcome == v1alpha1.ObjectUnchanged {
			continue
		}
		name := record.Line(m.Object, "created")
		if r.Outcome == v1alpha1.ObjectConfigured {
			name = record.Line(m.Object, "changed")
			if len(r.Keys) > 0 {
				name += " (" + strings.Join(r.Keys, ", ") + ")"
			}
		}
		names = append(names, name)
	}
	names = printer.Cut(names, printer.ListedChanges, "and %d more")
	if len(names) > 0 {
		fmt.Fprintln(sp.Out, sp.Style.Dim("Other recorded objects: "+strings.Join(names, ", ")+"."))
	}
}

// WarnConflicts warns about the fields that need --force-conflicts.
func (sp *Speculation) WarnConflicts() {
	if lines := sp.conflicts(); len(lines) > 0 {
		fmt.Fprintf(sp.ErrOut, "%s other managers own fields that the files set. Recording the files needs --force-conflicts:\n%s\n\n",
			sp.Style.Yellow("Warning:"), strings.Join(lines, "\n"))
	}
}

// RefuseConflicts returns an error if other managers own fields of the files.
func (sp *Speculation) RefuseConflicts() error {
	lines := sp.conflicts()
	if len(lines) == 0 {
		return nil
	}
	return errors.New("other managers own fields that the files set:\n" + strings.Join(lines, "\n") + "\n" +
		record.TakeOver + ". Nothing was recorded")
}
