package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/tests/simcloud"
)

func createCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:     "create KIND FIELD=VALUE ...",
		Short:   "Make an object as somebody would by hand, and print its id",
		Example: "  simcloud create network name=main cidr=10.0.0.0/16",
		Args:    cobra.MinimumNArgs(2),
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, args []string) error {
			wanted, err := fields(args[1:], nil)
			if err != nil {
				return err
			}
			made, err := c.Create(ctx, args[0], wanted)
			switch {
			case err != nil:
				return err
			case o.output == "json":
				return o.json(made)
			}
			fmt.Fprintln(o.out, made.ID())
			return nil
		}),
	}
}

func driftCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "drift KIND NAME|ID FIELD=VALUE ...",
		Short: "Change an object behind everybody's back",
		Long: "Change fields of an object without a call of the API. A VALUE is JSON when it reads as such, and a string\n" +
			"otherwise; MAP.KEY=VALUE changes one key of a map; FIELD- removes a field. A plan that refreshes finds it.",
		Example: "  simcloud drift network main tags.team=rogue\n  simcloud drift instance web-1 size=huge status=stopped",
		Args:    cobra.MinimumNArgs(3),
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, args []string) error {
			now, err := c.Find(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			change, err := fields(args[2:], now)
			if err != nil {
				return err
			}
			after, err := c.Drift(ctx, args[0], now.ID(), change)
			if err != nil {
				return err
			}
			if o.output == "json" {
				return o.json(after)
			}
			for _, name := range slices.Sorted(maps.Keys(change)) {
				fmt.Fprintf(o.out, "%s/%s %s: %s -> %s\n", args[0], after.Name(), name, compact(now[name]), compact(after[name]))
			}
			return nil
		}),
	}
}

func deleteCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "delete KIND NAME|ID",
		Short: "Delete an object behind everybody's back, also one that others depend on",
		Args:  cobra.ExactArgs(2),
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, args []string) error {
			if err := c.Destroy(ctx, args[0], args[1]); err != nil {
				return err
			}
			fmt.Fprintf(o.out, "%s/%s deleted\n", args[0], args[1])
			return nil
		}),
	}
}

func faultCommand(o *options) *cobra.Command {
	var (
		f                 simcloud.Fault
		list, clearAll    bool
		remove            int64
		delay, retryAfter time.Duration
	)
	c := &cobra.Command{
		Use:   "fault",
		Short: "Make calls fail: before or after their effect, with a status, a closed connection or a hang",
		Example: `  simcloud fault --kind instance --op create --name 'web-*' --status 503 --count 2
  simcloud fault --kind network --op create --when after --action close --count 1   # a lost answer
  simcloud fault --kind instance --op create --action fail --count 1                # ends in status "failed"
  simcloud fault --list
  simcloud fault --clear`,
		Args: cobra.NoArgs,
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, _ []string) error {
			switch {
			case list:
				all, err := c.Faults(ctx)
				if err != nil {
					return err
				}
				return o.json(all)
			case clearAll, remove != 0:
				return c.RemoveFault(ctx, remove)
			}
			f.Delay, f.RetryAfter = simcloud.Duration(delay), simcloud.Duration(retryAfter)
			made, err := c.Fault(ctx, f)
			if err != nil {
				return err
			}
			if o.output == "json" {
				return o.json(made)
			}
			fmt.Fprintf(o.out, "fault/%d created\n", made.ID)
			return nil
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.Kind, "kind", "", "kind to strike (default: any)")
	fl.StringVar(&f.Op, "op", "", "operation to strike: "+strings.Join(simcloud.OpNames(), ", ")+" (default: any)")
	fl.StringVar(&f.Name, "name", "", "pattern of the object's name, such as 'web-*' (default: any)")
	fl.StringVar(&f.Object, "id", "", "id of the object (default: any)")
	fl.IntVar(&f.Skip, "skip", 0, "matching calls that pass first")
	fl.IntVar(&f.Count, "count", 1, "calls to strike; 0 strikes until the fault is removed")
	fl.StringVar(&f.When, "when", simcloud.Before, "before or after the call has its effect")
	fl.StringVar(&f.Action, "action", simcloud.ActionStatus, "status, close, hang, delay or fail")
	fl.IntVar(&f.Status, "status", 0, "HTTP status of action status (default: 500)")
	fl.StringVar(&f.Message, "message", "", "message that goes with the status")
	fl.DurationVar(&delay, "delay", 0, "how long to delay or, at most, to hang")
	fl.DurationVar(&retryAfter, "retry-after", 0, "when to come back, told with the status")
	fl.BoolVar(&list, "list", false, "list the faults")
	fl.BoolVar(&clearAll, "clear", false, "remove all faults")
	fl.Int64Var(&remove, "remove", 0, "remove the fault with this id")
	c.MarkFlagsMutuallyExclusive("list", "clear", "remove")
	return c
}

func latencyCommand(o *options) *cobra.Command {
	var kind, op string
	var jitter time.Duration
	c := &cobra.Command{
		Use:     "latency DELAY",
		Short:   "Delay calls; 0 takes it back",
		Example: "  simcloud latency 200ms --jitter 50ms --kind instance --op create",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			delay, err := time.ParseDuration(args[0])
			if err != nil {
				return fmt.Errorf("read delay: %w", err)
			}
			return change(o, cmd, func(s *simcloud.Settings) {
				s.SetLatency(simcloud.Latency{Kind: kind, Op: op, Delay: simcloud.Duration(delay), Jitter: simcloud.Duration(jitter)})
			})
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "kind to delay (default: any)")
	c.Flags().StringVar(&op, "op", "", "operation to delay (default: any)")
	c.Flags().DurationVar(&jitter, "jitter", 0, "random part added to the delay")
	return c
}

func setCommand(o *options) *cobra.Command {
	var (
		rate                float64
		burst               int
		quotas              map[string]int
		create, update, del time.Duration
		provisioning        map[string]string
		ignoreTokens        bool
	)
	c := &cobra.Command{
		Use:   "set",
		Short: "Set throttling, quotas, consistency and provisioning times; show them all",
		Example: `  simcloud set --rate 20 --burst 5
  simcloud set --quota instance=3 --late-create 500ms --provisioning instance=2s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set := cmd.Flags().Changed
			times := map[string]simcloud.Duration{}
			for kind, v := range provisioning {
				d, err := time.ParseDuration(v)
				if err != nil {
					return fmt.Errorf("read provisioning time of %s: %w", kind, err)
				}
				times[kind] = simcloud.Duration(d)
			}
			return change(o, cmd, func(s *simcloud.Settings) {
				if set("rate") {
					s.Throttle.RatePerSecond = rate
				}
				if set("burst") {
					s.Throttle.Burst = burst
				}
				if set("quota") {
					s.Quotas = quotas
				}
				if set("late-create") {
					s.Consistency.Create = simcloud.Duration(create)
				}
				if set("late-update") {
					s.Consistency.Update = simcloud.Duration(update)
				}
				if set("late-delete") {
					s.Consistency.Delete = simcloud.Duration(del)
				}
				if set("provisioning") {
					s.Provisioning = times
				}
				if set("ignore-client-tokens") {
					s.IgnoreClientTokens = ignoreTokens
				}
			})
		},
	}
	f := c.Flags()
	f.Float64Var(&rate, "rate", 0, "calls per second before 429; 0 means no limit")
	f.IntVar(&burst, "burst", 0, "calls that may come at once within the rate")
	f.StringToIntVar(&quotas, "quota", nil, "KIND=N: most objects of a kind; replaces all quotas")
	f.DurationVar(&create, "late-create", 0, "how long a new object is not found")
	f.DurationVar(&update, "late-update", 0, "how long the former version is read")
	f.DurationVar(&del, "late-delete", 0, "how long a deleted object is read")
	f.StringToStringVar(&provisioning, "provisioning", nil, "KIND=DURATION: how long new objects are pending; replaces all")
	f.BoolVar(&ignoreTokens, "ignore-client-tokens", false, "make a second object when a create comes twice with one token")
	return c
}

// change changes the settings and prints the new ones.
func change(o *options, cmd *cobra.Command, edit func(*simcloud.Settings)) error {
	c, err := o.client()
	if err != nil {
		return err
	}
	if err := c.Change(cmd.Context(), edit); err != nil {
		return err
	}
	now, err := c.Settings(cmd.Context())
	if err != nil {
		return err
	}
	return o.json(now)
}

func callsCommand(o *options) *cobra.Command {
	var f simcloud.Filter
	var count bool
	c := &cobra.Command{
		Use:     "calls",
		Short:   "List the calls that were made, or count them",
		Example: "  simcloud calls --kind instance --op create --count",
		Args:    cobra.NoArgs,
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, _ []string) error {
			if count {
				n, err := c.CountCalls(ctx, f)
				if err == nil {
					fmt.Fprintln(o.out, n)
				}
				return err
			}
			calls, err := c.Calls(ctx, f)
			if err != nil {
				return err
			}
			if o.output == "json" {
				return o.json(calls)
			}
			w := tabwriter.NewWriter(o.out, 0, 8, 3, ' ', 0)
			fmt.Fprintln(w, "ID\tTIME\tOP\tKIND\tNAME\tOBJECT\tSTATUS\tDURATION\tERROR")
			for _, x := range calls {
				status := strconv.Itoa(x.Status)
				switch {
				case !x.Done:
					status = "under way"
				case x.Status == 0:
					status = "closed"
				}
				fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", x.ID, x.Time.Format("15:04:05.000"), x.Op, x.Kind,
					cmp.Or(x.Name, "-"), cmp.Or(x.Object, "-"), status, time.Duration(x.Duration).Round(time.Microsecond), x.Error)
			}
			return w.Flush()
		}),
	}
	fl := c.Flags()
	fl.StringVar(&f.Kind, "kind", "", "only this kind")
	fl.StringVar(&f.Op, "op", "", "only this operation")
	fl.StringVar(&f.Name, "name", "", "only names that match this pattern")
	fl.StringVar(&f.Object, "id", "", "only this object")
	fl.IntVar(&f.Status, "status", 0, "only this HTTP status; -1 for calls without an answer")
	fl.BoolVar(&f.Effect, "effect", false, "only calls that changed something")
	fl.BoolVar(&f.Pending, "pending", false, "only calls that are under way")
	fl.Int64Var(&f.Since, "since", 0, "only calls after the one with this id")
	fl.BoolVar(&count, "count", false, "print their number")
	return c
}

func statsCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "stats", Short: "Sum up calls and objects", Args: cobra.NoArgs,
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, _ []string) error {
			s, err := c.Stats(ctx)
			if err != nil {
				return err
			}
			return o.json(s)
		}),
	}
}

func listCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "list [KIND]", Short: "List the objects that exist, of one kind or all", Args: cobra.MaximumNArgs(1),
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, args []string) error {
			if len(args) == 0 {
				args = simcloud.KindNames()
			}
			all, err := map[string][]simcloud.Object{}, error(nil)
			for _, kind := range args {
				if all[kind], err = c.Objects(ctx, kind, ""); err != nil {
					return err
				}
			}
			if o.output == "json" {
				return o.json(all)
			}
			w := tabwriter.NewWriter(o.out, 0, 8, 3, ' ', 0)
			fmt.Fprintln(w, "KIND\tID\tNAME\tFIELDS")
			for _, kind := range args {
				for _, x := range all[kind] {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", kind, x.ID(), x.Name(), summary(x))
				}
			}
			return w.Flush()
		}),
	}
}

func resetCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "reset", Short: "Forget objects, calls, faults and settings", Args: cobra.NoArgs,
		RunE: o.withClient(func(ctx context.Context, c *simcloud.Client, _ []string) error {
			return c.Reset(ctx)
		}),
	}
}

// summary formats an object's own fields on one line. The cloud never returns a token's secret here.
func summary(x simcloud.Object) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(x)) {
		switch name {
		case "id", "name", "revision", "created_at", "updated_at":
		default:
			parts = append(parts, name+"="+compact(x[name]))
		}
	}
	return strings.Join(parts, " ")
}

func compact(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
