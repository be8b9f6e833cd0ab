package instance

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hykube/hykube/internal/lang"
	"github.com/hykube/hykube/internal/ledger"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/zclconf/go-cty/cty"
	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// This file converts records to the form of a Terraform state, and back.

// Foreign is an instance in a Terraform state.
type Foreign struct {
	// State has what the two forms share. Its Sensitive is not used.
	*ledger.State
	// Flat are the attributes as Terraform 0.11 wrote them, in place of State.Attributes.
	Flat map[string]string
	// Sensitive are the paths of sensitive values, each as JSON in Terraform's form.
	Sensitive []string
}

// Take makes the provider convert an instance in a Terraform state to the current schema, and completes f.State as a
// record of it. It calls the provider only to upgrade the attributes and the identity.
func (t *Type) Take(ctx context.Context, f Foreign) error {
	rec := f.State
	if rec.SchemaVersion > t.Schema.Version {
		return fmt.Errorf("it was written by a newer provider (schema version %d, the installed one's is %d)",
			rec.SchemaVersion, t.Schema.Version)
	}
	marks, err := decodeForeignPaths(f.Sensitive)
	if err != nil {
		return err
	}
	raw := &tfprotov6.RawState{Flatmap: f.Flat}
	if f.Flat == nil {
		raw = &tfprotov6.RawState{JSON: rec.Attributes}
	}
	if f.Flat == nil && rec.SchemaVersion == t.Schema.Version {
		if raw.JSON, err = stripUnknownAttributes(rec.Attributes, t.Schema.Block); err != nil {
			return err
		}
	}
	s, err := t.upgrade(ctx, rec, raw, marks)
	if err != nil {
		return err
	}
	s.Value = t.withoutDeclared(s.Value)
	return t.Record(rec, s)
}

// withoutDeclared removes the marks of what the schema declares sensitive. Terraform writes those, and a record has
// only others.
func (t *Type) withoutDeclared(v cty.Value) cty.Value {
	bare, marks := unmarkedWithPaths(v)
	declared := marksOf(lang.MarkSensitive(t.Schema.Block, bare))
	var kept []cty.PathValueMarks
	for _, m := range marks {
		if !within(m.Path, declared) {
			kept = append(kept, m)
		}
	}
	return bare.MarkWithPaths(kept)
}

// within reports whether a path is that of a mark, or below it.
func within(p cty.Path, marks []cty.PathValueMarks) bool {
	for _, m := range marks {
		if len(m.Path) <= len(p) && m.Path.Equals(p[:len(m.Path)]) {
			return true
		}
	}
	return false
}

// ForeignPaths returns the paths of all sensitive values of a record, in Terraform's form: those that a reference made
// sensitive, and those that the schema declares. The schema must have the version of the record.
func (t *Type) ForeignPaths(rec *ledger.State) ([]string, error) {
	v, err := Recorded(rec, t.Schema)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range marksOf(lang.MarkSensitive(t.Schema.Block, v)) {
		text, err := encodeForeignPath(m.Path)
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// foreignStep is a step of a path in a Terraform state.
type foreignStep struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// Types of a foreignStep.
const (
	stepAttribute = "get_attr"
	stepIndex     = "index"
)

func encodeForeignPath(p cty.Path) (string, error) {
	steps := make([]foreignStep, 0, len(p))
	for _, s := range p {
		var of foreignStep
		var err error
		switch s := s.(type) {
		case cty.GetAttrStep:
			of.Type = stepAttribute
			of.Value, err = json.Marshal(s.Name)
		case cty.IndexStep:
			of.Type = stepIndex
			of.Value, err = ctyjson.Marshal(s.Key, cty.DynamicPseudoType) // with its type, as Terraform writes it
		}
		if err != nil {
			return "", fmt.Errorf("encode path: %w", err)
		}
		steps = append(steps, of)
	}
	text, err := json.Marshal(steps)
	return string(text), err
}

func decodeForeignPaths(texts []string) ([]cty.PathValueMarks, error) {
	var out []cty.PathValueMarks
	for _, text := range texts {
		var steps []foreignStep
		if err := json.Unmarshal([]byte(text), &steps); err != nil {
			return nil, fmt.Errorf("its path %.100q of a sensitive value is damaged: %w", text, err)
		}
		m := cty.PathValueMarks{Marks: cty.NewValueMarks(lang.Sensitive)}
		for _, s := range steps {
			step, err := s.decode()
			if err != nil {
				return nil, fmt.Errorf("its path %.100q of a sensitive value is damaged: %w", text, err)
			}
			m.Path = append(m.Path, step)
		}
		out = append(out, m)
	}
	return out, nil
}

func (s foreignStep) decode() (cty.PathStep, error) {
	switch s.Type {
	case stepAttribute:
		var name string
		err := json.Unmarshal(s.Value, &name)
		return cty.GetAttrStep{Name: name}, err
	case stepIndex:
		key, err := ctyjson.Unmarshal(s.Value, cty.DynamicPseudoType)
		if err != nil {
			return nil, err
		}
		if key.IsNull() || key.Type() != cty.String && key.Type() != cty.Number {
			return nil, fmt.Errorf("the index %s is neither a string nor a number", s.Value)
		}
		return cty.IndexStep{Key: key}, nil
	}
	return nil, fmt.Errorf("the step %.40q is unknown", s.Type)
}
