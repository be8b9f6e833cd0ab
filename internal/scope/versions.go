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

// VersionOf is another one whenever somebody writes an object anew, or what it refers to outside of the namespace's plans.
func VersionOf(obj metav1.Object, outside string) string {
	return strings.TrimSuffix(fmt.Sprintf("%s/%d/%s", obj.GetUID(), obj.GetGeneration(), outside), "/")
}

// VersionOfConfig is another one whenever a provider is told something else by a ProviderConfig. What may be asked of it at once is
// no part of that, and neither are the values of secretRefs, which rotate.
func VersionOfConfig(cfg *v1alpha1.ProviderConfig, outside string) string {
	spec := cfg.Spec
	spec.Limits = nil
	text, err := json.Marshal(spec)
	if err != nil { // it was decoded from JSON
		text = fmt.Append(nil, cfg.UID, cfg.Generation)
	}
	sum := sha256.Sum256(text)
	return strings.TrimSuffix(hex.EncodeToString(sum[:8])+"/"+outside, "/")
}

// ExternalVersion is the version of what expressions refer to that no plan of this namespace changes, such as a ConfigMap; ok is false when
// only a look at whatever follows it tells, since it cannot be read now.
func (s *Scope) ExternalVersion(ctx context.Context, refs []lang.Reference) (version string, ok bool) {
	h := sha256.New()
	for _, ref := range refs {
		if ref.Namespace == "" && !ref.Stored() {
			continue
		}
		if ref.Mode == v1alpha1.ModeEphemeral {
			return "", false // it is another one each time
		}
		v, found, err := s.Value(ctx, ref.Address)
		if err != nil || !found {
			return "", false
		}
		v, _ = v.UnmarkDeep()
		raw, err := ctyjson.Marshal(v, v.Type())
		if err != nil {
			return "", false
		}
		fmt.Fprintf(h, "%s %s\n", ref.Address, raw)
		version = hex.EncodeToString(h.Sum(nil)[:8])
	}
	return version, true
}

// DigestOf identifies the attributes of something that references name; empty when they are not known, or nothing is there.
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
			return "", fmt.Errorf("encode what %s is: %w", addr, err)
		}
		fmt.Fprintf(h, "%d %s\n", len(raw), raw)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
