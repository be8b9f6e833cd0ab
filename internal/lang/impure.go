package lang

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/crypto/bcrypt"
)

// EvaluationContext is when expressions are evaluated, and for which object. It decides what the functions give that read the clock or
// chance; where it is zero, their results are unknown. Evaluations in equal contexts give equal results: a step of a plan is evaluated
// again after a crash, and must come to the same.
type EvaluationContext struct {
	// Functions are the provider-defined functions that can be called. A function that is not among them is the one that the parser knew.
	Functions Functions
	// Planned is when the plan was asked for, which plantimestamp tells; zero while there is no plan.
	Planned time.Time
	// Applied is when the plan was approved, which timestamp tells; zero while the plan is made.
	Applied time.Time
	// Seed is what UUIDs are made of: the same for all evaluations of one object's expressions in one plan, and another for any other.
	// Empty while the plan is made.
	Seed string
	// Hashes keeps the results of bcrypt, by seed, field and number of the call. The caller stores them with the change, so that each
	// attempt gets the same. While it is nil, bcrypt is unknown.
	Hashes map[string]string
}

// Functions that read the clock or chance.
const (
	planTimestamp = "plantimestamp"
	timestamp     = "timestamp"
	newUUID       = "uuid"
	bcryptName    = "bcrypt"
)

func isImpure(name string) bool {
	return slices.Contains([]string{planTimestamp, timestamp, newUUID, bcryptName}, strings.TrimPrefix(name, corePrefix))
}

// Impure says whether the expressions may give something else each time although nothing that they refer to has changed.
func (p *program) Impure() bool {
	for name := range p.calls {
		// What a template calls is found out when it is filled in.
		if isImpure(name) || strings.TrimPrefix(name, corePrefix) == templateString {
			return true
		}
	}
	return false
}

// bindImpure is what a function that reads the clock or chance is in the context of the evaluation; f itself for all others, and while
// nothing is known.
func (m *costBudget) bindImpure(name string, f function.Function) function.Function {
	switch at := m.context; strings.TrimPrefix(name, corePrefix) {
	case planTimestamp:
		if !at.Planned.IsZero() {
			return clock(at.Planned)
		}
	case timestamp:
		if !at.Applied.IsZero() {
			return clock(at.Applied)
		}
	case newUUID:
		if at.Seed != "" {
			return uuidFunc(m.draw)
		}
	case bcryptName:
		if at.Hashes != nil {
			return bcryptFunc(m.hash)
		}
	}
	return f
}

// nextCall names the next call in the field that is evaluated. Each field counts its own calls, so that a change of one does not move
// the others.
func (m *costBudget) nextCall() string {
	if m.drawn == nil {
		m.drawn = map[string]int{}
	}
	n := m.drawn[m.field]
	m.drawn[m.field]++
	return fmt.Sprintf("%q %q %d", m.context.Seed, m.field, n)
}

// draw returns 16 bytes for the next call.
func (m *costBudget) draw() [16]byte {
	sum := sha256.Sum256([]byte(m.nextCall()))
	return [16]byte(sum[:16])
}

// hash returns the bcrypt hash of the next call: the one that an earlier evaluation kept, if it is of this password and cost.
func (m *costBudget) hash(password string, cost int) (string, error) {
	call := m.nextCall()
	kept := []byte(m.context.Hashes[call])
	if c, err := bcrypt.Cost(kept); err == nil && c == cost && bcrypt.CompareHashAndPassword(kept, []byte(password)) == nil {
		return string(kept), nil
	}
	made, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	if err == nil {
		m.context.Hashes[call] = string(made)
	}
	return string(made), err
}

func clock(t time.Time) function.Function {
	return function.New(&function.Spec{
		Type: function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			return cty.StringVal(t.UTC().Format(time.RFC3339)), nil
		},
	})
}

func uuidFunc(draw func() [16]byte) function.Function {
	return function.New(&function.Spec{
		Type: function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func([]cty.Value, cty.Type) (cty.Value, error) {
			id := uuid.UUID(draw())
			// Version 4 and the variant of RFC 9562, for those who look.
			id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
			return cty.StringVal(id.String()), nil
		},
	})
}

func bcryptFunc(hash func(password string, cost int) (string, error)) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "str", Type: cty.String}},
		VarParam: &function.Parameter{Name: "cost", Type: cty.Number},
		Type:     function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			cost, err := bcryptRounds(args)
			if err != nil {
				return cty.UnknownVal(cty.String), err
			}
			text, err := hash(args[0].AsString(), cost)
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			return cty.StringVal(text), nil
		},
	})
}

// bcryptRounds reads the cost among the arguments of bcrypt.
func bcryptRounds(args []cty.Value) (int, error) {
	switch len(args) {
	case 1:
		return bcrypt.DefaultCost, nil
	case 2:
	default:
		return 0, fmt.Errorf("bcrypt() takes no more than two arguments")
	}
	f := args[1].AsBigFloat()
	cost, _ := f.Int64()
	if !f.IsInt() || cost > int64(bcrypt.MaxCost) {
		return 0, function.NewArgErrorf(1, "the cost must be a whole number up to %d", bcrypt.MaxCost)
	}
	if cost < int64(bcrypt.MinCost) {
		return bcrypt.DefaultCost, nil // as bcrypt's reference does it
	}
	return int(cost), nil
}

// bcryptCost pays for the rounds: they are made to take long. A cost of 10 takes some 50 ms, and each more doubles that.
func bcryptCost(args []cty.Value, left int) (int, error) {
	if len(args) > 1 && args[1].Type() != cty.Number {
		return 0, nil // the call itself says what is wrong
	}
	cost, err := bcryptRounds(args)
	if err != nil {
		return 0, err
	}
	n := 16 << cost
	if n > left {
		return 0, fmt.Errorf("bcrypt() of cost %d would take too long; use a lower cost", cost)
	}
	return n, nil
}
