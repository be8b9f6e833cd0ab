package speculation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/diff"
)

// Differences lists the changes of the plans that differ from the shown ones, with their attributes. The last line
// names possible causes.
func (sp *Speculation) Differences(ctx context.Context, plans []*v1alpha1.Plan) (string, error) {
	var lines []string
	for i, p := range plans {
		if i >= len(sp.Plans) || p.Status.Contents != "" && p.Status.Contents == sp.Plans[i].Status.Contents {
			continue
		}
		shown := map[string]*v1alpha1.PlanChange{}
		for c, err := range planapi.Changes(ctx, sp.Session, sp.Plans[i]) {
			if err != nil {
				return "", err
			}
			shown[diff.Name(c)] = c
		}
		found := 0
		for c, err := range planapi.Changes(ctx, sp.Session, p) {
			if err != nil {
				return "", err
			}
			if text := differenceOf(shown[diff.Name(c)], c); text != "" {
				found++
				lines = append(lines, "  "+diff.Name(c)+": "+text)
			}
			delete(shown, diff.Name(c))
		}
		for _, name := range slices.Sorted(maps.Keys(shown)) {
			if !diff.Quiet(shown[name]) {
				found++
				lines = append(lines, "  "+name+": it is not in the new plan")
			}
		}
		if found == 0 {
			lines = append(lines, "  a masked value in namespace "+p.Namespace)
		}
	}
	return strings.Join(printer.Cut(lines, printer.ListedChanges, "  … and %d more"), "\n") +
		"\nEither another user changed something, or the provider plans other values each time.", nil
}

// differenceOf returns how a change differs from the one that was shown, which may be nil. It returns "" if they are
// equal.
func differenceOf(shown, c *v1alpha1.PlanChange) string {
	switch {
	case shown == nil && diff.Quiet(c):
		return ""
	case shown == nil:
		return "it was not in the plan that was shown"
	case shown.Action != c.Action:
		return fmt.Sprintf("the plan showed %s, and the new plan has %s", shown.Action, c.Action)
	}
	var names []string
	for _, pair := range [][2]*runtime.RawExtension{{shown.Before, c.Before}, {shown.After, c.After},
		{shown.AfterUnknown, c.AfterUnknown}} {
		a, b := attributesOf(pair[0]), attributesOf(pair[1])
		for name := range b {
			if !reflect.DeepEqual(a[name], b[name]) {
				names = append(names, name)
			}
		}
		for name := range a {
			if _, both := b[name]; !both {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return diff.Clean(strings.Join(slices.Compact(names), ", "), false)
}

// attributesOf decodes the attributes of one side of a change.
func attributesOf(raw *runtime.RawExtension) map[string]any {
	var out map[string]any
	if raw != nil {
		_ = json.Unmarshal(raw.Raw, &out) // an object, or nothing
	}
	return out
}
