package kinds

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// maxPlural is the maximum length of a plural, that of a DNS label. Clients reject longer ones.
const maxPlural = 63

// kindNames holds the API names of one Terraform type.
type kindNames struct {
	mode                        v1alpha1.Mode
	terraformType, kind, plural string
	// alias is the plural in an earlier release; empty if it is the same, or is now a name of another kind.
	alias string
}

// modes returns the modes in the order in which their types get names. Managed types come first, so that a provider's
// new types of other modes never rename them.
func modes() []v1alpha1.Mode {
	return []v1alpha1.Mode{v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction}
}

var typeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// nameKinds returns the names of a provider's kinds. The kind is derived from the type and mode, and the plural is
// English. If the plural is taken, as where providers have both "aws_subnet" and "aws_subnets", the kind is used as the
// plural. If that is taken or too long, a hash of the type is appended. So the names do not depend on the order of the
// types.
func nameKinds(types map[v1alpha1.Mode][]string) ([]kindNames, error) {
	taken := map[string]bool{}
	var out []kindNames
	for _, mode := range modes() {
		names, err := nameMode(mode, types[mode], taken)
		if err != nil {
			return nil, err
		}
		out = append(out, names...)
	}
	return out, nil
}

func nameMode(mode v1alpha1.Mode, types []string, taken map[string]bool) ([]kindNames, error) {
	slices.Sort(types)
	// A type that TypeOf(KindOf(type)) restores ("a_b") has priority over one that it does not ("a-b").
	slices.SortStableFunc(types, func(a, b string) int { return boolOrder(roundTrips(b), roundTrips(a)) })
	out := make([]kindNames, 0, len(types))
	for _, t := range types {
		if !typeName.MatchString(t) {
			return nil, fmt.Errorf("%s type %q is not a name that an API can serve", mode, t)
		}
		n := kindNames{mode: mode, terraformType: t, kind: strings.ToLower(mode.KindOf(t))}
		if taken[n.kind] {
			n.kind = n.hashed(n.kind)
		}
		taken[n.kind] = true
		out = append(out, n)
	}
	// Assign plurals after all kinds: "aws-foos" can be the plural of one kind and the name of another, which would be
	// ambiguous for clients.
	for i, n := range out {
		plural := PluralOf(n.kind)
		p := plural
		if p != n.kind && (len(p) > maxPlural || taken[p]) {
			p = n.kind // kinds are unique
		}
		if len(p) > maxPlural {
			p = n.hashed(plural)
		}
		taken[p] = true
		out[i].plural = p
	}
	for i, n := range out {
		if guess := kubernetesPlural(n.kind); guess != PluralOf(n.kind) && !taken[guess] {
			out[i].alias = guess
		}
	}
	return out, nil
}

// PluralOf returns the English plural of a kind. A y after a vowel stays: keys, where Kubernetes guesses keies. A
// plural, such as images, stays, where Kubernetes guesses imageses. The word bus is none, nor are class, alias and
// analysis.
func PluralOf(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "s"); ok && stem != "" && !strings.ContainsAny(stem[len(stem)-1:], "suia") {
		return kind
	}
	if stem, ok := strings.CutSuffix(kind, "y"); ok && stem != "" && strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return kind + "s"
	}
	return kubernetesPlural(kind)
}

// kubernetesPlural returns the plural that Kubernetes guesses, which releases until 0.1 used.
func kubernetesPlural(kind string) string {
	plural, _ := meta.UnsafeGuessKindToResource(kschema.GroupVersionKind{Kind: kind})
	return plural.Resource
}

func roundTrips(t string) bool {
	return v1alpha1.TypeOf(v1alpha1.KindOf(t)) == t && strings.ToLower(t) == t
}

func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}

// hashed shortens a name and appends a hash of the mode and type.
func (n kindNames) hashed(name string) string {
	sum := sha256.Sum256([]byte(storedAs(n.mode, n.terraformType)))
	const hashLen = 8
	name = strings.TrimRight(name[:min(len(name), maxPlural-hashLen-1)], "-")
	return name + "-" + hex.EncodeToString(sum[:])[:hashLen]
}

// storedAs returns the key segment of a type's objects in the store, below their group. Unlike the plural, it never
// changes when the provider gets new types. Type names have no dots, so the modes do not collide.
func storedAs(mode v1alpha1.Mode, terraformType string) string {
	if mode == v1alpha1.ModeManaged {
		return terraformType
	}
	return string(mode) + "." + terraformType
}

// parseStored is the inverse of storedAs.
func parseStored(resource string) (mode v1alpha1.Mode, terraformType string) {
	if m, t, ok := strings.Cut(resource, "."); ok {
		return v1alpha1.Mode(m), t
	}
	return v1alpha1.ModeManaged, resource
}
