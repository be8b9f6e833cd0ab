package repository

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/hykube/hykube"

// root is the top directory of the repository. Tests run in their own directory.
const root = "../.."

// files returns the paths of all files of the repository, relative to its top.
var files = sync.OnceValues(func() ([]string, error) {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return walk() // a source archive without git
	}
	var paths []string
	for path := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if info, err := os.Stat(filepath.Join(root, path)); err == nil && info.Mode().IsRegular() {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths), nil
})

func walk() ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "dist"}, rel) {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			paths = append(paths, filepath.ToSlash(rel))
		}
		return err
	})
	return paths, err
}

// list returns the files whose names end in one of the suffixes.
func list(t *testing.T, suffixes ...string) []string {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range all {
		if slices.ContainsFunc(suffixes, func(s string) bool { return strings.HasSuffix(path, s) }) {
			out = append(out, path)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no files %v: the test looks in the wrong place", suffixes)
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// pkg is a package in the output of `go list`.
type pkg struct {
	ImportPath string
	Standard   bool
	Imports    []string
}

// packages returns all packages that the repository's packages import, by import path, without those of tests.
var packages = sync.OnceValues(func() (map[string]*pkg, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(stderr.String()))
	}
	all := map[string]*pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &pkg{}
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all[p.ImportPath] = p
	}
})

func listed(t *testing.T) map[string]*pkg {
	t.Helper()
	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inModule returns the path of a package below the module, or "" for a package of another module.
func inModule(path string) string {
	if rest, ok := strings.CutPrefix(path, module+"/"); ok {
		return rest
	}
	return ""
}

// below reports whether a path is one of the folders or in one of them.
func below(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

// why returns the shortest chain of imports from one package to the first one that bad rejects; nil if there is none.
func why(all map[string]*pkg, from string, bad func(string) bool) []string {
	cameFrom := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		p := all[queue[0]]
		if p == nil {
			continue
		}
		for _, imported := range p.Imports {
			if _, seen := cameFrom[imported]; seen {
				continue
			}
			cameFrom[imported] = queue[0]
			if bad(imported) {
				var chain []string
				for at := imported; at != ""; at = cameFrom[at] {
					chain = append(chain, at)
				}
				slices.Reverse(chain)
				return chain
			}
			queue = append(queue, imported)
		}
	}
	return nil
}
