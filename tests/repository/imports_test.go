package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layers lists the layers of the module from the top down. A package may import packages of its own layer and those
// below.
var layers = []string{"cmd", "server", "activities", "workflows", "internal", "sdk", "api"}

func TestImportsRunDownhill(t *testing.T) {
	t.Parallel()
	for path, p := range listed(t) {
		from, _, _ := strings.Cut(inModule(path), "/")
		if from == "tests" || from == "hack" || from == "examples" || from == "" {
			continue
		}
		level := slices.Index(layers, from)
		if level < 0 {
			t.Errorf("%s: there is no layer %q; the layers are %v", path, from, layers)
			continue
		}
		for _, imported := range p.Imports {
			to, _, _ := strings.Cut(inModule(imported), "/")
			if to == "" {
				continue
			}
			if at := slices.Index(layers, to); at < level {
				t.Errorf("%s imports %s: imports run down %s", path, imported, strings.Join(layers, " -> "))
			}
		}
	}
}

// TestForbiddenImports checks the imports that the packages below a folder must not have. Imports of imported packages
// of this module count, too.
func TestForbiddenImports(t *testing.T) {
	t.Parallel()
	outside := []string{"net", "net/http", "os", "os/exec", "io/fs", "database/sql", "syscall"}
	// Expressions need the address types of package net; see TestExpressionsUseNoNetwork.
	pure := slices.DeleteFunc(slices.Clone(outside), func(path string) bool { return path == "net" })
	clients := []string{"k8s.io/client-go", "go.temporal.io/sdk/client", "go.temporal.io/sdk/worker", "go.etcd.io/etcd", "google.golang.org/grpc"}
	own := func(names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, module+"/internal/"+name)
		}
		return paths
	}
	tests := []struct {
		folder string
		never  []string
		reason string
	}{
		{"workflows", slices.Concat(pure, clients, []string{module + "/activities", module + "/internal/provider"}), "a workflow orchestrates; what touches the world is an activity"},
		{"internal/plan", slices.Concat(pure, clients, []string{module + "/internal/provider", module + "/internal/ledger"}), "the planner is pure"},
		{"internal/lang", slices.Concat(pure, clients, []string{module + "/internal/plan", module + "/internal/graph"}), "expressions know of no plan"},
		{"internal/module", slices.Concat(pure, clients, own("resourceset", "catalog", "resource", "index", "ledger", "store")), "a module knows no object"},
		{"internal/graph", slices.Concat(outside, clients, []string{module}), "a graph knows numbers alone"},
		{"internal/fair", slices.Concat(outside, clients, []string{module}), "slots know keys alone"},
		{"internal/diag", slices.Concat(pure, clients, []string{module + "/internal/lang", module + "/internal/schema"}), "diagnostics are the bottom"},
		{"internal/schema", slices.Concat(outside, clients), "a schema is data"},
		{"internal/diff", []string{"net", "os", "os/exec", "k8s.io/client-go"}, "a diff is text made of a plan"},
		{"internal/drawing", slices.Concat(pure, clients), "a drawing is text made of names and edges"},
		{"internal/terraformjson", slices.Concat(pure, clients, []string{module + "/internal/cli"}), "how objects are read is behind an interface"},
		{"internal/policy", slices.Concat(pure, clients, own("scope", "store", "cli", "ledger")), "a policy is judged by what its caller read"},
		{"internal/template", slices.Concat(pure, clients, []string{module + "/internal"}), "a template knows no object"},
		{"internal/ledger", slices.Concat(clients, []string{module + "/internal/provider"}), "the ledger knows no provider and no client"},
		{"internal/store", []string{module + "/internal", module + "/activities"}, "interfaces know no implementation"},
		{"internal/resource", own("session", "scope", "query"), "a decoded object reads nothing else"},
		{"internal/session", own("resource", "scope", "query"), "a session gets its configuration from its caller"},
		{"internal/scope", own("query"), "values of expressions come before questions about them"},
		{"activities/changes", []string{module + "/activities/planning", module + "/activities/applying"}, "a stored plan does not know who made it, nor who applies it"},
		{"activities/planning", []string{module + "/activities/applying"}, "planning changes nothing"},
		{"activities/applying", []string{module + "/activities/planning"}, "applying knows a plan by what is stored"},
		{"internal/cli", []string{"k8s.io/apiserver", "k8s.io/kubernetes", "go.temporal.io", "github.com/k3s-io/kine", module + "/internal/provider", module + "/internal/ledger"}, "the plugin talks to the API alone"},
		{"sdk/steps", []string{module + "/internal", module + "/server", module + "/activities", module + "/workflows", "k8s.io/apiserver", "k8s.io/kubernetes", "go.temporal.io/server", "github.com/k3s-io/kine"}, "a worker of a user has no server code in it"},
		{"examples", []string{module + "/internal", module + "/server", module + "/activities", module + "/workflows", "k8s.io/apiserver", "k8s.io/kubernetes", "go.temporal.io/server"}, "an example uses what every user may import"},
		{"tests/harness", []string{module + "/server", module + "/activities", "k8s.io/apiserver", "go.temporal.io"}, "whoever links the harness does not link the server"},
		{"activities", []string{"k8s.io/client-go/kubernetes", "k8s.io/apiserver", "github.com/k3s-io/kine", "go.temporal.io/server"}, "how objects are stored is behind interfaces"},
	}
	for _, tt := range tests {
		t.Run(tt.folder, func(t *testing.T) {
			found := false
			for path, p := range listed(t) {
				if !below(inModule(path), tt.folder) {
					continue
				}
				found = true
				for _, own := range ownClosure(listed(t), p) {
					for _, imported := range own.Imports {
						if below(imported, tt.never...) && !exact(imported, tt.never) {
							t.Errorf("%s (for %s) imports %s: %s", own.ImportPath, tt.folder, imported, tt.reason)
						}
					}
				}
			}
			if !found {
				t.Errorf("there is no package in %s: the test guards nothing", tt.folder)
			}
		})
	}
}

// sharedByVerbs lists what the verbs of the plugin share, from the bottom up. Each package may import those before it, and none
// may import a verb. The packages namespace and query also have a verb of their own.
var sharedByVerbs = []string{
	"version", "terminal", "exit", "printer", "jsonlines", "session", "addrs", "lockfile", "objects", "manifest", "planapi",
	"namespace", "record", "query", "operation", "speculation",
}

func TestWhatVerbsShareKnowsNoVerb(t *testing.T) {
	t.Parallel()
	for i, name := range sharedByVerbs {
		p := listed(t)[module+"/internal/cli/"+name]
		if p == nil {
			t.Errorf("there is no package internal/cli/%s", name)
			continue
		}
		for _, imported := range p.Imports {
			sibling, own := strings.CutPrefix(imported, module+"/internal/cli/")
			if own && !slices.Contains(sharedByVerbs[:i], sibling) {
				t.Errorf("internal/cli/%s imports %s: it may import %v", name, imported, sharedByVerbs[:i])
			}
		}
	}
}

// TestExpressionsUseNoNetwork permits only the names of package net that parse and format addresses.
func TestExpressionsUseNoNetwork(t *testing.T) {
	t.Parallel()
	addresses := []string{"IP", "IPMask", "IPNet", "CIDRMask", "ParseCIDR", "ParseIP"}
	files, err := filepath.Glob(filepath.Join(root, "internal", "lang", "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files of the expressions: %v", err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"net"` }) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "net" && !slices.Contains(addresses, sel.Sel.Name) {
					t.Errorf("%s uses net.%s: expressions are pure", filepath.Base(file), sel.Sel.Name)
				}
			}
			return true
		})
	}
}

// exact holds standard packages that are below another package only by name: net/url is no network.
func exact(imported string, never []string) bool {
	return !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".") && !slices.Contains(never, imported)
}

// ownClosure returns a package and the packages of this module that it imports, directly or through others.
func ownClosure(all map[string]*pkg, p *pkg) []*pkg {
	seen := map[string]bool{p.ImportPath: true}
	out := []*pkg{p}
	for i := 0; i < len(out); i++ {
		for _, imported := range out[i].Imports {
			if inModule(imported) != "" && !seen[imported] && all[imported] != nil {
				seen[imported] = true
				out = append(out, all[imported])
			}
		}
	}
	return out
}

func TestAPIImportsAPIMachineryAlone(t *testing.T) {
	t.Parallel()
	for path, p := range listed(t) {
		if !below(inModule(path), "api") {
			continue
		}
		for _, imported := range p.Imports {
			dep := listed(t)[imported]
			if !dep.Standard && !below(imported, "k8s.io/apimachinery", module+"/api") {
				t.Errorf("%s imports %s: whoever imports the API types should get nothing else", path, imported)
			}
		}
	}
}

// Every user downloads the plugin, and every command starts it, so it must stay small.
func TestPluginIsLight(t *testing.T) {
	t.Parallel()
	heavy := []string{
		"k8s.io/kubernetes", "k8s.io/apiserver", "k8s.io/apiextensions-apiserver", "k8s.io/kubectl", "go.temporal.io", "github.com/temporalio",
		"github.com/k3s-io/kine", "go.etcd.io", "github.com/mattn/go-sqlite3",
		// The plugin reads Terraform files. The expressions in them need the types of terraform-plugin-go, but no process and no gRPC.
		"google.golang.org/grpc", "github.com/hashicorp/terraform-plugin-go/internal", "github.com/hashicorp/terraform-plugin-go/tfprotov5",
		"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server",
		module + "/server", module + "/activities", module + "/workflows",
	}
	chain := why(listed(t), module+"/cmd/kubectl-hykube", func(path string) bool { return below(path, heavy...) })
	if chain != nil {
		t.Errorf("the plugin has server code in it:\n  %s", strings.Join(chain, "\n  imports "))
	}
}

func TestNothingImportsTests(t *testing.T) {
	t.Parallel()
	for path, p := range listed(t) {
		if inModule(path) == "" || below(inModule(path), "tests") {
			continue
		}
		for _, imported := range p.Imports {
			if below(inModule(imported), "tests", "hack") {
				t.Errorf("%s imports %s", path, imported)
			}
		}
	}
}
