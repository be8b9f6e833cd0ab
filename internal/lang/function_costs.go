package lang

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"
	yaml "go.yaml.in/yaml/v3"
)

// costs maps functions whose result can be much larger than their arguments to the cost of a call before it is made.
// The arguments are known and unmarked, but may have other types than the parameters.
var costs = map[string]func(args []cty.Value, left int) (int, error){
	bcryptName:   bcryptCost,
	"csvdecode":  decodeCost(0, ",\n"),
	"distinct":   pairCost(0, 0),
	"format":     formatCost,
	"formatlist": formatCost,
	"indent":     indentCost,
	"join":       joinCost,
	"jsondecode": both(depthCost, decodeCost(0, ",:")),
	"matchkeys":  pairCost(1, 2),
	"regex":      regexCost,
	"regexall":   both(regexCost, decodeCost(1, "")),
	"replace":    replaceCost,
	"setproduct": productCost,
	"split":      splitCost,
	"yamldecode": both(yamlCost, decodeCost(0, ",:\n")),
	"yamlencode": yamlEncodeCost,
}

// text returns a value as a string, or "" if it is not a known string.
func text(v cty.Value) string {
	s, err := convert.Convert(v, cty.String)
	if err != nil || !s.IsKnown() || s.IsNull() {
		return ""
	}
	return s.AsString()
}

func textWork(n int) (int, error) {
	if n > maxText || n < 0 {
		return 0, fmt.Errorf("the result would be longer than %d MiB", maxText>>20)
	}
	return n / bytesPerUnit, nil
}

// count returns the number of elements, or 0 for a value without elements.
func count(v cty.Value) int {
	if !v.CanIterateElements() {
		return 0
	}
	return v.LengthInt()
}

// pairCost returns the cost of a function that compares each element of argument i with each element of argument j.
func pairCost(i, j int) func([]cty.Value, int) (int, error) {
	return func(args []cty.Value, left int) (int, error) {
		if len(args) <= max(i, j) {
			return 0, nil
		}
		n, m := count(args[i]), count(args[j])
		if n > 0 && m > left/n {
			return 0, fmt.Errorf("%d values would have to be compared with %d; that is too many", n, m)
		}
		return n * m / 8, nil
	}
}

func productCost(args []cty.Value, left int) (int, error) {
	n := len(args) + 1
	for _, a := range args {
		c := count(a)
		if c == 0 {
			return 0, nil
		}
		if n > left/c {
			return 0, errors.New("the product has too many elements")
		}
		n *= c
	}
	return n, nil
}

func joinCost(args []cty.Value, _ int) (int, error) {
	sep, n := len(text(args[0])), 0
	for _, list := range args[1:] {
		n += count(list)
	}
	if sep > 0 && n > maxText/sep {
		return textWork(maxText + 1)
	}
	return textWork(n * sep)
}

func indentCost(args []cty.Value, _ int) (int, error) {
	if len(args) != 2 {
		return 0, nil
	}
	n, err := convert.Convert(args[0], cty.Number)
	if err != nil || !n.IsKnown() || n.IsNull() {
		return 0, nil
	}
	spaces, _ := n.AsBigFloat().Int64()
	lines := int64(strings.Count(text(args[1]), "\n") + 1)
	switch {
	case spaces < 0:
		return 0, errors.New("the number of spaces must not be negative")
	case spaces > maxText/lines:
		return textWork(maxText + 1)
	}
	return textWork(int(spaces * lines))
}

var (
	wideVerb = regexp.MustCompile(`%[^%a-zA-Z]*[0-9]{4,}`)
	// hugeText matches numbers whose decimal form would have very many digits.
	hugeText = regexp.MustCompile(`^\s*[-+]?[0-9a-fA-FxX._]*[eEpP][-+]?0*[0-9]{4,}\s*$`)
)

// formatCost bounds the size of the result: each verb can produce as much as the longest argument.
func formatCost(args []cty.Value, left int) (int, error) {
	if len(args) == 0 {
		return 0, nil
	}
	spec := text(args[0])
	if wideVerb.MatchString(spec) {
		return 0, function.NewArgErrorf(0, "a width or precision above 999 is not supported")
	}
	longest, most := 0, 1
	for _, a := range args[1:] {
		n, ok := size(a, left)
		if !ok {
			return 0, errOverBudget
		}
		if a.Type() == cty.String && hugeText.MatchString(a.AsString()) {
			return 0, errors.New("a number is out of range")
		}
		if a.CanIterateElements() {
			most = max(most, count(a))
			for it := a.ElementIterator(); it.Next(); {
				if _, e := it.Element(); e.Type() == cty.String && e.IsKnown() && !e.IsNull() &&
					hugeText.MatchString(e.AsString()) {
					return 0, errors.New("a number is out of range")
				}
			}
		}
		longest = max(longest, n*bytesPerUnit)
	}
	verbs := strings.Count(spec, "%")
	each := len(spec) + verbs*(longest+1000)
	if each > 16*maxText/most {
		return 0, fmt.Errorf("the result could be longer than %d MiB", maxText>>20)
	}
	return 0, nil
}

// unitsPerDecoded is the cost of a decoded value before the function runs: a decoder occupies a few kilobytes for each.
const unitsPerDecoded = 8

// decodeCost bounds the number of values that a function reads from the text in argument i. Each of separators can end
// a value; without separators, each character can.
func decodeCost(i int, separators string) func([]cty.Value, int) (int, error) {
	return func(args []cty.Value, _ int) (int, error) {
		if len(args) <= i {
			return 0, nil
		}
		s := text(args[i])
		if separators == "" {
			return len(s), nil
		}
		n := 0
		for j := range len(s) {
			if strings.IndexByte(separators, s[j]) >= 0 {
				n++
			}
		}
		return n * unitsPerDecoded, nil
	}
}

func splitCost(args []cty.Value, _ int) (int, error) {
	if len(args) != 2 {
		return 0, nil
	}
	return strings.Count(text(args[1]), text(args[0])), nil
}

// both adds two costs.
func both(f, g func([]cty.Value, int) (int, error)) func([]cty.Value, int) (int, error) {
	return func(args []cty.Value, left int) (int, error) {
		n, err := f(args, left)
		if err != nil {
			return 0, err
		}
		m, err := g(args, left)
		return n + m, err
	}
}

// depthCost refuses data that is nested so deeply that walking it takes too much stack and time.
func depthCost(args []cty.Value, _ int) (int, error) {
	if len(args) == 1 && templateDepth(text(args[0])) > maxDataDepth {
		return 0, fmt.Errorf("more than %d levels are not supported", maxDataDepth)
	}
	return 0, nil
}

// maxDataDepth is the maximum nesting depth of decoded data.
const maxDataDepth = 500

// yamlCost returns the size of a document after each alias is expanded.
func yamlCost(args []cty.Value, left int) (int, error) {
	if len(args) != 1 {
		return 0, nil
	}
	doc := text(args[0])
	if templateDepth(doc) > maxDataDepth || yamlDepth(doc) > maxDataDepth {
		return 0, fmt.Errorf("more than %d levels are not supported", maxDataDepth)
	}
	if !strings.Contains(doc, "*") {
		return 0, nil
	}
	var root yaml.Node
	if yaml.Unmarshal([]byte(doc), &root) != nil {
		return 0, nil // yamldecode reports the error itself
	}
	seen := map[*yaml.Node]int{}
	var walk func(n *yaml.Node) int
	walk = func(n *yaml.Node) int {
		if n == nil {
			return 0
		}
		if known, ok := seen[n]; ok {
			return known
		}
		seen[n] = left + 1 // an alias within its own node
		sum := 1 + len(n.Value)/bytesPerUnit + walk(n.Alias)
		for _, c := range n.Content {
			sum = min(sum+walk(c), left+1)
		}
		seen[n] = sum
		return sum
	}
	if n := walk(&root); n > left {
		return 0, errors.New("the aliases of the document expand to more than the limit")
	} else {
		return n, nil
	}
}

// yamlDepth returns the deepest nesting that the indentation and dashes of a single line allow.
func yamlDepth(doc string) int {
	deepest := 0
	for line := range strings.Lines(doc) {
		rest := strings.TrimLeft(line, " -?")
		deepest = max(deepest, len(line)-len(rest))
	}
	return deepest
}

// yamlEncodeCost counts the bytes of indentation.
func yamlEncodeCost(args []cty.Value, left int) (int, error) {
	if len(args) != 1 {
		return 0, nil
	}
	total := 0
	var walk func(v cty.Value, depth int) bool
	walk = func(v cty.Value, depth int) bool {
		if total += 2 * depth; total > maxText {
			return false
		}
		if !v.IsNull() && v.IsKnown() && v.CanIterateElements() {
			for it := v.ElementIterator(); it.Next(); {
				if _, e := it.Element(); !walk(e, depth+1) {
					return false
				}
			}
		}
		return true
	}
	walk(args[0], 0)
	return textWork(total)
}

// regexCost is the size of the compiled expression times the length of the text, which bounds the matcher's steps. A
// short expression may be large once its repetitions are expanded.
func regexCost(args []cty.Value, left int) (int, error) {
	if len(args) != 2 {
		return 0, nil
	}
	return matchWork(text(args[0]), text(args[1]), left)
}

const stepsPerUnit = 32

func matchWork(pattern, s string, left int) (int, error) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0, nil // the function reports the error itself
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil {
		return 0, nil
	}
	n := len(prog.Inst)
	if n > left*stepsPerUnit/(len(s)+1) {
		return 0, errors.New("the regular expression is too complex for a text of this length")
	}
	return n * (len(s) + 1) / stepsPerUnit, nil
}

func replaceCost(args []cty.Value, left int) (int, error) {
	if len(args) != 3 {
		return 0, nil
	}
	s, sub, with := text(args[0]), text(args[1]), text(args[2])
	if pattern, ok := slashed(sub); ok {
		n, err := matchWork(pattern, s, left)
		if err != nil {
			return 0, err
		}
		re, err := regexp.Compile(pattern)
		if err != nil {
			return 0, nil
		}
		matches := len(re.FindAllStringIndex(s, -1))
		if matches > 0 && len(with) > maxText/matches || bytes.Count([]byte(with), []byte("$")) > maxText/(len(s)+1) {
			return textWork(maxText + 1)
		}
		return 2 * n, nil
	}
	matches := strings.Count(s, sub)
	if matches > 0 && len(with) > maxText/matches {
		return textWork(maxText + 1)
	}
	return textWork(matches * len(with))
}

// slashed returns the regular expression between two slashes.
func slashed(s string) (string, bool) {
	if len(s) > 1 && s[0] == '/' && s[len(s)-1] == '/' {
		return s[1 : len(s)-1], true
	}
	return "", false
}
