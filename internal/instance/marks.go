package instance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hykube/hykube/internal/lang"

	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// unmarked returns a value without marks at any depth.
func unmarked(v cty.Value) cty.Value { return lang.WithoutMarks(v) }

// unmarkedWithPaths returns a value without marks at any depth, and the marks.
func unmarkedWithPaths(v cty.Value) (cty.Value, []cty.PathValueMarks) {
	if !lang.HasMarks(v) {
		return v, nil
	}
	return v.UnmarkDeepWithPaths()
}

func marksOf(v cty.Value) []cty.PathValueMarks {
	_, marks := unmarkedWithPaths(v)
	return marks
}

// echoes are the arguments whose values a type also returns in another attribute. A secret in the argument is one
// there, too.
var echoes = map[string]struct{ argument, attribute string }{"terraform_data": {"input", "output"}}

// withEchoes adds the marks of the argument that the type echoes, for the whole attribute that has it.
func (t *Type) withEchoes(marks []cty.PathValueMarks) []cty.PathValueMarks {
	echo, ok := echoes[t.Name]
	if !ok {
		return marks
	}
	all := cty.PathValueMarks{Path: cty.GetAttrPath(echo.attribute), Marks: cty.ValueMarks{}}
	for _, m := range marks {
		if of, ok := m.Path[0].(cty.GetAttrStep); ok && of.Name == echo.argument {
			maps.Copy(all.Marks, m.Marks)
		}
	}
	if len(all.Marks) == 0 {
		return marks
	}
	return append(slices.Clip(marks), all)
}

// restoreMarks restores marks on a value whose shape may have changed, and drops those on missing paths. It restores
// only lang.Sensitive and its origins, which a state records. Other marks, such as Ephemeral, concern only the
// configuration.
func restoreMarks(v cty.Value, marks []cty.PathValueMarks) cty.Value {
	if len(marks) == 0 {
		return v
	}
	kept := make([]cty.PathValueMarks, 0, len(marks))
	for _, m := range marks {
		recorded := lang.RecordedMarks(m.Marks)
		if recorded == nil {
			continue
		}
		if _, err := m.Path.Apply(v); err == nil {
			kept = append(kept, cty.PathValueMarks{Path: m.Path, Marks: recorded})
		}
	}
	return v.MarkWithPaths(kept)
}

// sameMarks reports whether two values that are equal without their marks have marks at the same paths.
func sameMarks(a, b cty.Value) bool {
	paths := func(v cty.Value) cty.PathSet {
		s := cty.NewPathSet()
		for _, m := range marksOf(v) {
			s.Add(m.Path)
		}
		return s
	}
	return paths(a).Equal(paths(b))
}

// SensitivePaths encodes the paths of the marks in a value, and their origins, for Remark.
func SensitivePaths(v cty.Value) (json.RawMessage, error) {
	return encodePaths(marksOf(v))
}

// Remark marks a value at the paths that SensitivePaths encoded.
func Remark(v cty.Value, sensitive json.RawMessage) (cty.Value, error) {
	marks, err := decodePaths(sensitive)
	if err != nil {
		return cty.NilVal, err
	}
	return restoreMarks(v, marks), nil
}

// pathStep is one step of a path in a ledger record: the name of an attribute or the key of an element. A last step
// without both has the origins of the value at the path.
type pathStep struct {
	Attr    string                   `json:"attr,omitempty"`
	Index   *ctyjson.SimpleJSONValue `json:"index,omitempty"`
	Origins []lang.Origin            `json:"origins,omitempty"`
}

// maxOrigins is the maximum number of origins that a record keeps of one value. Of more, it keeps the first ones and
// lang.FurtherOrigins.
const maxOrigins = 16

func encodePaths(marks []cty.PathValueMarks) (json.RawMessage, error) {
	if len(marks) == 0 {
		return nil, nil
	}
	paths := make([][]pathStep, 0, len(marks))
	for _, m := range marks {
		steps := make([]pathStep, 0, len(m.Path)+1)
		for _, s := range m.Path {
			switch s := s.(type) {
			case cty.GetAttrStep:
				steps = append(steps, pathStep{Attr: s.Name})
			case cty.IndexStep:
				steps = append(steps, pathStep{Index: &ctyjson.SimpleJSONValue{Value: s.Key}})
			}
		}
		if origins := lang.BoundOrigins(lang.OriginsIn(m.Marks), maxOrigins); len(origins) > 0 {
			steps = append(steps, pathStep{Origins: origins})
		}
		paths = append(paths, steps)
	}
	return json.Marshal(paths)
}

func decodePaths(raw json.RawMessage) ([]cty.PathValueMarks, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var stored [][]pathStep
	if err := json.Unmarshal(raw, &stored); err != nil {
		return nil, fmt.Errorf("decode sensitive paths: %w", err)
	}
	marks := make([]cty.PathValueMarks, len(stored))
	for i, steps := range stored {
		marks[i].Marks = cty.NewValueMarks(lang.Sensitive)
		for _, s := range steps {
			switch {
			case s.Index != nil:
				marks[i].Path = append(marks[i].Path, cty.IndexStep{Key: s.Index.Value})
			case len(s.Origins) > 0:
				for _, o := range s.Origins {
					marks[i].Marks[o] = struct{}{}
				}
			default:
				marks[i].Path = append(marks[i].Path, cty.GetAttrStep{Name: s.Attr})
			}
		}
	}
	return marks, nil
}
