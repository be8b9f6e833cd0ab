package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// outcome records how a test that needs a tool ends.
type outcome struct {
	testing.TB
	text string
}

func (*outcome) Helper() {}

func (o *outcome) Skip(args ...any) { o.text = "skipped: " + fmt.Sprint(args...) }

func (o *outcome) Fatalf(format string, args ...any) {
	o.text = "failed: " + fmt.Sprintf(format, args...)
}

func TestNeed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	for _, tt := range []struct {
		reason, required, installed, want string
	}{
		{"a missing tool is a skip", "terraform", "", "skipped: no browser"},
		{"a required tool is a failure", "terraform browser", "", "failed: no browser"},
		{"one of several names is enough", "browser", "google-chrome", ""},
	} {
		t.Setenv(Required, tt.required)
		if tt.installed != "" {
			if err := os.WriteFile(filepath.Join(dir, tt.installed), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		o := &outcome{TB: t}
		if path := Browser.Need(o); !strings.HasPrefix(o.text, tt.want) || strings.TrimPrefix(path, dir+"/") != tt.installed {
			t.Errorf("%s: %q, %q", tt.reason, path, o.text)
		}
	}
}
