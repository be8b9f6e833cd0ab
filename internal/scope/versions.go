package scope

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VersionOf returns a text that changes whenever the object's spec, or an external object that it refers to, is
// written.
func VersionOf(obj metav1.Object, outside string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%d/%s", obj.GetUID(), obj.GetGeneration(), outside), "/")
}

// VersionOfConfig returns a text that changes whenever a ProviderConfig configures its provider differently. It ignores
// limits and the values of secretRefs. Changes are bound to these by ledger.Arguments.
func VersionOfConfig(cfg *v1alpha1.ProviderConfig, outside string) string {
	spec := cfg.Spec
	spec.Limits = nil
	text, err := json.Marshal(spec)
	if err != nil { // cannot happen, since it was decoded from JSON
		text = fmt.Append(nil, cfg.UID, cfg.Generation)
	}
	sum := sha256.Sum256(text)
	return strings.TrimSuffix(hex.EncodeToString(sum[:8])+"/"+outside, "/")
}

// ExternalVersion returns the version of the referenced objects that no plan of this namespace changes, such as
// ConfigMaps. ok is false if the version cannot be determined now, so that the dependent resources must be visited.
func (s *Scope) ExternalVersion(ctx context.Context, refs []lang.Reference) (version string, ok bool) {
	h := sha256.New()
	for _, ref := range refs {
		ofModule := ref.Namespace == "" && ref.IsModuleOutput()
		if ref.Namespace == "" && !ref.Stored() && !ofModule {
			continue
		}
		if ref.Mode == v1alpha1.ModeEphemeral {
			return "", false // its value differs each time
		}
		text := ""
		if ofModule { // dependencies on resources have versions of their own
			text, ok = s.outputVersion(ctx, ref.Address, nil)
		} else {
			text, ok = s.textOf(ctx, ref.Address)
		}
		if !ok {
			return "", false
		}
		fmt.Fprintf(h, "%s %s\n", ref.Address, text)
		version = hex.EncodeToString(h.Sum(nil)[:8])
	}
	return version, true
}

// textOf returns the value of an address as JSON. ok is false if the value cannot be read.
func (s *Scope) textOf(ctx context.Context, addr lang.Address) (text string, ok bool) {
	v, found, err := s.Value(ctx, addr)
	if err != nil || !found {
		return "", false
	}
	v, _ = v.UnmarkDeep()
	raw, err := ctyjson.Marshal(v, v.Type())
	return string(raw), err == nil
}

// DigestOf returns a digest of the attributes of an address that the references use. It returns "" if they are unknown
// or the object does not exist.
func (s *Scope) DigestOf(ctx context.Context, addr lang.Address, refs []lang.Reference) (string, error) {
	v, ok, err := s.Value(ctx, addr)
	if err != nil || !ok {
		return "", err
	}
	v, _ = v.UnmarkDeep()
	var attributes []string
	for _, ref := range refs {
		if ref.Attribute == "" || v.IsNull() || !v.Type().IsObjectType() || !v.Type().HasAttribute(ref.Attribute) {
			attributes = nil
			break
		}
		attributes = append(attributes, ref.Attribute)
	}
	slices.Sort(attributes)
	values := []cty.Value{v}
	if len(attributes) > 0 {
		values = nil
		for _, name := range slices.Compact(attributes) {
			values = append(values, v.GetAttr(name))
		}
	}
	h := sha256.New()
	for _, v := range values {
		if !v.IsWhollyKnown() {
			return "", nil
		}
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			return "", fmt.Errorf("encode the value of %s: %w", addr, err)
		}
		fmt.Fprintf(h, "%d %s\n", len(raw), raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
