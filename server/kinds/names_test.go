package kinds

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hykube/hykube/api/v1alpha1"
)

func TestNameKinds(t *testing.T) {
	long := "aws_" + strings.Repeat("a", 70)
	for reason, test := range map[string]struct {
		types []string
		want  map[string][2]string // type to kind and plural; "#" is a placeholder for a hash
	}{
		"plain":                              {[]string{"sim_network"}, map[string][2]string{"sim_network": {"sim-network", "sim-networks"}}},
		"ending in y":                        {[]string{"aws_s3_bucket_policy"}, map[string][2]string{"aws_s3_bucket_policy": {"aws-s3-bucket-policy", "aws-s3-bucket-policies"}}},
		"ending in y after a vowel":          {[]string{"tls_private_key"}, map[string][2]string{"tls_private_key": {"tls-private-key", "tls-private-keys"}}},
		"ending in s":                        {[]string{"aws_eks_access"}, map[string][2]string{"aws_eks_access": {"aws-eks-access", "aws-eks-accesses"}}},
		"a plural":                           {[]string{"a_images"}, map[string][2]string{"a_images": {"a-images", "a-images"}}},
		"a singular with us":                 {[]string{"a_bus"}, map[string][2]string{"a_bus": {"a-bus", "a-buses"}}},
		"plural equal to singular":           {[]string{"k_endpoints"}, map[string][2]string{"k_endpoints": {"k-endpoints", "k-endpoints"}}},
		"plural of one, name of two":         {[]string{"a_foo", "a_foos"}, map[string][2]string{"a_foo": {"a-foo", "a-foo"}, "a_foos": {"a-foos", "a-foos"}}},
		"two with the same plural":           {[]string{"a_xy", "a_xie"}, map[string][2]string{"a_xie": {"a-xie", "a-xies"}, "a_xy": {"a-xy", "a-xy"}}},
		"two with the same kind":             {[]string{"a-b", "a_b"}, map[string][2]string{"a_b": {"a-b", "a-bs"}, "a-b": {"a-b-#", "a-b-#s"}}},
		"plural too long for a label":        {[]string{long[:63]}, map[string][2]string{long[:63]: {strings.ReplaceAll(long[:63], "_", "-"), strings.ReplaceAll(long[:63], "_", "-")}}},
		"too long for a label":               {[]string{long}, map[string][2]string{long: {strings.ReplaceAll(long, "_", "-"), "aws-" + strings.Repeat("a", 50) + "-#"}}},
		"nothing":                            {nil, map[string][2]string{}},
		"capitals become small":              {[]string{"A_B"}, map[string][2]string{"A_B": {"a-b", "a-bs"}}},
		"the order does not matter":          {[]string{"a_foos", "a_foo"}, map[string][2]string{"a_foo": {"a-foo", "a-foo"}, "a_foos": {"a-foos", "a-foos"}}},
		"what else there is does not matter": {[]string{"b_foos", "b_foo", "b_bar"}, map[string][2]string{"b_bar": {"b-bar", "b-bars"}, "b_foo": {"b-foo", "b-foo"}, "b_foos": {"b-foos", "b-foos"}}},
	} {
		t.Run(reason, func(t *testing.T) {
			got, err := nameKinds(map[v1alpha1.Mode][]string{v1alpha1.ModeManaged: slices.Clone(test.types)})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("%d names for %d types", len(got), len(test.want))
			}
			seen := map[string]bool{}
			for _, n := range got {
				hash := strings.TrimPrefix(n.hashed(""), "-")
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
	if _, err := nameKinds(map[v1alpha1.Mode][]string{v1alpha1.ModeData: {"no/name"}}); err == nil {
		t.Error("took a type that cannot be in a path")
	}
}

// A plural of an earlier release stays as another name, unless another kind has it now.
func TestAliases(t *testing.T) {
	names, err := nameKinds(map[v1alpha1.Mode][]string{v1alpha1.ModeManaged: {"tls_private_key", "a_day", "a_daie", "a_policy", "a_images", "a_bus", "a_class"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, n := range names {
		got[n.terraformType] = n.alias
	}
	if want := (map[string]string{"tls_private_key": "tls-private-keies", "a_day": "", "a_daie": "", "a_policy": "", "a_images": "a-imageses", "a_bus": "", "a_class": ""}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Types of different modes share the names of one group. Managed types keep their names if other modes are added.
func TestModesDoNotCollide(t *testing.T) {
	managed := []string{"sim_image", "data_sim_image", "data_sim_bs"}
	alone, err := nameKinds(map[v1alpha1.Mode][]string{v1alpha1.ModeManaged: slices.Clone(managed)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := nameKinds(map[v1alpha1.Mode][]string{
		v1alpha1.ModeManaged: slices.Clone(managed), v1alpha1.ModeData: {"sim_image", "sim_b", "sim_disk"},
		v1alpha1.ModeEphemeral: {"sim_image"}, v1alpha1.ModeAction: {"sim_image"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(all[:len(alone)], alone) {
		t.Errorf("managed kinds are called %v beside others, and %v alone", all[:len(alone)], alone)
	}
	names, places := map[string]bool{}, map[string]bool{}
	for _, n := range all {
		if names[n.kind] || names[n.plural] || places[storedAs(n.mode, n.terraformType)] {
			t.Errorf("%+v collides", n)
		}
		names[n.kind], names[n.plural], places[storedAs(n.mode, n.terraformType)] = true, true, true
	}
	got := map[string]string{}
	for _, n := range all[len(alone):] {
		got[storedAs(n.mode, n.terraformType)] = n.kind
	}
	for stored, want := range map[string]string{
		"data.sim_disk": "data-sim-disk", "ephemeral.sim_image": "ephemeral-sim-image", "action.sim_image": "action-sim-image",
		"data.sim_image": "data-sim-image-", // data_sim_image has the name
	} {
		if got[stored] != want && !(strings.HasSuffix(want, "-") && strings.HasPrefix(got[stored], want)) {
			t.Errorf("%s is called %q, want %q", stored, got[stored], want)
		}
	}
}
