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

// EvaluationContext is the context in which an object's expressions are evaluated. It defines the results of the impure
// functions; in the zero context, these are unknown. Evaluations in equal contexts give equal results, since a worker
// evaluates a plan's step again after a crash.
type EvaluationContext struct {
	// Functions are the callable provider-defined functions, and those that read the files of a module. For a function
	// that is not in the map, the parser's version applies.
	Functions Functions
	// Planned is the time at which the plan was created, the result of plantimestamp(); zero without a plan.
	Planned time.Time
	// Applied is the time at which the plan was approved, the result of timestamp(); zero during planning.
	Applied time.Time
	// Seed is the seed of UUIDs. It is the same for all evaluations of one object in one plan and differs for all
	// others. It is empty during planning.
	Seed string
	// Hashes holds the results of bcrypt() by seed, field and number of the call. The caller stores it with the change,
	// so that each attempt gets the same hash. If it is nil, the result of bcrypt() is unknown.
	Hashes map[string]string
	// Budget bounds the evaluation, in addition to its own limit.
	Budget *Budget
	// Module is the path of the module instance whose values the references of the expressions are to; empty for the
	// one in the parser's options.
	Module string
	// Instance holds the values of count.index, each.key and each.value. Nil leaves them unknown.
	Instance *Instance
}

// The impure functions: their results depend on the clock or on random values.
const (
	planTimestamp = "plantimestamp"
	timestamp     = "timestamp"
	newUUID       = "uuid"
	bcryptName    = "bcrypt"
)

func isImpure(name string) bool {
	return slices.Contains([]string{planTimestamp, timestamp, newUUID, bcryptName},
		strings.TrimPrefix(name, corePrefix))
}

// Impure reports whether the expressions may give different results although no referenced value has changed.
func (p *program) Impure() bool {
	for name := range p.calls {
		// Only the evaluation knows the functions that a template calls.
		if isImpure(name) || strings.TrimPrefix(name, corePrefix) == templateString {
			return true
		}
	}
	return false
}

// bindImpure returns an impure function with its result for the evaluation's context. It returns f for all other
// functions, and if the context does not define the result.
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
			return uuidFunc(m.nextRandom)
		}
	case bcryptName:
		if at.Hashes != nil {
			return bcryptFunc(m.hash)
		}
	}
	return f
}

// nextCall returns the identity of the next impure call in the current field. Each field counts its own calls, so that
// a change of one field does not affect the others.
func (m *costBudget) nextCall() string {
	if m.drawn == nil {
		m.drawn = map[string]int{}
	}
	n := m.drawn[m.field]
	m.drawn[m.field]++
	return fmt.Sprintf("%q %q %d", m.context.Seed, m.field, n)
}

// nextRandom returns 16 bytes that are derived from the identity of the next call.
func (m *costBudget) nextRandom() [16]byte {
	sum := sha256.Sum256([]byte(m.nextCall()))
	return [16]byte(sum[:16])
}

// hash returns the bcrypt hash for the next call. It reuses the hash of an earlier evaluation if this has the same
// password and cost.
func (m *costBudget) hash(password string, cost int) (string, error) {
	call := m.nextCall()
	kept := []byte(m.context.Hashes[call])
	if c, err := bcrypt.Cost(kept); err == nil && c == cost && bcrypt.CompareHashAndPassword(kept,
		[]byte(password)) == nil {
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
			// Set version 4 and the variant of RFC 9562.
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

// bcryptRounds returns the cost argument of bcrypt().
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
		return bcrypt.DefaultCost, nil // bcrypt's reference implementation does the same
	}
	return int(cost), nil
}

// bcryptCost charges for the rounds, which are slow by design. A cost of 10 takes some 50 ms, and each increment
// doubles that.
func bcryptCost(args []cty.Value, left int) (int, error) {
	if len(args) > 1 && args[1].Type() != cty.Number {
		return 0, nil // the call itself reports the error
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
