package module

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/hykube/hykube/internal/lang"
)

// functionsOf returns the functions that expressions of a module may call besides the built-in ones: those of
// providers, and those that read the module's own files.
func functionsOf(files Files, providers lang.Functions) lang.Functions {
	out := maps.Clone(providers)
	if out == nil {
		out = lang.Functions{}
	}
	maps.Copy(out, lang.Functions{
		"file":            files.function(files.text),
		lang.TemplateFile: files.function(files.text),
		"filebase64":      files.hash(func(b []byte) string { return base64.StdEncoding.EncodeToString(b) }),
		"filemd5":         files.hash(func(b []byte) string { sum := md5.Sum(b); return hex.EncodeToString(sum[:]) }),
		"filesha1":        files.hash(func(b []byte) string { sum := sha1.Sum(b); return hex.EncodeToString(sum[:]) }),
		"filesha256": files.hash(
			func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }),
		"filesha512": files.hash(
			func(b []byte) string { sum := sha512.Sum512(b); return hex.EncodeToString(sum[:]) }),
		"filebase64sha256": files.hash(
			func(b []byte) string { sum := sha256.Sum256(b); return base64.StdEncoding.EncodeToString(sum[:]) }),
		"filebase64sha512": files.hash(
			func(b []byte) string { sum := sha512.Sum512(b); return base64.StdEncoding.EncodeToString(sum[:]) }),
		"fileexists": files.exists(),
		"fileset":    files.set(),
	})
	return out
}

// FileSignatures returns the functions that read files, with unknown results. Parsed expressions that several Modules
// share have these; each evaluation has those of its Module.
func FileSignatures() lang.Functions {
	out := functionsOf(nil, nil)
	for name, f := range out {
		arguments := make([]cty.Type, len(f.Params()))
		for i, p := range f.Params() {
			arguments[i] = p.Type
		}
		result, err := f.ReturnType(arguments)
		if err != nil {
			result = cty.DynamicPseudoType
		}
		out[name] = function.New(&function.Spec{
			Params: f.Params(), Type: function.StaticReturnType(result),
			Impl: func([]cty.Value, cty.Type) (cty.Value, error) { return cty.UnknownVal(result), nil },
		})
	}
	return out
}

// readsFiles matches calls of the functions that read files.
var readsFiles = regexp.MustCompile(`\b(file[a-z0-9]*|templatefile)\s*\(`)

// ReadsFiles reports whether a text of the configuration may call a function that reads files.
func ReadsFiles(text []byte) bool { return readsFiles.Match(text) }

// read returns the content of a file. Paths are relative to the root module, as path.module is.
func (f Files) read(name string) ([]byte, error) {
	content, ok := f[path.Clean(name)]
	if !ok {
		return nil, fmt.Errorf("no file exists at %q; this function works only with files that are distributed as part of the module", name)
	}
	return content, nil
}

func (f Files) text(name string) (string, error) {
	content, err := f.read(name)
	if err == nil && !utf8.Valid(content) {
		return "", fmt.Errorf("contents of %q are not valid UTF-8; use the filebase64 function to obtain the Base64 encoded contents or the other file functions (e.g. filemd5, filesha256) to obtain file hashing results instead", name)
	}
	return string(content), err
}

func (f Files) function(read func(string) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.String),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			text, err := read(args[0].AsString())
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}

func (f Files) hash(encode func([]byte) string) function.Function {
	return f.function(func(name string) (string, error) {
		content, err := f.read(name)
		if err != nil {
			return "", err
		}
		return encode(content), nil
	})
}

func (f Files) exists() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Bool),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			return cty.BoolVal(f.has(path.Clean(args[0].AsString()))), nil
		},
	})
}

// set returns the function fileset: the names of the files in a directory that match a pattern.
func (f Files) set() function.Function {
	return function.New(&function.Spec{
		Params: []function.Parameter{{Name: "path", Type: cty.String}, {Name: "pattern", Type: cty.String}},
		Type:   function.StaticReturnType(cty.Set(cty.String)),
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			dir, pattern := path.Clean(args[0].AsString()), args[1].AsString()
			alternatives, err := braces(pattern)
			if err != nil {
				return cty.NilVal, function.NewArgError(1, err)
			}
			var out []cty.Value
			for name := range f {
				inner, ok := name, dir == "."
				if !ok {
					inner, ok = strings.CutPrefix(name, dir+"/")
				}
				if ok && slices.ContainsFunc(alternatives,
					func(p []string) bool { return matches(p, strings.Split(inner, "/")) }) {
					out = append(out, cty.StringVal(inner))
				}
			}
			if len(out) == 0 {
				return cty.SetValEmpty(cty.String), nil
			}
			return cty.SetVal(out), nil
		},
	})
}

// maxAlternatives is the number of patterns that one with braces may stand for.
const maxAlternatives = 100

// braces expands {a,b} in a pattern, and splits the patterns at slashes.
func braces(pattern string) ([][]string, error) {
	todo, out := []string{pattern}, [][]string(nil)
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		open := strings.IndexByte(next, '{')
		end := strings.IndexByte(next, '}')
		switch {
		case open >= 0 && end > open:
			for option := range strings.SplitSeq(next[open+1:end], ",") {
				todo = append(todo, next[:open]+option+next[end+1:])
			}
		case open >= 0:
			return nil, fmt.Errorf("failed to glob pattern %q: a brace is not closed", pattern)
		default:
			steps := strings.Split(path.Clean(next), "/")
			for _, s := range steps {
				if _, err := path.Match(s, ""); err != nil {
					return nil, fmt.Errorf("failed to glob pattern %q: %w", pattern, err)
				}
			}
			out = append(out, steps)
		}
		if len(todo)+len(out) > maxAlternatives {
			return nil, fmt.Errorf("failed to glob pattern %q: it has more than %d alternatives", pattern,
				maxAlternatives)
		}
	}
	return out, nil
}

// matches reports whether a path matches a pattern, in which ** stands for any number of directories.
func matches(pattern, steps []string) bool {
	// reached[k] is true if the pattern so far matches the first k steps.
	reached := make([]bool, len(steps)+1)
	reached[0] = true
	for i, p := range pattern {
		next := make([]bool, len(steps)+1)
		for k := range reached {
			switch {
			case !reached[k]:
			case p == "**" && i == len(pattern)-1:
				return len(steps) > k
			case p == "**":
				for rest := k; rest <= len(steps); rest++ {
					next[rest] = true
				}
			case k < len(steps):
				ok, err := path.Match(p, steps[k])
				next[k+1] = next[k+1] || ok && err == nil
			}
		}
		reached = next
	}
	return reached[len(steps)]
}
