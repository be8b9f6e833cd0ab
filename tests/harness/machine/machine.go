// Package machine finds tools that some tests need, such as terraform or a browser. It imports only the standard
// library, so that the tests of a small package stay small.
package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Required is the variable that lists tools, by name. A test that needs one of them fails without it, and is not skipped.
const Required = "HYKUBE_TEST_REQUIRES"

// Tool is what some tests need.
type Tool struct {
	// Name is how Required names it.
	Name string
	// commands are what it may be called, and missing says in a few words that there is none of them.
	commands []string
	missing  string
	// variable names another command; empty means that none does.
	variable string
}

// The tools. Terraform is the program that defines the language; where OpenTofu does as well, TerraformOrTofu finds either.
var (
	Terraform       = Tool{Name: "terraform", commands: []string{"terraform"}, missing: "terraform is not installed"}
	TerraformOrTofu = Tool{
		Name: "terraform-or-tofu", commands: []string{"terraform", "tofu"}, missing: "neither terraform nor tofu is installed", variable: "HYKUBE_TERRAFORM",
	}
	Browser = Tool{
		Name: "browser", commands: []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"},
		missing: "no browser is installed, such as chromium",
	}
	Unshare = Tool{Name: "unshare", commands: []string{"unshare"}, missing: "unshare of util-linux is not installed"}
	// Debian keeps the programs of a PostgreSQL server out of the PATH.
	PostgreSQL = Tool{Name: "postgresql", commands: []string{"pg_ctl", "/usr/lib/postgresql/*/bin/pg_ctl"}, missing: "PostgreSQL is not installed"}
)

// Path is the path of the tool; empty when it is not installed.
func (tool Tool) Path() string {
	commands := tool.commands
	if name := os.Getenv(tool.variable); tool.variable != "" && name != "" {
		commands = slices.Concat([]string{name}, commands)
	}
	for _, name := range commands {
		if found, err := filepath.Glob(name); err == nil && len(found) > 0 && strings.HasPrefix(name, "/") {
			name = found[len(found)-1]
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Need returns the path of the tool. Without the tool the test is skipped, or fails where the tool is required.
func (tool Tool) Need(t testing.TB) string {
	t.Helper()
	path := tool.Path()
	switch {
	case path != "":
	case slices.Contains(strings.Fields(os.Getenv(Required)), tool.Name):
		t.Fatalf("%s, and %s requires it", tool.missing, Required)
	default:
		t.Skip(tool.missing)
	}
	return path
}
