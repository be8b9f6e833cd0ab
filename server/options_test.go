package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMirrors(t *testing.T) {
	dir := t.TempDir()
	for name, tc := range map[string]struct {
		places      []string
		directories []string
		network     string
		refused     string
	}{
		"none":           {},
		"both kinds":     {[]string{"https://mirror.example/v1/", dir}, []string{dir}, "https://mirror.example/v1/", ""},
		"two networks":   {[]string{"https://a.example/", "https://b.example/"}, nil, "", "only one is allowed"},
		"no encryption":  {[]string{"http://a.example/"}, nil, "", "reached by https"},
		"no such folder": {[]string{dir + "/none"}, nil, "", "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			o.ProviderMirrors = tc.places
			directories, network, err := o.mirrors()
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || o.Validate() == nil {
					t.Errorf("got %v, want an error with %q", err, tc.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.directories, directories); diff != "" || network != tc.network {
				t.Errorf("network %q, directories %s", network, diff)
			}
		})
	}
}

func TestSizes(t *testing.T) {
	for value, bytes := range map[string]int{"64Ki": 64 << 10, "8Mi": 8 << 20, "1Gi": 1 << 30, "63Ki": 0, "2Gi": 0, "many": 0, "": 0} {
		o := NewOptions()
		o.RecordLimit = value
		c, err := o.Config(nil)
		if bytes == 0 {
			if err == nil || !strings.Contains(err.Error(), "--record-limit") {
				t.Errorf("%q: %v", value, err)
			}
		} else if err != nil || c.RecordLimit != bytes {
			t.Errorf("%q: %v", value, err)
		}
	}
}
