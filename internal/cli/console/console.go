// Package console is the verb console, which evaluates expressions.
package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/exit"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/diff"
)

type consoleOptions struct {
	*session.Session
	expressions []string
}

// New returns the command console.
func New(s *session.Session) *cobra.Command {
	o := &consoleOptions{Session: s}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Evaluate expressions with the recorded values",
		Long: `Evaluate expressions with the recorded values.

The console reads an expression from each line and prints its value in HCL syntax. It has the references and functions of
expressions in a spec; you may leave out "${" and "}". It changes nothing.

Resources have the values of the last apply. The console prints "(known after apply)" for resources that no plan has
applied yet, and for timestamp(), uuid() and bcrypt(). It prints "(sensitive value)" for sensitive values. nonsensitive()
shows them to users with "get" on the subresource "state" of the kind, or on the Secret. The console opens no ephemeral
resources. You need "create" on evaluations, which the role "view" has, and "get" on each object that you refer to.

On a terminal, the arrow keys select earlier lines; "exit" and Ctrl-D end the console. In a pipe, the command exits
with 1 if an expression has an error. It ignores empty lines and lines that begin with #.`,
		Example: `  kubectl hykube console -n prod

  # one expression
  kubectl hykube console -e 'cidrsubnet(sim_network.main.cidr, 8, 2)'

  # in a pipe
  echo 'length(sim_network.main.tags)' | kubectl hykube console`,
		Args: session.NoNames("use -e EXPRESSION to evaluate one expression"),
		RunE: session.Run(o),
	}
	cmd.Flags().StringArrayVarP(&o.expressions, "expression", "e", nil,
		"Expression to evaluate instead of lines; repeatable")
	return cmd
}

func (o *consoleOptions) Run(ctx context.Context) error {
	if len(o.expressions) > 0 {
		return o.each(ctx, o.expressions)
	}
	in, ok := o.In.(*os.File)
	if ok && o.Ask && o.Live {
		return o.converse(ctx, in)
	}
	return o.pipe(ctx)
}

// each evaluates the expressions of -e.
func (o *consoleOptions) each(ctx context.Context, expressions []string) error {
	failed := false
	for _, text := range expressions {
		good, err := o.evaluate(ctx, text, 0)
		if err != nil {
			return err
		}
		failed = failed || !good
	}
	return failure(failed)
}

// pipe evaluates each line of standard input.
func (o *consoleOptions) pipe(ctx context.Context) error {
	failed := false
	for n := 1; ; n++ {
		text, err := o.Line()
		if errors.Is(err, io.EOF) {
			return failure(failed)
		}
		if err != nil {
			return fmt.Errorf("read standard input: %w", err)
		}
		if empty(text) {
			continue
		}
		if leaves(text) {
			return failure(failed)
		}
		good, err := o.evaluate(ctx, strings.TrimRight(text, "\r\n"), n)
		if err != nil {
			return err
		}
		failed = failed || !good
	}
}

func failure(failed bool) error {
	if failed {
		return exit.Silent(exit.Failed)
	}
	return nil
}

func empty(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || strings.HasPrefix(line, "#")
}

func leaves(line string) bool {
	line = strings.TrimSpace(line)
	return line == "exit" || line == "quit"
}

// converse evaluates expressions interactively.
func (o *consoleOptions) converse(ctx context.Context, in *os.File) error {
	prompt := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, o.Out}, "> ")
	for {
		text, err := o.readInput(in, prompt)
		switch {
		case errors.Is(err, io.EOF):
			fmt.Fprintln(o.Out)
			return nil
		case err != nil:
			return fmt.Errorf("read terminal: %w", err)
		case leaves(text):
			return nil
		case empty(text):
			continue
		}
		if _, err := o.evaluate(ctx, text, 0); err != nil {
			// Later expressions may succeed, such as after a restart of the server.
			exit.Print(o.ErrOut, err)
		}
	}
}

// readInput reads one line. The terminal is in raw mode only while readInput reads, so that Ctrl-C can interrupt an
// evaluation.
func (o *consoleOptions) readInput(in *os.File, prompt *term.Terminal) (string, error) {
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	if width, height := o.Size(); width > 0 {
		_ = prompt.SetSize(width, height)
	}
	return prompt.ReadLine()
}

// evaluate evaluates an expression on the server and prints the value. good is false if the expression has an error.
// line is the line number in a pipe, or 0.
func (o *consoleOptions) evaluate(ctx context.Context, expression string, line int) (good bool, err error) {
	in, out := &v1alpha1.Evaluation{Spec: v1alpha1.EvaluationSpec{Expression: expression}}, &v1alpha1.Evaluation{}
	in.Namespace = o.Namespace
	if err := o.Hykube.Post().Namespace(o.Namespace).Resource("evaluations").Body(in).Do(ctx).Into(out); err != nil {
		return false, fmt.Errorf("evaluate: %w", o.Explain(err))
	}
	good = true
	for _, d := range out.Status.Diagnostics {
		if d.Severity == v1alpha1.SeverityError {
			good = false
		}
		fmt.Fprintln(o.ErrOut, o.describe(d, line))
	}
	if good {
		fmt.Fprintln(o.Out, diff.Clean(out.Status.Value, true))
	}
	return good, nil
}

func (o *consoleOptions) describe(d v1alpha1.Diagnostic, line int) string {
	severity := strings.ToLower(string(d.Severity))
	if d.Severity == v1alpha1.SeverityError {
		severity = o.Style.Red(severity)
	}
	at := d.Attribute
	if line > 0 {
		at = strings.TrimSuffix(fmt.Sprintf("line %d, %s", line, at), ", ")
	}
	text := severity + ": "
	if at != "" {
		text += at + ": "
	}
	return text + diff.Clean(strings.TrimSpace(d.Summary+": "+d.Detail), true)
}
