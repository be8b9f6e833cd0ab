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

// kindNames are what one resource type is called in the API.
type kindNames struct {
	terraformType, kind, plural string
}

var typeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// nameKinds names the kinds of a provider. The kind is v1alpha1.KindOf of the type and the plural is what
// Kubernetes guesses for it. Where that is taken, or too long, a hash of the type ends the name, so that it does not
// depend on the order in which types are seen.
func nameKinds(types []string) ([]kindNames, error) {
	slices.Sort(types)
	// A type that comes back from its kind keeps it ("a_b"); one that does not ("a-b") gives way.
	slices.SortStableFunc(types, func(a, b string) int { return boolOrder(faithful(b), faithful(a)) })
	taken := make(map[string]bool, 2*len(types))
	out := make([]kindNames, 0, len(types))
	for _, t := range types {
		if !typeName.MatchString(t) {
			return nil, fmt.Errorf("resource type %q is not a name that an API can serve", t)
		}
		kind := strings.ToLower(v1alpha1.KindOf(t))
		if taken[kind] {
			kind = hashed(kind, t)
		}
		taken[kind] = true
		out = append(out, kindNames{terraformType: t, kind: kind})
	}
	// Plurals come after all kinds are known: "aws-foos" can be the plural of one and the singular of another, and a
	// client could not tell which is meant.
	for i, n := range out {
		plural, _ := meta.UnsafeGuessKindToResource(kschema.GroupVersionKind{Kind: n.kind})
		p := plural.Resource
		if len(p) > maxPlural || p != n.kind && taken[p] {
			p = hashed(p, n.terraformType)
		}
		taken[p] = true
		out[i].plural = p
	}
	return out, nil
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

// hashed shortens a name and ends it with a hash of the type.
func hashed(name, terraformType string) string {
	sum := sha256.Sum256([]byte(terraformType))
	const hashLen = 8
	name = strings.TrimRight(name[:min(len(name), maxPlural-hashLen-1)], "-")
	return name + "-" + hex.EncodeToString(sum[:])[:hashLen]
}
