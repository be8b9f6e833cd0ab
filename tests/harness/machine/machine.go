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

// Required is the variable that lists tools by name. Without a tool in this list, the tests that need it fail. Without
// another tool, they are skipped.
const Required = "HYKUBE_TEST_REQUIRES"

// Tool is a program that some tests need.
type Tool struct {
	// Name is the tool's name in Required.
	Name string
	// commands are the names of the program, and missing is the text for a machine without it.
	commands []string
	missing  string
	// variable is the environment variable that names another command; empty means none.
	variable string
}

// The tools. Terraform is for tests that only Terraform satisfies, and TerraformOrTofu for those that OpenTofu
// satisfies, too.
var (
	Terraform       = Tool{Name: "terraform", commands: []string{"terraform"}, missing: "terraform is not installed"}
	TerraformOrTofu = Tool{
		Name: "terraform-or-tofu", commands: []string{"terraform", "tofu"}, missing: "neither terraform nor tofu is installed", variable: "HYKUBE_TERRAFORM",
	}
	Browser = Tool{
		Name: "browser", commands: []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless-shell"},
		missing: "no browser is installed, such as chromium",
	}
	Unshare        = Tool{Name: "unshare", commands: []string{"unshare"}, missing: "unshare of util-linux is not installed"}
	SystemdAnalyze = Tool{Name: "systemd-analyze", commands: []string{"systemd-analyze"}, missing: "systemd is not installed"}
	// Debian does not have the programs of a PostgreSQL server in the PATH.
	PostgreSQL = Tool{Name: "postgresql", commands: []string{"pg_ctl", "/usr/lib/postgresql/*/bin/pg_ctl"}, missing: "PostgreSQL is not installed"}
	// MariaDBInstall makes the files of a MariaDB server.
	MariaDB        = Tool{Name: "mariadb", commands: []string{"mariadbd", "/usr/sbin/mariadbd"}, missing: "MariaDB is not installed"}
	MariaDBInstall = Tool{Name: "mariadb", commands: []string{"mariadb-install-db"}, missing: "mariadb-install-db is not installed"}
)

// Path returns the path of the tool, or "" if it is not installed.
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

// Need returns the path of the tool. Without the tool, it skips the test, or fails it if the tool is required.
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
