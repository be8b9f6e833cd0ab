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

// maxPlural is the length of a DNS label, beyond which clients refuse a resource.
const maxPlural = 63

// kindNames are the names of one Terraform type in the API.
type kindNames struct {
	mode                        v1alpha1.Mode
	terraformType, kind, plural string
	// alias is the plural of an earlier release; empty when that was the same, or is another kind's name now.
	alias string
}

// modes in the order in which types take their names: managed ones first, so that what a provider adds in another mode
// never renames them.
func modes() []v1alpha1.Mode {
	return []v1alpha1.Mode{v1alpha1.ModeManaged, v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction}
}

var typeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// nameKinds names the kinds of a provider. The kind is what its mode makes of the type, and the plural is the
// English one. A plural that is taken gives way to the kind itself, as where providers have both "aws_subnet" and
// "aws_subnets". Where that is taken, or too long, a hash of the type ends the name, so that it does not depend on the order in
// which types are seen.
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
	// A type that comes back from its kind keeps it ("a_b"); one that does not ("a-b") gives way.
	slices.SortStableFunc(types, func(a, b string) int { return boolOrder(faithful(b), faithful(a)) })
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
	// Plurals come after all kinds are known: "aws-foos" can be the plural of one and the singular of another, and a
	// client could not tell which is meant.
	for i, n := range out {
		plural := pluralOf(n.kind)
		p := plural
		if p != n.kind && (len(p) > maxPlural || taken[p]) {
			p = n.kind // nobody else has it
		}
		if len(p) > maxPlural {
			p = n.hashed(plural)
		}
		taken[p] = true
		out[i].plural = p
	}
	for i, n := range out {
		if guess := guessedPlural(n.kind); guess != pluralOf(n.kind) && !taken[guess] {
			out[i].alias = guess
		}
	}
	return out, nil
}

// pluralOf is the English plural of a kind. A vowel before the y keeps it: keys, and not keies, which Kubernetes guesses.
func pluralOf(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok && stem != "" && strings.ContainsAny(stem[len(stem)-1:], "aeiou") {
		return kind + "s"
	}
	return guessedPlural(kind)
}

// guessedPlural is the plural that Kubernetes guesses, by which kinds were served until 0.1.
func guessedPlural(kind string) string {
	plural, _ := meta.UnsafeGuessKindToResource(kschema.GroupVersionKind{Kind: kind})
	return plural.Resource
}

func faithful(t string) bool {
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

// hashed shortens a name and ends it with a hash of the type, which is another one in each mode.
func (n kindNames) hashed(name string) string {
	sum := sha256.Sum256([]byte(storedAs(n.mode, n.terraformType)))
	const hashLen = 8
	name = strings.TrimRight(name[:min(len(name), maxPlural-hashLen-1)], "-")
	return name + "-" + hex.EncodeToString(sum[:])[:hashLen]
}

// storedAs is the place of a type's objects in the store, below their group. Unlike the plural it never changes, whatever types
// a later version of the provider brings. No type has a dot in its name, so modes do not meet.
func storedAs(mode v1alpha1.Mode, terraformType string) string {
	if mode == v1alpha1.ModeManaged {
		return terraformType
	}
	return string(mode) + "." + terraformType
}
