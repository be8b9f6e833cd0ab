package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/addrs"
	"github.com/hykube/hykube/internal/cli/namespace"
	"github.com/hykube/hykube/internal/cli/objects"
	"github.com/hykube/hykube/internal/cli/operation"
	"github.com/hykube/hykube/internal/cli/planapi"
	"github.com/hykube/hykube/internal/cli/printer"
	"github.com/hykube/hykube/internal/cli/record"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/diff"
)

// addModules adds the Modules with the mode Observe. It omits them for a user who may not list Modules.
func (c *census) addModules(ctx context.Context, s *session.Session) error {
	all, err := objects.Modules(ctx, s, c.namespace)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return nil
	}
	for i := range all {
		if all[i].Spec.Mode == v1alpha1.ModuleObserve {
			c.observed = append(c.observed, "module/"+all[i].Name)
		}
	}
	return err
}

// This file counts the objects of a namespace by their condition.

// overview prints the overview of a namespace.
func (o *statusOptions) overview(ctx context.Context) error {
	c, err := o.count(ctx)
	if err != nil || c == nil {
		return err
	}
	if c.all == 0 && len(c.denied)+len(c.orphans) == 0 {
		fmt.Fprintln(o.Out, namespace.NoResources(ctx, o.Session, o.Namespace))
	} else {
		fmt.Fprintf(o.Out, "%s %s\n", o.Style.Bold("Namespace "+o.Namespace+":"), byMode(c.modes))
	}
	if err := c.writeReasons(o.Out); err != nil {
		return err
	}
	objects.PrintDenied(o.Session, o.Out, c.denied, "counted")
	printer.List(o.Session.Terminal, o.Out, "\nNeed attention:", attentionLines(c.attention))
	printer.List(o.Session.Terminal, o.Out, "\nStacks that need attention:", texts(c.stacks))
	printer.List(o.Session.Terminal, o.Out, "\nModules with spec.mode Observe, whose resources no plan changes:",
		c.observed)
	printer.List(o.Session.Terminal, o.Out,
		"\nRecords without an object, which no plan changes or destroys; to forget one: kubectl hykube resolve KIND/NAME --forget, which also prints the command to import it again:", texts(c.orphans))
	printer.List(o.Session.Terminal, o.Out,
		"\nDrifted at the last read; kubectl hykube plan shows the changes that correct the drift:", texts(c.drifted))
	printer.List(o.Session.Terminal, o.Out,
		"\nOther objects that are being deleted; the server removes them when no resource needs them, and kubectl hykube undelete keeps them:", operation.Leaving(ctx, o.Session, o.Namespace))
	if record.NamespaceTerminates(ctx, o.Session, o.Namespace) {
		fmt.Fprintf(o.Out, "\nThe namespace is being deleted. To keep it with all that is in it: kubectl hykube undelete namespace/%s\n"+
			"To destroy its infrastructure, and then the namespace: kubectl hykube destroy --all -n %s\n", o.Namespace,
			o.Namespace)
	}
	if n := c.modes[v1alpha1.ModeManaged]; n > 0 && c.allApplied() {
		unread := "1 resource was"
		if n > 1 {
			unread = diff.Count(n) + " resources were"
		}
		fmt.Fprintf(o.Out, "\nNo object changed since the last apply. %s not read. kubectl hykube plan looks for changes of the ConfigMaps, Secrets, providers and other resources that they use; --refresh=All looks for drift.\n",
			unread)
	}
	return o.lastPlans(c.plans)
}

// count counts the objects of a namespace and lists its plans. It returns nil if the namespace has just been emptied.
func (o *statusOptions) count(ctx context.Context) (*census, error) {
	plans, err := planapi.List(ctx, o.Session, o.Namespace)
	if err != nil {
		return nil, err
	}
	c := &census{namespace: o.Namespace, plans: plans, reasons: map[string]int{}, modes: map[v1alpha1.Mode]int{},
		planned: map[string]map[string]int{}}
	if err := c.addStacks(ctx, o.Session); err != nil {
		return nil, err
	}
	if err := c.addModules(ctx, o.Session); err != nil {
		return nil, err
	}
	var failed error
	unsettled := objects.NewUnsettled(o.Session)
	c.denied, err = objects.EachResource(ctx, o.Session, o.kinds, o.Namespace, "",
		func(k session.Kind, u *unstructured.Unstructured) {
			open := false
			if failed == nil {
				open, failed = unsettled.Has(ctx, u)
			}
			c.add(k, u, open)
		})
	if err = cmp.Or(err, failed); err != nil {
		return nil, err
	}
	orphans, err := objects.WithoutObject(ctx, o.Session, o.Namespace)
	if err != nil {
		return nil, err
	}
	for _, r := range orphans {
		c.orphans = append(c.orphans, noted{Kind: r.Object.Kind, Name: r.Object.Name,
			Message: printer.Flat("the ID " + cmp.Or(r.Status.ID, "is not known"))})
	}
	if c.all+len(plans)+len(orphans)+len(c.stacks) == 0 {
		if o.all {
			return nil, nil
		}
		if err := namespace.NotFound(ctx, o.Session, o.Namespace); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(c.attention, noted.compare)
	slices.SortFunc(c.stacks, noted.compare)
	slices.SortFunc(c.drifted, noted.compare)
	return c, nil
}

// census counts the objects of a namespace.
type census struct {
	namespace string
	all       int
	modes     map[v1alpha1.Mode]int
	reasons   map[string]int
	// attention and drifted list the objects that need the user's attention, with the messages of their conditions.
	attention, drifted []noted
	// orphans lists the records whose object does not exist.
	orphans []noted
	// stacks lists the stacks that need attention. waiting are the plans of stacks that wait, and planned counts
	// the objects that they plan, by reason and text.
	stacks []noted
	// observed are the names of the Modules with the mode Observe.
	observed []string
	waiting  []waitingPlan
	planned  map[string]map[string]int
	plans    []v1alpha1.Plan
	// denied are the kinds that the user may not list.
	denied []session.Kind
}

// noted is an object with the reason and the message of a condition.
type noted struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

func (n noted) text() string {
	if n.Reason == "" {
		return fmt.Sprintf("%s/%s: %s", n.Kind, n.Name, n.Message)
	}
	return fmt.Sprintf("%s/%s: %s: %s", n.Kind, n.Name, n.Reason, n.Message)
}

func (n noted) compare(other noted) int {
	return cmp.Or(cmp.Compare(n.Kind, other.Kind), v1alpha1.CompareNames(n.Name, other.Name),
		cmp.Compare(n.Message, other.Message))
}

// maxAlike is the maximum number of objects that have a line each although their messages differ only in numbers, such
// as a time.
const maxAlike = 3

// texts returns a line for each object, and one line for many objects whose messages are alike.
func texts(all []noted) []string {
	type alike struct{ kind, reason, message string }
	key := func(n noted) alike {
		message := strings.ReplaceAll(n.Message, n.Name, "")
		return alike{n.Kind, n.Reason, strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, message)}
	}
	groups := map[alike][]noted{}
	for _, n := range all {
		groups[key(n)] = append(groups[key(n)], n)
	}
	var out []string
	for _, n := range all {
		switch group := groups[key(n)]; {
		case len(group) <= maxAlike:
			out = append(out, n.text())
		case group[0] == n:
			out = append(out, fmt.Sprintf("%s The same holds for %d other objects, from %s/%s to %s/%s.", n.text(),
				len(group)-1,
				n.Kind, group[1].Name, n.Kind, group[len(group)-1].Name))
		}
	}
	return out
}

// attentionLines returns a line for each object that needs attention. Many skipped objects share the last line, because
// another object has the cause.
func attentionLines(all []noted) []string {
	isSkipped := func(n noted) bool { return n.Reason == v1alpha1.ReasonSkipped }
	var skipped []noted
	for _, n := range all {
		if isSkipped(n) {
			skipped = append(skipped, n)
		}
	}
	failed := slices.DeleteFunc(slices.Clone(all), isSkipped)
	if len(skipped) <= printer.MaxSkipped {
		return texts(append(failed, skipped...))
	}
	last := fmt.Sprintf("%s: %s, such as %s/%s: %s", diff.Plural(len(skipped), "object"), v1alpha1.ReasonSkipped,
		skipped[0].Kind, skipped[0].Name, skipped[0].Message)
	lines := texts(failed)
	if len(lines) < printer.Listed {
		return append(lines, last)
	}
	return slices.Insert(lines, printer.Listed-1, last) // the list is cut
}

// document returns the census as an item of -o json.
func (c *census) document() map[string]any {
	slices.SortFunc(c.plans, func(a, b v1alpha1.Plan) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	modes := map[string]int{}
	for m, n := range c.modes {
		modes[string(m)] = n
	}
	plans := make([]map[string]any, 0, len(c.plans))
	for i := range c.plans {
		p := &c.plans[i]
		plans = append(plans, map[string]any{"name": p.Name, "state": planapi.State(p),
			"changes": planapi.Summary(p.Status.Summary), "createdAt": p.CreationTimestamp})
	}
	denied := []string{}
	for _, k := range c.denied {
		denied = append(denied, k.GVR.GroupResource().String())
	}
	slices.Sort(denied)
	return map[string]any{
		"namespace": c.namespace, "modes": modes, "reasons": c.reasons, "notListed": denied, "plans": plans,
		"attention": append([]noted{}, c.attention...), "stacks": append([]noted{}, c.stacks...),
		"drifted": append([]noted{}, c.drifted...), "withoutObject": append([]noted{}, c.orphans...),
	}
}

// add counts an object. open is true if its create has an unknown outcome, or its record is lost.
func (c *census) add(k session.Kind, u *unstructured.Unstructured, open bool) {
	c.all++
	m, _ := v1alpha1.ParseKind(k.Kind)
	c.modes[m]++
	reason, message, good := objects.Readiness(u)
	if reason = objects.AwaitedEnd(u, reason); open && good { // no plan has found it yet
		reason, message, good = v1alpha1.ReasonRecordLost, "a plan applied it, and the server has no record of it",
			false
	}
	c.reasons[reason]++
	c.notePlan(reason, u.GetLabels())
	switch drift := condition.Find(u, v1alpha1.ConditionDrifted); {
	case !good && !waits[reason]:
		c.attention = append(c.attention, noted{k.Kind, u.GetName(), reason, printer.Flat(message)})
	case drift["status"] == string(metav1.ConditionTrue):
		message, _ := drift["message"].(string)
		c.drifted = append(c.drifted, noted{Kind: k.Kind, Name: u.GetName(), Message: printer.Flat(message)})
	}
}

// allApplied reports whether everything is applied and nothing has drifted.
func (c *census) allApplied() bool {
	return c.reasons[v1alpha1.ReasonApplied] == c.modes[v1alpha1.ModeManaged]+c.modes[v1alpha1.ModeData]+
		c.modes[v1alpha1.ModeAction] && len(c.drifted) == 0
}

// writeReasons prints the number of objects per reason, the most frequent first.
func (c *census) writeReasons(to io.Writer) error {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, k := range slices.SortedFunc(maps.Keys(c.reasons),
		func(a, b string) int { return cmp.Or(c.reasons[b]-c.reasons[a], cmp.Compare(a, b)) }) {
		fmt.Fprintf(w, "\t%s\t  %s\n", diff.Count(c.reasons[k]), c.wordsOf(k))
	}
	return w.Flush()
}

// everyNamespace prints the overview of each namespace with resources or plans.
func (o *statusOptions) everyNamespace(ctx context.Context) error {
	plans, err := planapi.List(ctx, o.Session, "")
	if err != nil {
		return err
	}
	kinds, err := o.ResourceKinds(ctx)
	if err != nil {
		return err
	}
	holding := map[string]bool{}
	for i := range plans {
		holding[plans[i].Namespace] = true
	}
	used := map[session.Kind]bool{}
	denied, err := objects.EachObject(ctx, o.Session, kinds, "", "",
		func(k session.Kind, u *unstructured.Unstructured) { holding[u.GetNamespace()], used[k] = true, true })
	if err != nil {
		return err
	}
	err = objects.EachSet(ctx, o.Session, kinds, "", func(k session.Kind, set *v1alpha1.ResourceSet) error {
		holding[set.Namespace], used[k] = true, true
		return nil
	})
	if err != nil {
		return err
	}
	err = objects.EachInModules(ctx, o.Session, kinds, "",
		func(k session.Kind, u *unstructured.Unstructured) { holding[u.GetNamespace()], used[k] = true, true })
	if err != nil {
		return err
	}
	orphans, err := objects.WithoutObject(ctx, o.Session, "")
	if err != nil {
		return err
	}
	for _, r := range orphans {
		holding[r.Namespace] = true
	}
	for _, k := range denied { // the user may have rights in single namespaces
		used[k] = true
	}
	o.kinds = slices.DeleteFunc(kinds, func(k session.Kind) bool { return !used[k] })
	if len(holding) == 0 && len(denied) == 0 && o.output == "" {
		fmt.Fprintln(o.Out, "No namespace has resources or plans.")
	}
	defer func(namespace string) { o.Namespace = namespace }(o.Namespace)
	items := []map[string]any{}
	for i, name := range slices.Sorted(maps.Keys(holding)) {
		if o.output != "" {
			o.Namespace = name
			c, err := o.count(ctx)
			if err != nil {
				return fmt.Errorf("namespace %q: %w", name, err)
			}
			if c != nil {
				items = append(items, c.document())
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(o.Out)
		}
		o.Namespace = name
		if err := o.overview(ctx); err != nil {
			return fmt.Errorf("namespace %q: %w", name, err)
		}
	}
	o.Namespace = ""
	if o.output != "" {
		return o.printItems(items)
	}
	objects.PrintDenied(o.Session, o.Out, denied, "counted")
	return nil
}

// printItems prints the documents of namespaces.
func (o *statusOptions) printItems(items []map[string]any) error {
	return printer.JSON(o.Terminal, map[string]any{"items": items}, o.output)
}

// byMode formats counts by mode: "3 resources, 1 data source".
func byMode(n map[v1alpha1.Mode]int) string {
	parts := []string{diff.Plural(n[v1alpha1.ModeManaged], "resource")}
	for _, m := range []v1alpha1.Mode{v1alpha1.ModeData, v1alpha1.ModeEphemeral, v1alpha1.ModeAction} {
		if n[m] > 0 {
			parts = append(parts, diff.Plural(n[m], addrs.ModeWord(m)))
		}
	}
	return strings.Join(parts, ", ")
}

func (o *statusOptions) lastPlans(plans []v1alpha1.Plan) error {
	if len(plans) == 0 {
		return nil
	}
	slices.SortFunc(plans, func(a, b v1alpha1.Plan) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	fmt.Fprintln(o.Out, o.Style.Bold("\nLast plans:"))
	w := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', 0)
	for _, p := range plans[:min(8, len(plans))] {
		who := ""
		if p.Status.RequestedBy != nil {
			who = p.Status.RequestedBy.Username
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s ago\n", p.Name, planapi.State(&p), planapi.Summary(p.Status.Summary), who,
			printer.Age(p.CreationTimestamp.Time))
	}
	return w.Flush()
}
