package v1alpha1

import (
	"slices"
	"strings"
	"testing"
)

func TestInstanceNames(t *testing.T) {
	for why, tc := range map[string]struct {
		key         InstanceKey
		name, shown string
	}{
		"an index":                           {InstanceKey{Index: 7}, "web[7]", "web[7]"},
		"a plain key":                        {InstanceKey{Named: true, Name: "a"}, `web["a"]`, `web["a"]`},
		"an empty key":                       {InstanceKey{Named: true}, `web[""]`, `web[""]`},
		"a key of digits is no index":        {InstanceKey{Named: true, Name: "7"}, `web["7"]`, `web["7"]`},
		"quotes and a backslash":             {InstanceKey{Named: true, Name: `a"b\c`}, `web["a\"b\\c"]`, `web["a\"b\\c"]`},
		"a slash, which paths must not have": {InstanceKey{Named: true, Name: "eu/a"}, `web["eu\u002fa"]`, `web["eu/a"]`},
		"a percent sign":                     {InstanceKey{Named: true, Name: "50%"}, `web["50\u0025"]`, `web["50%"]`},
		"the text of an escape":              {InstanceKey{Named: true, Name: `\u002f`}, `web["\\u002f"]`, `web["\\u002f"]`},
		"text like a template":               {InstanceKey{Named: true, Name: "${a}"}, `web["$${a}"]`, `web["$${a}"]`},
		"a line break":                       {InstanceKey{Named: true, Name: "a\nb"}, `web["a\nb"]`, `web["a\nb"]`},
		"a control character":                {InstanceKey{Named: true, Name: "\u009b1m\u007f"}, `web["\u009b1m\u007f"]`, `web["\u009b1m\u007f"]`},
		"a mark for the other direction":     {InstanceKey{Named: true, Name: "a\u202eb/"}, `web["a\u202eb\u002f"]`, `web["a\u202eb/"]`},
		"a mark beyond 16 bits":              {InstanceKey{Named: true, Name: "a\U000e0001"}, `web["a\U000e0001"]`, `web["a\U000e0001"]`},
		"brackets":                           {InstanceKey{Named: true, Name: "a]b[0"}, `web["a]b[0"]`, `web["a]b[0"]`},
		"other letters":                      {InstanceKey{Named: true, Name: "äß"}, `web["äß"]`, `web["äß"]`},
	} {
		name := InstanceName("web", tc.key)
		if name != tc.name || ShownName(name) != tc.shown || strings.ContainsAny(name, "/%") {
			t.Errorf("%s: name %s, shown %s; want %s and %s", why, name, ShownName(name), tc.name, tc.shown)
		}
		for _, text := range []string{tc.name, tc.shown} {
			if base, key, ok := ParseInstanceName(text); !ok || base != "web" || key != tc.key {
				t.Errorf("%s: ParseInstanceName(%s) = %q, %+v, %t", why, text, base, key, ok)
			}
		}
	}
}

func TestNamesOfNoInstance(t *testing.T) {
	for _, text := range []string{"web", "web[", "web[]", "web[-1]", "web[01]", "web[1.5]", "web[a]", `web["a]`, `web["a"b"]`, `web["${a}"]`, `web["\x"]`, `web["\u12"]`, "[0]", "web[0]x", "web[99999999999]"} {
		if _, key, ok := ParseInstanceName(text); ok {
			t.Errorf("ParseInstanceName(%s) = %+v, want none", text, key)
		}
	}
}

// TestInstancesAreSortedByTheirKeys expects the order of Terraform: [2] before [10].
func TestInstancesAreSortedByTheirKeys(t *testing.T) {
	names := []string{"web[10]", `web["b"]`, "web[2]", "app", `web["a"]`, "web"}
	slices.SortFunc(names, CompareNames)
	if want := []string{"app", "web", "web[2]", "web[10]", `web["a"]`, `web["b"]`}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
}
