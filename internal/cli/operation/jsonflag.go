package operation

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/jsonlines"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

// JSONHelp is the help text of the flag -o of verbs that ask.
const JSONHelp = "With --auto-approve, print lines of JSON, as terraform apply -json does"

// JSONFlag is the flag -o of the verbs that can print lines of JSON.
type JSONFlag struct{ output string }

// Add adds the flag.
func (l *JSONFlag) Add(cmd *cobra.Command, help string) {
	printer.OutputFlag(cmd, &l.output, help, "json")
}

// Validate returns an error if the flag is set and the verb asks a question, which needs its output.
func (l *JSONFlag) Validate(asks bool) error {
	if l.output != "" && asks {
		return errors.New("-o json does not ask: add --auto-approve")
	}
	return nil
}

// Run runs a verb, with lines of JSON if the user wants them.
func (l *JSONFlag) Run(ctx context.Context, s *session.Session, do func(context.Context) error) error {
	if l.output != "" {
		return inJSONLines(ctx, s, do)
	}
	return do(ctx)
}

// inJSONLines runs a verb that prints lines of JSON. The verb's other output goes to standard error.
func inJSONLines(ctx context.Context, s *session.Session, do func(context.Context) error) error {
	out, quiet := s.Terminal, *s.Terminal
	quiet.Out, quiet.Live, quiet.Style = out.ErrOut, false, diff.Style{}
	s.Terminal, s.Lines = &quiet, &jsonlines.Writer{W: out.Out}
	defer func() { s.Terminal, s.Lines = out, nil }()
	s.Lines.Version()
	err := do(ctx)
	s.Lines.Failed(err)
	return err
}
