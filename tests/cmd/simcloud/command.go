package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/tests/simcloud"
)

// options are the options of every verb except serve.
type options struct {
	address, token, output string
	out                    io.Writer
}

func newCommand(getenv func(string) string, out, errOut io.Writer) *cobra.Command {
	o := &options{out: out}
	c := &cobra.Command{
		Use:   "simcloud",
		Short: "A simulated cloud with latency, throttling, eventual consistency and faults on command",
		Example: `  simcloud serve --listen 127.0.0.1:8600 &
  export SIMCLOUD_ADDRESS=http://127.0.0.1:8600
  simcloud drift network main tags.team=rogue
  simcloud fault --kind instance --op create --when after --action close --count 1
  simcloud calls --op create`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	c.SetOut(out)
	c.SetErr(errOut)
	c.PersistentFlags().StringVar(&o.address, "address", getenv("SIMCLOUD_ADDRESS"), "address of the cloud (default: $SIMCLOUD_ADDRESS)")
	c.PersistentFlags().StringVar(&o.token, "token", "", "token of the cloud (default: $SIMCLOUD_TOKEN)")
	c.PersistentFlags().StringVarP(&o.output, "output", "o", "", `"json" for scripts; tables otherwise`)
	c.PersistentPreRunE = func(*cobra.Command, []string) error {
		if o.token == "" { // not the flag's default, so that help never shows it
			o.token = getenv("SIMCLOUD_TOKEN")
		}
		if o.output != "" && o.output != "json" {
			return fmt.Errorf(`no output %q; there is "json"`, o.output)
		}
		return nil
	}
	c.AddCommand(serveCommand(o, errOut), createCommand(o), driftCommand(o), deleteCommand(o), faultCommand(o), latencyCommand(o), setCommand(o),
		callsCommand(o), statsCommand(o), listCommand(o), resetCommand(o))
	return c
}

func (o *options) client() (*simcloud.Client, error) {
	if o.address == "" {
		return nil, errors.New("no address of a cloud; set --address or SIMCLOUD_ADDRESS")
	}
	return simcloud.NewClient(o.address, o.token), nil
}

// withClient returns the function of a verb that calls the cloud.
func (o *options) withClient(run func(ctx context.Context, c *simcloud.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := o.client()
		if err != nil {
			return err
		}
		return run(cmd.Context(), c, args)
	}
}

func (o *options) json(v any) error {
	e := json.NewEncoder(o.out)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// fields parses arguments of the form "name=value". A value is JSON if it is valid JSON, and a string otherwise.
// "name-" removes the field. "tags.team=x" changes one key of the map that object has.
func fields(args []string, object map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, arg := range args {
		name, value, set := strings.Cut(arg, "=")
		var v any
		switch {
		case set && json.Unmarshal([]byte(value), &v) == nil:
		case set:
			v = value
		case strings.HasSuffix(name, "-"):
			name = strings.TrimSuffix(name, "-")
		default:
			return nil, fmt.Errorf("argument %q is neither FIELD=VALUE nor FIELD-", arg)
		}
		field, key, nested := strings.Cut(name, ".")
		if field == "" || nested && key == "" {
			return nil, fmt.Errorf("argument %q names no field", arg)
		}
		if !nested {
			out[field] = v
			continue
		}
		m, ok := out[field].(map[string]any)
		if !ok {
			m = map[string]any{}
			if now, ok := object[field].(map[string]any); ok {
				maps.Copy(m, now)
			}
		}
		if v == nil {
			delete(m, key)
		} else {
			m[key] = v
		}
		out[field] = m
	}
	return out, nil
}
