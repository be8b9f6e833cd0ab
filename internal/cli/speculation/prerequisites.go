package speculation

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
	"github.com/hykube/hykube/internal/cli/manifest"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/diff"
)

// Prerequisite is an object that must be recorded before planning.
type Prerequisite struct {
	manifest.Manifest
	Why string
}

// Missing is the reason of a prerequisite that does not exist.
const Missing = "does not exist"

// missing returns the namespaces and providers of the files that do not exist. It waits for providers that are being
// installed.
func (sp *Speculation) missing(ctx context.Context) ([]Prerequisite, error) {
	var out []Prerequisite
	var providers []manifest.Manifest
	for _, m := range sp.Manifests {
		gvk := m.Object.GroupVersionKind()
		gk := gvk.GroupKind()
		if gk.Kind != "Namespace" && gk != v1alpha1.Kind("Provider") {
			continue
		}
		gvr, _, err := sp.Mapping(gvk)
		if err != nil {
			return nil, sp.Recorder.UnknownKind(ctx, m, err)
		}
		_, err = sp.Resource(gvr, "").Get(ctx, m.Object.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			if err := sp.refusal(ctx, m); err != nil {
				return nil, err
			}
			out = append(out, Prerequisite{m, Missing})
		case apierrors.IsForbidden(err): // without the right to read, assume that it exists
		case err != nil:
			return nil, fmt.Errorf("%s: get %s %q: %w", m.Where(), gvk.Kind, m.Object.GetName(), sp.Explain(err))
		case gk == v1alpha1.Kind("Provider"):
			providers = append(providers, m)
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	return nil, sp.Recorder.AwaitProviders(ctx, providers)
}

// refusal returns the error with which the server would refuse to create a prerequisite, as a dry run shows it. It
// returns nil if the server would create it, and for a missing right: then another user can record it.
func (sp *Speculation) refusal(ctx context.Context, m manifest.Manifest) error {
	m.Object = m.Object.DeepCopy()
	gvr, _, err := sp.Recorder.Prepare(ctx, m)
	if err != nil {
		return err
	}
	body, err := json.Marshal(m.Object)
	if err != nil {
		return fmt.Errorf("%s: encode %s %q: %w", m.Where(), m.Object.GetKind(), m.Object.GetName(), err)
	}
	_, err = sp.Resource(gvr, "").Patch(ctx, m.Object.GetName(), types.ApplyPatchType, body,
		metav1.PatchOptions{FieldManager: objects.FieldManager, FieldValidation: metav1.FieldValidationStrict,
			DryRun: []string{metav1.DryRunAll}})
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return fmt.Errorf("%w\nNothing was recorded", sp.Recorder.Refused(m, "", err))
	}
	return nil
}

// outdated returns the providers that the files change, because their kinds may change, too.
func (sp *Speculation) outdated(ctx context.Context) []Prerequisite {
	var out []Prerequisite
	for i, m := range sp.Manifests {
		if m.Object.GroupVersionKind().GroupKind() == v1alpha1.Kind("Provider") &&
			sp.Results[i].Outcome == v1alpha1.ObjectConfigured &&
			slices.ContainsFunc(sp.Results[i].Keys, func(key string) bool { return strings.HasPrefix(key, "spec.") }) {
			out = append(out, Prerequisite{m, "would change: " +
				strings.Join(sp.newValues(ctx, m, sp.Results[i].Keys), ", ")})
		}
	}
	return out
}

// newValues adds the old and the new value to each changed field of a Provider, which has no secrets.
func (sp *Speculation) newValues(ctx context.Context, m manifest.Manifest, keys []string) []string {
	now, err := sp.Resource(v1alpha1.SchemeGroupVersion.WithResource("providers"), "").Get(ctx, m.Object.GetName(),
		metav1.GetOptions{})
	if err != nil {
		return keys // the names of the fields suffice
	}
	text := func(u *unstructured.Unstructured, key string) string {
		v, found, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(key, ".")...)
		if !found {
			return "(unset)"
		}
		return diff.Clean(printer.CompactJSON(v), false)
	}
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = fmt.Sprintf("%s: %s -> %s", key, text(now, key), text(m.Object, key))
	}
	return out
}

// Needed returns the error for files that need prerequisites.
func Needed(ps []Prerequisite) error {
	var b strings.Builder
	b.WriteString("these files cannot be planned yet:\n")
	for _, p := range ps {
		fmt.Fprintf(&b, "  %s: %s %q %s\n", p.Where(), p.Object.GetKind(), p.Object.GetName(), p.Why)
	}
	b.WriteString("Record these first, or run `kubectl hykube apply -f`, which asks whether to record them:\n")
	for _, p := range ps {
		if p.Object.GetKind() == "Namespace" {
			fmt.Fprintf(&b, "  kubectl create namespace %s\n", p.Object.GetName())
			continue
		}
		fmt.Fprintf(&b, "  kubectl apply --server-side -f - <<'EOF'\n%s\nEOF\n  kubectl wait --for=condition=Ready --timeout=5m provider/%s\n", printer.CompactJSON(p.Object.Object), p.Object.GetName())
	}
	b.WriteString("Nothing was recorded")
	return errors.New(b.String())
}
