package kinds

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/server/rights"
)

// This file records in status.contributors who wrote an object. The strategies do that in the write itself, so that no
// write is without its user.

// written returns the parts of an object that a write changes, and that plans depend on.
func written(n, o *unstructured.Unstructured) (parts []string) {
	if changed(n, o, "spec") {
		parts = append(parts, v1alpha1.WroteSpec)
	}
	if changed(n, o, "lifecycle") {
		parts = append(parts, v1alpha1.WroteLifecycle)
	}
	if !maps.Equal(n.GetLabels(), o.GetLabels()) {
		parts = append(parts, v1alpha1.WroteLabels)
	}
	return parts
}

// noteWriter adds the user of a request to the contributors of an object. It does nothing for the server's own
// requests, and without parts.
func noteWriter(ctx context.Context, u *unstructured.Unstructured, parts ...string) {
	by, ok := rights.Writer(ctx)
	if !ok || len(parts) == 0 {
		return
	}
	list := contributor.Of(u.Object["status"])
	setContributors(u, contributor.Add(list, contributor.Write{By: by, What: parts, At: time.Now()}))
}

// takeBack removes parts from what the contributors of an object wrote. Call it when the object is again as it was
// applied, apart from what they wrote otherwise.
func takeBack(u *unstructured.Unstructured, parts ...string) {
	if list := contributor.Of(u.Object["status"]); len(list) > 0 {
		setContributors(u, contributor.Remove(list, parts...))
	}
}

func setContributors(u *unstructured.Unstructured, list []v1alpha1.Contributor) {
	old, _ := u.Object["status"].(map[string]any)
	status := maps.Clone(old) // the stored object has the same map
	if status == nil {
		status = map[string]any{}
	}
	if delete(status, "contributors"); len(list) > 0 {
		status["contributors"] = contributor.ToList(list)
	}
	u.Object["status"] = status
}
