package lang

//lint:file-ignore SA1019 bcrypt is made of blowfish

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"golang.org/x/crypto/blowfish"
)

// EvaluationContext is when expressions are evaluated, and for which object: what the functions give that read the clock or chance. Where
// it is zero, their results are unknown. Evaluations in equal contexts give equal results: a step of a plan is evaluated again
// after a crash, and must come to the same.
type EvaluationContext struct {
	// Planned is when the plan was asked for, which plantimestamp tells; zero while there is no plan.
	Planned time.Time
	// Applied is when the plan was approved, which timestamp tells; zero while the plan is made.
	Applied time.Time
	// Seed is what uuid, and the salt of bcrypt, are made of: the same for all evaluations of one object's expressions in one
	// plan, and another for any other. Empty while the plan is made.
	Seed string
}

// Functions that read the clock or chance.
const (
	planTimestamp = "plantimestamp"
	timestamp     = "timestamp"
	newUUID       = "uuid"
	bcrypt        = "bcrypt"
)

func isImpure(name string) bool {
	return slices.Contains([]string{planTimestamp, timestamp, newUUID, bcrypt}, strings.TrimPrefix(name, corePrefix))
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
	case bcrypt:
		if at.Seed != "" {
			return bcryptFunc(m.draw)
		}
	}
	return f
}

// draw gives the next 16 bytes for the field that is evaluated. Each field counts its own calls, so that a change of one does not
// move the others.
func (m *costBudget) draw() [16]byte {
	if m.drawn == nil {
		m.drawn = map[string]int{}
	}
	n := m.drawn[m.field]
	m.drawn[m.field]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", m.context.Seed, m.field, n))
	return [16]byte(sum[:16])
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

// Bounds of bcrypt's cost, the logarithm of its rounds. The upper one is what costOf leaves room for.
const (
	minBcrypt     = 4
	defaultBcrypt = 10
	maxBcrypt     = 31
)

func bcryptFunc(draw func() [16]byte) function.Function {
	return function.New(&function.Spec{
		Params:   []function.Parameter{{Name: "str", Type: cty.String}},
		VarParam: &function.Parameter{Name: "cost", Type: cty.Number},
		Type:     function.StaticReturnType(cty.String), RefineResult: notNull,
		Impl: func(args []cty.Value, _ cty.Type) (cty.Value, error) {
			cost, err := bcryptRounds(args)
			if err != nil {
				return cty.UnknownVal(cty.String), err
			}
			hash, err := hashPassword([]byte(args[0].AsString()), cost, draw())
			if err != nil {
				return cty.UnknownVal(cty.String), function.NewArgError(0, err)
			}
			return cty.StringVal(hash), nil
		},
	})
}

// bcryptRounds reads the cost among the arguments of bcrypt.
func bcryptRounds(args []cty.Value) (int, error) {
	switch len(args) {
	case 1:
		return defaultBcrypt, nil
	case 2:
	default:
		return 0, fmt.Errorf("bcrypt() takes no more than two arguments")
	}
	f := args[1].AsBigFloat()
	cost, _ := f.Int64()
	if !f.IsInt() || cost > maxBcrypt {
		return 0, function.NewArgErrorf(1, "the cost must be a whole number up to %d", maxBcrypt)
	}
	if cost < minBcrypt {
		return defaultBcrypt, nil // as bcrypt's reference does it
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

// hashPassword is bcrypt with a salt that is given, which golang.org/x/crypto/bcrypt does not take:
// https://www.usenix.org/legacy/event/usenix99/provos/provos.pdf
func hashPassword(password []byte, cost int, salt [16]byte) (string, error) {
	if len(password) > 72 {
		return "", fmt.Errorf("bcrypt: password length exceeds 72 bytes")
	}
	key := append(slices.Clone(password), 0)
	c, err := blowfish.NewSaltedCipher(key, salt[:])
	if err != nil {
		return "", err
	}
	for range 1 << cost {
		blowfish.ExpandKey(key, c)
		blowfish.ExpandKey(salt[:], c)
	}
	text := []byte("OrpheanBeholderScryDoubt")
	for block := range slices.Chunk(text, blowfish.BlockSize) {
		for range 64 {
			c.Encrypt(block, block)
		}
	}
	encoding := base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding)
	// The last byte is left out, as it always was.
	return fmt.Sprintf("$2a$%02d$%s%s", cost, encoding.EncodeToString(salt[:]), encoding.EncodeToString(text[:len(text)-1])), nil
}
