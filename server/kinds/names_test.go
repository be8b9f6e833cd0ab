package kinds

import (
	"slices"
	"strings"
	"testing"
)

func TestNameKinds(t *testing.T) {
	long := "aws_" + strings.Repeat("a", 70)
	for reason, test := range map[string]struct {
		types []string
		want  map[string][2]string // type to kind and plural; "#" stands for a hash
	}{
		"plain":                       {[]string{"sim_network"}, map[string][2]string{"sim_network": {"sim-network", "sim-networks"}}},
		"ending in y":                 {[]string{"aws_s3_bucket_policy"}, map[string][2]string{"aws_s3_bucket_policy": {"aws-s3-bucket-policy", "aws-s3-bucket-policies"}}},
		"ending in s":                 {[]string{"aws_eks_access"}, map[string][2]string{"aws_eks_access": {"aws-eks-access", "aws-eks-accesses"}}},
		"plural equal to singular":    {[]string{"k_endpoints"}, map[string][2]string{"k_endpoints": {"k-endpoints", "k-endpoints"}}},
		"plural of one, name of two":  {[]string{"a_foo", "a_foos"}, map[string][2]string{"a_foo": {"a-foo", "a-foos-#"}, "a_foos": {"a-foos", "a-fooses"}}},
		"two with the same plural":    {[]string{"a_xy", "a_xie"}, map[string][2]string{"a_xie": {"a-xie", "a-xies"}, "a_xy": {"a-xy", "a-xies-#"}}},
		"two with the same kind":      {[]string{"a-b", "a_b"}, map[string][2]string{"a_b": {"a-b", "a-bs"}, "a-b": {"a-b-#", "a-b-#s"}}},
		"too long for a label":        {[]string{long}, map[string][2]string{long: {strings.ReplaceAll(long, "_", "-"), "aws-" + strings.Repeat("a", 50) + "-#"}}},
		"nothing":                     {nil, map[string][2]string{}},
		"capitals become small":       {[]string{"A_B"}, map[string][2]string{"A_B": {"a-b", "a-bs"}}},
		"the order does not matter":   {[]string{"a_foos", "a_foo"}, map[string][2]string{"a_foo": {"a-foo", "a-foos-#"}, "a_foos": {"a-foos", "a-fooses"}}},
		"hash follows from the type ": {[]string{"b_foos", "b_foo", "b_bar"}, map[string][2]string{"b_bar": {"b-bar", "b-bars"}, "b_foo": {"b-foo", "b-foos-#"}, "b_foos": {"b-foos", "b-fooses"}}},
	} {
		t.Run(reason, func(t *testing.T) {
			got, err := nameKinds(slices.Clone(test.types))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("%d names for %d types", len(got), len(test.want))
			}
			seen := map[string]bool{}
			for _, n := range got {
				hash := strings.TrimPrefix(hashed("", n.terraformType), "-")
				kind, plural := strings.ReplaceAll(n.kind, hash, "#"), strings.ReplaceAll(n.plural, hash, "#")
				if w := test.want[n.terraformType]; kind != w[0] || plural != w[1] {
					t.Errorf("%s is %s %s, want %v", n.terraformType, n.kind, n.plural, w)
				}
				if len(n.plural) > maxPlural {
					t.Errorf("%s is %d long", n.plural, len(n.plural))
				}
				if seen[n.plural] {
					t.Errorf("%s twice", n.plural)
				}
				seen[n.plural] = true
			}
		})
	}
	if _, err := nameKinds([]string{"no/name"}); err == nil {
		t.Error("took a type that cannot be in a path")
	}
}
