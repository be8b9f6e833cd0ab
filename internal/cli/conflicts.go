package cli

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// takeOver is the remedy for fields that other managers own.
const takeOver = "Another manager owns these fields. Take them out of the file, or take them over with --force-conflicts"

// encodeStringData moves stringData of a Secret to data, where the server stores it. Server-side apply compares the
// fields of a file with their owners before the server moves them. So it would find no owner of stringData, and no
// conflict.
func encodeStringData(u *unstructured.Unstructured) {
	if u.GroupVersionKind() != (schema.GroupVersionKind{Version: "v1", Kind: "Secret"}) {
		return
	}
	text, found, err := unstructured.NestedStringMap(u.Object, "stringData")
	if !found || err != nil { // the server reports invalid data
		return
	}
	data, _, err := unstructured.NestedMap(u.Object, "data")
	if err != nil {
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range text {
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	u.Object["data"] = data
	delete(u.Object, "stringData")
}

// conflicts returns the fields of the files that other managers own, one line per object and manager.
func (sp *speculation) conflicts() []string {
	if sp.rec.force {
		return nil
	}
	var lines []string
	for i, m := range sp.ms[:min(len(sp.ms), len(sp.results))] { // without results, prerequisites are missing
		var causes []metav1.StatusCause // one for each manager
		for _, c := range sp.results[i].Conflicts {
			if n := len(causes); n > 0 && causes[n-1].Message == c.Message {
				causes[n-1].Field += ", " + c.Field
				continue
			}
			causes = append(causes, c)
		}
		for _, c := range causes {
			lines = append(lines, fmt.Sprintf("  %s: %s %q: %s: %s", m.where(), m.object.GetKind(), m.object.GetName(), c.Message, c.Field))
		}
	}
	return lines
}

// printRecorded prints the objects other than resources that were created or changed, which no plan lists.
func (sp *speculation) printRecorded() {
	var names []string
	for i, m := range sp.ms {
		r := sp.results[i]
		if m.pruned || isResource(m.object) || r.Outcome == v1alpha1.ObjectUnchanged {
			continue
		}
		name := line(m.object, "created")
		if r.Outcome == v1alpha1.ObjectConfigured {
			name = line(m.object, "changed")
			if len(r.Keys) > 0 {
				name += " (" + strings.Join(r.Keys, ", ") + ")"
			}
		}
		names = append(names, name)
	}
	names = cut(names, listedChanges, "and %d more")
	if len(names) > 0 {
		fmt.Fprintln(sp.Out, sp.style.Dim("Other recorded objects: "+strings.Join(names, ", ")+"."))
	}
}

// warnConflicts warns about the fields that need --force-conflicts.
func (sp *speculation) warnConflicts() {
	if lines := sp.conflicts(); len(lines) > 0 {
		fmt.Fprintf(sp.ErrOut, "%s other managers own fields that the files set. Recording the files needs --force-conflicts:\n%s\n\n",
			sp.style.Yellow("Warning:"), strings.Join(lines, "\n"))
	}
}

// refuseConflicts returns an error if other managers own fields of the files.
func (sp *speculation) refuseConflicts() error {
	lines := sp.conflicts()
	if len(lines) == 0 {
		return nil
	}
	return errors.New("other managers own fields that the files set:\n" + strings.Join(lines, "\n") + "\n" + takeOver + ". Nothing was recorded")
}
