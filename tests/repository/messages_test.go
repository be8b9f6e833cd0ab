package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// foreign holds the quoted messages of other projects, with the packages that print them.
var foreign = map[string]string{
	"no matches for kind":                                     "k8s.io/apimachinery/pkg/api/meta",
	"the server doesn't have a resource type":                 "k8s.io/kubectl/pkg/cmd/util",
	"unknown field":                                           "sigs.k8s.io/structured-merge-diff/v6/typed",
	"Request entity too large":                                "k8s.io/apimachinery/pkg/api/errors",
	"Apply failed with 1 conflict: conflict with ...":         "",
	"unknown flag":                                            "github.com/spf13/pflag",
	"the object has been modified; please apply your changes": "k8s.io/apiserver/pkg/registry/generic/registry",
	"Unsupported attribute":                                   "github.com/hashicorp/hcl/v2",
	"Invalid index":                                           "github.com/hashicorp/hcl/v2",
	"Missing map element":                                     "github.com/hashicorp/hcl/v2",
	"Unable to connect to the server":                         "k8s.io/kubectl/pkg/cmd/util",
	"object is being deleted: ... already exists":             "k8s.io/apiserver/pkg/registry/generic/registry",
}

// variable matches the parts of a quoted message that vary: dots, a quoted name, a capital N.
var variable = regexp.MustCompile(`\.\.\.|"[a-z./-]*"|\b[A-Z]+-DIR\b|\bN\b|\bNAME\b|\b\d+s\b|\blinux_amd64\b|\bspec\.id\b|hykube\.io/state|permission denied|exit status`)

// TestQuotedMessagesExist finds every message in docs/troubleshooting.md in the code, so that readers can search the
// page for the words on their screen.
func TestQuotedMessagesExist(t *testing.T) {
	t.Parallel()
	texts := literals(t)
	quoted := 0
	for line := range strings.Lines(read(t, "docs/troubleshooting.md")) {
		cell, ok := strings.CutPrefix(line, "| ")
		if !ok || !strings.Contains(cell, "`") {
			continue
		}
		cell, _, _ = strings.Cut(cell, " | ")
		for _, s := range span.FindAllString(cell, -1) {
			s = strings.Trim(s, "`")
			quoted++
			if pkg, ok := foreign[s]; ok {
				if pkg != "" && !inPackage(t, pkg, s) {
					t.Errorf("docs/troubleshooting.md quotes %q, and %s says no such thing", s, pkg)
				}
				continue
			}
			if !said(texts, s) {
				t.Errorf("docs/troubleshooting.md quotes %q, and nothing in the code says so", s)
			}
		}
	}
	if quoted < 30 {
		t.Errorf("found only %d quoted messages: the test looks in the wrong place", quoted)
	}
}

// said reports whether each fixed part of a message is in one of the texts. Errors wrap each other, so the parts around
// a colon may have different sources.
func said(texts []string, message string) bool {
	for part := range strings.SplitSeq(variable.ReplaceAllString(message, ": "), ": ") {
		part = strings.Trim(part, " :")
		if len(part) > 2 && !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) }) {
			return false
		}
	}
	return true
}

// verb matches a verb of a format.
var verb = regexp.MustCompile(`%(\[\d+\])?[+#]?[a-zA-Z]`)

// literals returns the texts in the product's code. It joins constants with + between them, and removes the verbs of
// formats.
func literals(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, file := range list(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || below(file, "tests") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, ok := constant(e)
			if ok && text != "" {
				out = append(out, verb.ReplaceAllString(text, ""))
			}
			return !ok
		})
	}
	return out
}

// constant returns the text of a literal, or of literals with + between them. It skips other operands.
func constant(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		x, okX := constant(e.X)
		y, okY := constant(e.Y)
		return x + y, e.Op == token.ADD && (okX || okY)
	}
	return "", false
}

var packageText = struct {
	sync.Mutex
	of map[string]string
}{of: map[string]string{}}

// inPackage reports whether the code of a package of another module has a message.
func inPackage(t *testing.T, pkg, message string) bool {
	t.Helper()
	packageText.Lock()
	defer packageText.Unlock()
	text, ok := packageText.of[pkg]
	if !ok {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", pkg)
		cmd.Dir = root
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list %s: %v", pkg, err)
		}
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("list the files of %s: %v", pkg, err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text += string(data)
		}
		packageText.of[pkg] = text
	}
	for _, part := range variable.Split(message, -1) {
		if !strings.Contains(text, strings.TrimSpace(part)) {
			return false
		}
	}
	return true
}
