package server

import (
	"os"
	"path/filepath"
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

func TestDatastoreEndpoint(t *testing.T) {
	dir := t.TempDir()
	file := func(content string) string {
		path := filepath.Join(dir, "dsn"+content[:min(1, len(content))])
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const dsn = "postgres://hykube:a%20password@db:5432/hykube"
	for reason, tc := range map[string]struct {
		endpoint, file string
		want, refused  string
	}{
		"neither flag means SQLite":        {},
		"the flag alone":                   {dsn, "", dsn, ""},
		"the file, with a line end":        {"", file(dsn + "\n"), dsn, ""},
		"both could differ":                {dsn, file(dsn), "", "exclude each other"},
		"an empty file is not SQLite":      {"", file(""), "", "is empty"},
		"a file that the server must have": {"", filepath.Join(dir, "none"), "", "no such file"},
	} {
		t.Run(reason, func(t *testing.T) {
			o := NewOptions()
			o.DatastoreEndpoint, o.DatastoreFile = tc.endpoint, tc.file
			c, err := o.Config(nil)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) || strings.Contains(err.Error(), "password") {
					t.Errorf("got %v, want an error with %q and without the password", err, tc.refused)
				}
			} else if err != nil || c.DatastoreEndpoint != tc.want {
				t.Errorf("got %v, %v", c, err)
			}
		})
	}
}
