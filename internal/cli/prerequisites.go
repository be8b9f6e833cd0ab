package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/diff"
)

// prerequisite is an object that must be recorded before planning.
type prerequisite struct {
	manifest
	why string
}

// missing is the reason of a prerequisite that does not exist.
const missing = "does not exist"

// missing returns the namespaces and providers of the files that do not exist. It waits for providers that are being
// installed.
func (sp *speculation) missing(ctx context.Context) ([]prerequisite, error) {
	var out []prerequisite
	var providers []manifest
	for _, m := range sp.ms {
		gvk := m.object.GroupVersionKind()
		gk := gvk.GroupKind()
		if gk.Kind != "Namespace" && gk != v1alpha1.Kind("Provider") {
			continue
		}
		gvr, _, err := sp.mapping(gvk)
		if err != nil {
			return nil, sp.rec.unknownKind(ctx, m, err)
		}
		_, err = sp.resource(gvr, "").Get(ctx, m.object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			if err := sp.refusal(ctx, m); err != nil {
				return nil, err
			}
			out = append(out, prerequisite{m, missing})
		case apierrors.IsForbidden(err): // without the right to read, assume that it exists
		case err != nil:
			return nil, fmt.Errorf("%s: get %s %q: %w", m.where(), gvk.Kind, m.object.GetName(), explain(err, sp.server()))
		case gk == v1alpha1.Kind("Provider"):
			providers = append(providers, m)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, sp.rec.awaitProviders(ctx, providers)
}

// refusal returns the error with which the server would refuse to create a prerequisite, as a dry run shows it. It returns
// nil if the server would create it, and for a missing right: then another user can record it.
func (sp *speculation) refusal(ctx context.Context, m manifest) error {
	m.object = m.object.DeepCopy()
	gvr, _, err := sp.rec.prepare(ctx, m)
	if err != nil {
		return err
	}
	body, err := json.Marshal(m.object)
	if err != nil {
		return fmt.Errorf("%s: encode %s %q: %w", m.where(), m.object.GetKind(), m.object.GetName(), err)
	}
	_, err = sp.resource(gvr, "").Patch(ctx, m.object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: fieldManager, FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fmt.Errorf("%w\nNothing was recorded", sp.rec.refused(m, "", err))
	}
	return nil
}

// outdated returns the providers that the files change, because their kinds may change, too.
func (sp *speculation) outdated(ctx context.Context) []prerequisite {
	var out []prerequisite
	for i, m := range sp.ms {
		if m.object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Provider") && sp.results[i].Outcome == v1alpha1.ObjectConfigured &&
			slices.ContainsFunc(sp.results[i].Keys, func(key string) bool { return strings.HasPrefix(key, "spec.") }) {
			out = append(out, prerequisite{m, "would change: " + strings.Join(sp.newValues(ctx, m, sp.results[i].Keys), ", ")})
		}
	}
	return out
}

// newValues adds the old and the new value to each changed field of a Provider, which has no secrets.
func (sp *speculation) newValues(ctx context.Context, m manifest, keys []string) []string {
	now, err := sp.resource(v1alpha1.SchemeGroupVersion.WithResource("providers"), "").Get(ctx, m.object.GetName(), metav1.GetOptions{})
	if err != nil {
		return keys // the names of the fields suffice
	}
	text := func(u *unstructured.Unstructured, key string) string {
		v, found, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(key, ".")...)
		if !found {
			return "(unset)"
		}
		return diff.Clean(compactJSON(v), false)
	}
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = fmt.Sprintf("%s: %s -> %s", key, text(now, key), text(m.object, key))
	}
	return out
}

// needed returns the error for files that need prerequisites.
func (s *session) needed(ps []prerequisite) error {
	var b strings.Builder
	b.WriteString("these files cannot be planned yet:\n")
	for _, p := range ps {
		fmt.Fprintf(&b, "  %s: %s %q %s\n", p.where(), p.object.GetKind(), p.object.GetName(), p.why)
	}
	b.WriteString("Record these first, or run `kubectl hykube apply -f`, which asks whether to record them:\n")
	for _, p := range ps {
		if p.object.GetKind() == "Namespace" {
			fmt.Fprintf(&b, "  kubectl create namespace %s\n", p.object.GetName())
			continue
		}
		fmt.Fprintf(&b, "  kubectl apply --server-side -f - <<'EOF'\n%s\nEOF\n  kubectl wait --for=condition=Ready --timeout=5m provider/%s\n", compactJSON(p.object.Object), p.object.GetName())
	}
	b.WriteString("Nothing was recorded")
	return errors.New(b.String())
}
