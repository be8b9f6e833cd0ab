package repository

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/mod/modfile"
)

// maxLines is the maximum length of a file.
const maxLines = 800

func generated(file string) bool {
	return strings.HasPrefix(path.Base(file), "zz_generated.") || strings.HasSuffix(file, ".pb.go")
}

func TestEveryPackageHasOneDocComment(t *testing.T) {
	t.Parallel()
	type docs struct {
		name             string
		files, generated int
		texts            []string
		tests            []string // doc comments in test files, which count if there are only tests
	}
	dirs := map[string]*docs{}
	for _, file := range list(t, ".go") {
		if strings.Contains(file, "/testdata/") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, read(t, file), parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		if slices.ContainsFunc(f.Comments, func(c *ast.CommentGroup) bool { return strings.HasPrefix(c.List[0].Text, "//go:build deps") }) {
			continue
		}
		dir := path.Dir(file)
		if dirs[dir] == nil {
			dirs[dir] = &docs{}
		}
		d := dirs[dir]
		text := f.Doc.Text()
		if strings.HasSuffix(file, "_test.go") {
			if d.name == "" {
				d.name = strings.TrimSuffix(f.Name.Name, "_test")
			}
			if text != "" {
				d.tests = append(d.tests, text)
			}
			continue
		}
		d.name = f.Name.Name
		d.files++
		if generated(file) {
			d.generated++
		} else if text != "" {
			d.texts = append(d.texts, text)
		}
	}
	for dir, d := range dirs {
		if d.files > 0 && d.files == d.generated {
			continue
		}
		texts := d.texts
		if d.files == 0 {
			texts = d.tests
		}
		if len(texts) != 1 {
			t.Errorf("%s has %d package doc comments, and should have one that says what it is, what it may import and what it must not know", dir, len(texts))
			continue
		}
		want := "Package " + d.name + " "
		if d.name == "main" {
			want = "Command " + path.Base(dir) + " "
		}
		if !strings.HasPrefix(texts[0], want) {
			t.Errorf("%s: the package doc comment begins %.40q, and should begin %q", dir, texts[0], want)
		}
	}
}

func TestPackagesAreNouns(t *testing.T) {
	t.Parallel()
	for _, file := range list(t, ".go") {
		for name := range strings.SplitSeq(path.Dir(file), "/") {
			if slices.Contains([]string{"util", "utils", "common", "helper", "helpers", "types", "base", "misc", "shared", "lib", "pkg"}, name) {
				t.Errorf("%s: %q says nothing about what is in it", file, name)
			}
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range list(t, ".go", ".sh", ".md") {
		if generated(file) {
			continue
		}
		if n := strings.Count(read(t, file), "\n"); n > maxLines {
			t.Errorf("%s has %d lines, more than %d: it holds more than one thing", file, n, maxLines)
		}
	}
}

// maxWidth is the maximum width of a line of product code, in columns.
const maxWidth = 120

// TestLinesAreShort measures the lines of the product, without the text of literals.
func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	for _, file := range list(t, ".go") {
		if generated(file) || strings.HasSuffix(file, "_test.go") || below(file, "tests", "hack", "examples") || strings.Contains(file, "/testdata/") {
			continue
		}
		for line, width := range widths([]byte(read(t, file))) {
			if width > maxWidth {
				t.Errorf("%s:%d is %d columns wide, more than %d", file, line+1, width, maxWidth)
			}
		}
	}
}

// widths returns the width of each line of a Go file: tabs count 4, and the text of literals and of directives does not count.
func widths(src []byte) []int {
	file := token.NewFileSet().AddFile("", -1, len(src))
	text := bytes.Clone(src)
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			break
		}
		if tok == token.STRING || strings.HasPrefix(literal, "//go:") {
			for i := range literal {
				if at := file.Offset(pos) + i; text[at] != '\n' {
					text[at] = 0
				}
			}
		}
	}
	var out []int
	for line := range bytes.Lines(text) {
		line = bytes.ReplaceAll(bytes.ReplaceAll(bytes.TrimSuffix(line, []byte("\n")), []byte{0}, nil), []byte("\t"), []byte("    "))
		out = append(out, utf8.RuneCount(line))
	}
	return out
}

// TestReplaces checks the replacements in go.mod. k8s.io/kubernetes requires its staging modules at v0.0.0, so each is
// replaced by the release of the same version. The modules that users import are replaced by their folders, so that a
// commit builds with its own. Nothing else may be replaced, because modules that import this one ignore replacements.
func TestReplaces(t *testing.T) {
	t.Parallel()
	mod, err := modfile.Parse("go.mod", []byte(read(t, "go.mod")), nil)
	if err != nil {
		t.Fatal(err)
	}
	release := ""
	for _, r := range mod.Require {
		if r.Mod.Path == "k8s.io/kubernetes" {
			release = strings.Replace(r.Mod.Version, "v1.", "v0.", 1)
		}
	}
	if release == "" {
		t.Fatal("go.mod does not require k8s.io/kubernetes")
	}
	for _, r := range mod.Replace {
		if folder, own := strings.CutPrefix(r.Old.Path, module+"/"); own && slices.Contains(importable(t), folder) && r.New.Path == "./"+folder {
			continue
		}
		if !strings.HasPrefix(r.Old.Path, "k8s.io/") || r.New.Path != r.Old.Path || r.New.Version != release || r.Old.Version != "" {
			t.Errorf("go.mod replaces %s by %s %s; only staging modules of Kubernetes are replaced, by %s of themselves, and the modules that users import", r.Old.Path, r.New.Path, r.New.Version, release)
		}
	}
	if mod.Module.Mod.Path != module {
		t.Errorf("the module is %q, and these tests look for %q", mod.Module.Mod.Path, module)
	}
}

// TestToolsAreFoundInOnePlace expects tests to find optional tools with tests/harness, where a variable can require
// them.
func TestToolsAreFoundInOnePlace(t *testing.T) {
	t.Parallel()
	for _, file := range list(t, "_test.go") {
		if !strings.HasPrefix(file, "tests/repository/") && strings.Contains(read(t, file), "exec.LookPath(") {
			t.Errorf("%s looks for a program: use tests/harness/machine", file)
		}
	}
}
