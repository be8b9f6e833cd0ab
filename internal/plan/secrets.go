package plan

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/schema"

	"github.com/zclconf/go-cty/cty"
)

const (
	// shortestSecret is the length from which on a secret is looked for in what providers say. Shorter ones are part of too much.
	shortestSecret = 4
	// tellingSecret is the length from which on it is found within words, too, and from which on a line of a secret, such as a key, is one
	// by itself.
	tellingSecret = 8
)

// commonWords are what sensitive attributes may be set to that is not worth to make every message unreadable.
var commonWords = []string{"true", "false", "null", "none", "default", "enabled", "disabled"}

// Secrets are texts that nobody may read, found again in other texts in one pass, however many they are. The zero value has none.
type Secrets struct {
	mu sync.Mutex
	// byStart holds them by their first bytes, the longest first.
	byStart map[string][]string
}

// Add keeps a secret, also as it looks within quotes or an address.
func (s *Secrets) Add(text string) {
	if len(text) < shortestSecret || slices.Contains(commonWords, strings.ToLower(text)) {
		return
	}
	quoted := strconv.Quote(text)
	forms := []string{text, quoted[1 : len(quoted)-1], url.QueryEscape(text), url.PathEscape(text)}
	if trimmed := strings.TrimSpace(text); len(trimmed) >= shortestSecret {
		forms = append(forms, trimmed)
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= tellingSecret {
			forms = append(forms, line)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byStart == nil {
		s.byStart = map[string][]string{}
	}
	for _, form := range forms {
		start := form[:shortestSecret]
		if known := s.byStart[start]; !slices.Contains(known, form) {
			s.byStart[start] = slices.SortedFunc(slices.Values(append(known, form)), func(a, b string) int {
				return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
			})
		}
	}
}

// AddValue keeps what is marked as sensitive in a value.
func (s *Secrets) AddValue(v cty.Value) {
	if v == cty.NilVal || !v.ContainsMarked() {
		return
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
		// The function returns no error, so neither does the walk.
		_ = cty.Walk(at, func(_ cty.Path, leaf cty.Value) (bool, error) {
			if leaf.IsKnown() && !leaf.IsNull() && leaf.Type() == cty.String {
				s.Add(leaf.AsString())
			}
			return leaf.IsKnown(), nil
		})
	}
}

// AddBlock keeps the secrets in a value of a block: what is marked, and what stands where the schema has them.
func (s *Secrets) AddBlock(block *schema.Block, v cty.Value) {
	if v != cty.NilVal {
		s.AddValue(lang.MarkSensitive(block, v))
	}
}

// Hide replaces the secrets in a text.
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

// at is the length of the secret that begins at a place of a text; 0 when none does.
func (s *Secrets) at(text string, i int) int {
	if len(text)-i < shortestSecret {
		return 0
	}
	for _, secret := range s.byStart[text[i:i+shortestSecret]] {
		if strings.HasPrefix(text[i:], secret) && (len(secret) >= tellingSecret || aWord(text, i, i+len(secret))) {
			return len(secret)
		}
	}
	return 0
}

// aWord says whether a part of a text is none of a longer word.
func aWord(text string, from, to int) bool {
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	return !unicode.IsLetter(before) && !unicode.IsDigit(before) && !unicode.IsLetter(after) && !unicode.IsDigit(after)
}
