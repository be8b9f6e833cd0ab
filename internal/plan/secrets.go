package plan

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"
)

const (
	// minSecret is the minimum length, in bytes, of a secret that Hide replaces. Shorter texts occur too often by
	// chance.
	minSecret = 4
	// longSecret is the length, in bytes, from which Hide also finds a secret within words. From this length, each
	// line of a secret, such as a key, is a secret of its own.
	longSecret = 8
)

// commonWords lists frequent values of sensitive attributes. Hiding them would make every message unreadable.
var commonWords = []string{"true", "false", "null", "none", "default", "enabled", "disabled"}

// Secrets hides a set of secret texts in other texts. Hide takes a single pass, however many secrets there are. The
// zero value is an empty set. It is safe for concurrent use.
type Secrets struct {
	mu sync.Mutex
	// byStart maps the first minSecret bytes to the secrets that begin with them, longest first.
	byStart map[string][]string
}

// Add adds a secret, and its quoted and URL-escaped forms. It ignores short texts and common words.
func (s *Secrets) Add(text string) {
	if len(text) < minSecret || slices.Contains(commonWords, strings.ToLower(text)) {
		return
	}
	quoted := strconv.Quote(text)
	forms := []string{text, quoted[1 : len(quoted)-1], url.QueryEscape(text), url.PathEscape(text)}
	if trimmed := strings.TrimSpace(text); len(trimmed) >= minSecret {
		forms = append(forms, trimmed)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= longSecret {
			forms = append(forms, line)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byStart == nil {
		s.byStart = map[string][]string{}
	}
	for _, form := range forms {
		start := form[:minSecret]
		if known := s.byStart[start]; !slices.Contains(known, form) {
			s.byStart[start] = slices.SortedFunc(slices.Values(append(known, form)), func(a, b string) int {
				return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
			})
		}
	}
}

// AddValue adds the strings within a value that are marked as sensitive.
func (s *Secrets) AddValue(v cty.Value) {
	for _, text := range secretTexts(v) {
		s.Add(text)
	}
}

// SecretTexts returns the strings that AddBlock adds, for a caller that adds those of the same value again and again.
func SecretTexts(block *schema.Block, v cty.Value) []string {
	if v == cty.NilVal {
		return nil
	}
	return secretTexts(lang.MarkSensitive(block, v))
}

// secretTexts returns the strings within a value that are marked as sensitive.
func secretTexts(v cty.Value) (texts []string) {
	if !lang.HasMarks(v) {
		return nil
	}
	plain, marks := v.UnmarkDeepWithPaths()
	for _, m := range marks {
		if _, secret := m.Marks[lang.Sensitive]; !secret {
			continue
		}
		at, err := m.Path.Apply(plain)
		if err != nil {
			continue
		}
		// The callback returns no error, so Walk returns none.
		_ = cty.Walk(at, func(_ cty.Path, leaf cty.Value) (bool, error) {
			if leaf.IsKnown() && !leaf.IsNull() && leaf.Type() == cty.String {
				texts = append(texts, leaf.AsString())
			}
			return leaf.IsKnown(), nil
		})
	}
	return texts
}

// AddBlock adds the secrets of a block's value: those that are marked, and those that the schema declares sensitive.
func (s *Secrets) AddBlock(block *schema.Block, v cty.Value) {
	for _, text := range SecretTexts(block, v) {
		s.Add(text)
	}
}

// Hide replaces each secret in the text by lang.Mask.
func (s *Secrets) Hide(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byStart) == 0 {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		if n := s.at(text, i); n > 0 {
			out.WriteString(lang.Mask)
			i += n
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// at returns the length of the secret that begins at index i of the text, or 0 if none does.
func (s *Secrets) at(text string, i int) int {
	if len(text)-i < minSecret {
		return 0
	}
	for _, secret := range s.byStart[text[i:i+minSecret]] {
		if strings.HasPrefix(text[i:], secret) && (len(secret) >= longSecret || isWholeWord(text, i, i+len(secret))) {
			return len(secret)
		}
	}
	return 0
}

// isWholeWord reports whether text[from:to] is not part of a longer word.
func isWholeWord(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) && !unicode.IsLetter(after) && !unicode.IsDigit(after)
}

// secretChanges returns the paths of the marked values that differ, or may differ, after the change. It omits values
// that are added or removed with their whole block. A path ends where a mark begins, so it names nothing masked: a map
// with a secret key has the mark itself. Indexes of lists are those of after.
func secretChanges(before, after cty.Value) []cty.Path {
	var out []cty.Path
	walkSecrets(before, after, nil, &out)
	return out
}

func walkSecrets(b, a cty.Value, at cty.Path, out *[]cty.Path) {
	if b.IsMarked() || a.IsMarked() {
		if b, a = lang.WithoutMarks(b), lang.WithoutMarks(a); !a.IsWhollyKnown() || !sameSecret(b, a) {
			*out = append(*out, at)
		}
		return
	}
	if b.IsNull() || a.IsNull() || !b.IsKnown() || !a.IsKnown() {
		return
	}
	bt, ty := b.Type(), a.Type()
	switch {
	case (ty.IsObjectType() || ty.IsMapType()) && (bt.IsObjectType() || bt.IsMapType()):
		x, y := b.AsValueMap(), a.AsValueMap()
		for _, k := range slices.Sorted(maps.Keys(y)) {
			step := at.GetAttr(k)
			if ty.IsMapType() {
				step = at.IndexString(k)
			}
			walkSecrets(elementOrNull(x, k), y[k], step, out)
		}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			if _, ok := y[k]; ok {
				continue
			}
			step := at.GetAttr(k)
			if bt.IsMapType() {
				step = at.IndexString(k)
			}
			walkSecrets(x[k], cty.NullVal(cty.DynamicPseudoType), step, out)
		}
	case indexed(a) && indexed(b):
		walkSecretList(b.AsValueSlice(), a.AsValueSlice(), at, out)
	}
}

// walkSecretList skips the equal elements at both ends. An added or removed element shifts the others without changing
// them.
func walkSecretList(b, a []cty.Value, at cty.Path, out *[]cty.Path) {
	lo, n, m := 0, len(b), len(a)
	for lo < n && lo < m && lang.WithoutMarks(b[lo]).RawEquals(lang.WithoutMarks(a[lo])) {
		lo++
	}
	for n > lo && m > lo && lang.WithoutMarks(b[n-1]).RawEquals(lang.WithoutMarks(a[m-1])) {
		n, m = n-1, m-1
	}
	for i := lo; i < m; i++ {
		old := cty.NullVal(cty.DynamicPseudoType)
		if i < n {
			old = b[i]
		}
		walkSecrets(old, a[i], at.IndexInt(i), out)
	}
}

// sameSecret compares two values. Nulls of different types are equal.
func sameSecret(b, a cty.Value) bool { return b.IsNull() && a.IsNull() || b.RawEquals(a) }
