package query

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/instance"
	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/plan"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/internal/store"

	"github.com/zclconf/go-cty/cty"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxName is the maximum length of a DNS label.
const maxName = 63

// describe adds the attributes of a found resource to the result, and a manifest that imports it if the query requests
// it.
func (s *search) describe(ctx context.Context, result *v1alpha1.QueryResult, found instance.Found) error {
	block := s.Schema.Block
	attributes, err := json.Marshal(plan.Attributes(block, found.Resource))
	if err != nil {
		return fmt.Errorf("encode attributes of %s: %w", found.DisplayName, err)
	}
	result.Attributes = &runtime.RawExtension{Raw: attributes}
	if !s.query.Spec.Manifests {
		return nil
	}
	config, err := s.of.GenerateConfig(ctx, instance.State{Value: found.Resource, Identity: found.Identity})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		result.Diagnostics = append(result.Diagnostics, diagnosticsOf(err)...)
		return nil
	}
	left, written := &manifest{}, &manifest{}
	left.write(lang.MarkSensitive(block, plan.AsConfig(block, found.Resource)), "spec")
	spec := written.block(block, lang.MarkSensitive(block, config), "spec")
	for _, field := range left.secrets {
		result.Diagnostics = append(result.Diagnostics, v1alpha1.Diagnostic{
			Severity: v1alpha1.SeverityWarning, Summary: "Secret was left out", Attribute: field,
			Detail: "The manifest contains no secrets. Refer to a Secret, as in ${secret.NAME.KEY}, before you apply the manifest.",
		})
	}
	by, err := s.importOf(result)
	if err != nil {
		return fmt.Errorf("decode identity of %s: %w", found.DisplayName, err)
	}
	lifecycle := map[string]any{"import": by}
	if name := s.query.Spec.ProviderConfig; name != "" {
		lifecycle["providerConfig"] = name
	}
	name, err := s.name(ctx, found)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.ProviderGroup(s.Entry.Name) + "/" + v1alpha1.ResourceVersion,
		"kind":       v1alpha1.KindOf(s.of.Name),
		"metadata":   map[string]any{"name": name, "namespace": s.query.Namespace},
		"spec":       spec, "lifecycle": lifecycle,
	})
	if err != nil {
		return fmt.Errorf("encode manifest of %s: %w", found.DisplayName, err)
	}
	result.Manifest = &runtime.RawExtension{Raw: raw}
	return nil
}

// importOf returns the manifest's lifecycle.import: the ID or identity in the query, else the resource's identity.
func (s *search) importOf(result *v1alpha1.QueryResult) (map[string]any, error) {
	by := s.query.Spec.Import
	if by != nil && by.ID != "" {
		return map[string]any{"id": lang.EscapeTemplate(by.ID)}, nil
	}
	raw := result.Identity
	if raw == nil && by != nil {
		raw = by.Identity // the provider did not return an identity
	}
	if raw == nil {
		return map[string]any{"id": lang.EscapeTemplate(result.ID)}, nil
	}
	identity, err := decodeJSON(raw.Raw)
	return map[string]any{"identity": lang.EscapeTemplates(identity)}, err
}

// name returns an object name for the resource that no other object of its kind has, on the server or in the result.
func (s *search) name(ctx context.Context, found instance.Found) (string, error) {
	base := label(found.DisplayName)
	if base == "" {
		base = label(idOf(found.Resource))
	}
	if base == "" {
		base = label(s.of.Name)
	}
	for n := 1; ; n++ {
		name := base
		if n > 1 {
			suffix := fmt.Sprintf("-%d", n)
			name = strings.TrimRight(base[:min(len(base), maxName-len(suffix))], "-") + suffix
		}
		if s.names[name] {
			continue
		}
		_, err := s.Objects.Get(ctx, v1alpha1.ObjectReference{
			APIVersion: v1alpha1.ProviderGroup(s.Entry.Name) + "/" + v1alpha1.ResourceVersion,
			Kind:       v1alpha1.KindOf(s.of.Name), Namespace: s.query.Namespace, Name: name,
		})
		switch {
		case errors.Is(err, store.ErrGone):
			s.names[name] = true
			return name, nil
		case err != nil:
			return "", err
		}
	}
}

// label converts a text to a DNS label. It returns "" if no character of the text is allowed in one.
func label(text string) string {
	var b strings.Builder
	for _, c := range strings.ToLower(text) {
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == maxName {
			break
		}
	}
	return strings.TrimRight(b.String(), "-")
}

// manifest converts a configuration to a spec. It omits null, unknown and secret values, and escapes text that looks
// like a template.
type manifest struct {
	// secrets lists the fields that were omitted because they are secret.
	secrets []string
}

func (m *manifest) block(b *schema.Block, v cty.Value, field string) map[string]any {
	spec, _ := m.write(v, field).(map[string]any)
	if spec == nil {
		return map[string]any{}
	}
	for _, nb := range b.Blocks {
		if list, ok := spec[nb.TypeName].([]any); ok && len(list) == 0 {
			delete(spec, nb.TypeName) // an empty list of blocks is equivalent to none
		}
	}
	return spec
}

func (m *manifest) write(v cty.Value, field string) any {
	if v.IsMarked() {
		if raw, _ := v.UnmarkDeep(); !raw.IsNull() {
			m.secrets = append(m.secrets, field)
		}
		return nil
	}
	ty := v.Type()
	switch {
	case v.IsNull() || !v.IsKnown():
		return nil
	case ty == cty.String:
		return lang.EscapeTemplate(v.AsString())
	case ty == cty.Bool:
		return v.True()
	case ty == cty.Number:
		if n := v.AsBigFloat(); !n.IsInt() {
			return json.Number(n.Text('g', -1))
		}
		return json.Number(v.AsBigFloat().Text('f', 0))
	case ty.IsObjectType() || ty.IsMapType():
		out := map[string]any{}
		for it := v.ElementIterator(); it.Next(); {
			k, e := it.Element()
			if w := m.write(e, field+"."+k.AsString()); w != nil {
				out[lang.EscapeTemplate(k.AsString())] = w // keys of maps are templates, too
			}
		}
		return out
	case ty.IsCollectionType() || ty.IsTupleType():
		out := []any{}
		i := 0
		for it := v.ElementIterator(); it.Next(); i++ {
			_, e := it.Element()
			out = append(out, m.write(e, fmt.Sprintf("%s[%d]", field, i)))
		}
		return out
	}
	return nil
}

// decodeJSON decodes JSON and keeps the digits of numbers.
func decodeJSON(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	return v, d.Decode(&v)
}
