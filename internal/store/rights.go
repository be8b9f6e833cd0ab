package store

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Verbs that the server checks. VerbUse allows plans and queries to use a ProviderConfig.
const (
	VerbGet     = "get"
	VerbCreate  = "create"
	VerbUpdate  = "update"
	VerbDelete  = "delete"
	VerbUse     = "use"
	VerbApprove = "approve"
)

// maxNamed bounds the checks of single objects for one verb and resource in one namespace. It applies only to a user
// without the right to all of these objects.
const maxNamed = 1000

// Right is a verb on a resource of the API, or on one object of the resource.
type Right struct {
	Verb, Namespace, Group string
	// Resource is the plural of the resource, such as "secrets". It may have a subresource, as in "sim-networks/state".
	Resource string
	// Name is the name of one object. It is empty for all objects of the namespace.
	Name string
	// Unnamed is true for the right to an object that manages a resource with the ID or identity of an import. Messages
	// name neither the object nor its namespace, because the user may not be able to read it.
	Unnamed bool
}

// UseOf returns the right to use a ProviderConfig. An empty name means all ProviderConfigs of the namespace.
func UseOf(namespace, name string) Right {
	return Right{Verb: VerbUse, Namespace: namespace, Group: v1alpha1.GroupName, Resource: "providerconfigs",
		Name: name}
}

// WriteOf returns the rights to write the ConfigMap or Secret of a name; nil for an empty name.
func WriteOf(namespace, resource, name string) []Right {
	if name == "" {
		return nil
	}
	return []Right{{Verb: VerbCreate, Namespace: namespace, Resource: resource},
		{Verb: VerbUpdate, Namespace: namespace, Resource: resource, Name: name}}
}

// StartsWorkflows returns the right to start workflows on a task queue, in the Temporal namespace of a namespace.
func StartsWorkflows(namespace, queue string) Right {
	return Right{Verb: VerbCreate, Namespace: namespace, Group: v1alpha1.GroupName, Resource: "workflows", Name: queue}
}

// Target returns RESOURCE[.GROUP][/SUBRESOURCE], the form that kubectl auth can-i accepts.
func (r Right) Target() string {
	resource, sub, isSub := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		resource += "." + r.Group
	}
	if isSub {
		resource += "/" + sub
	}
	return resource
}

// String returns the verb and the target. For VerbUse, it returns the name instead of the target, since each
// ProviderConfig needs a right of its own.
func (r Right) String() string {
	if r.Verb == VerbUse {
		return fmt.Sprintf("%s the ProviderConfig %q", r.Verb, r.Name)
	}
	text := r.Verb + " " + r.Target()
	if r.Unnamed {
		text += " on another object that manages a resource with the same ID or identity"
	}
	return text
}

// Asker checks the rights of one user. It first checks the right to all objects of a namespace. It caches each answer.
type Asker struct {
	Access Access
	Who    v1alpha1.Identity

	mu      sync.Mutex
	answers map[Right]bool
	// named counts the checks of single objects. Its key is the right to all objects.
	named map[Right]int
}

// May reports whether the user has a right. After maxNamed checks of single objects for one verb and resource, it
// reports false without a check.
func (a *Asker) May(ctx context.Context, r Right) (bool, error) {
	all := r
	all.Name = ""
	ok, err := a.ask(ctx, all)
	if ok || err != nil || r.Name == "" {
		return ok, err
	}
	return a.ask(ctx, r)
}

func (a *Asker) ask(ctx context.Context, r Right) (bool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if ok, known := a.answers[r]; known {
		return ok, nil
	}
	if r.Name != "" {
		all := r
		all.Name = ""
		if a.named[all] >= maxNamed {
			return false, nil
		}
		if a.named == nil {
			a.named = map[Right]int{}
		}
		a.named[all]++
	}
	ok, err := a.Access.May(ctx, a.Who, r)
	if err != nil {
		return false, err
	}
	if a.answers == nil {
		a.answers = map[Right]bool{}
	}
	a.answers[r] = ok
	return ok, nil
}

// Missing returns the rights that the user lacks, sorted and without duplicates. It returns each verb and resource
// once, and each ProviderConfig once.
func (a *Asker) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	return a.MissingOf(ctx, EachRight(rights))
}

// EachRight returns rights in the form that MissingOf takes.
func EachRight(rights []Right) iter.Seq2[Right, error] {
	return func(yield func(Right, error) bool) {
		for _, r := range rights {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// MissingOf is Missing for many rights, which may be the same verb on many objects. No rights may be nil.
func (a *Asker) MissingOf(ctx context.Context, rights iter.Seq2[Right, error]) ([]Right, error) {
	if rights == nil {
		return nil, nil
	}
	var missing []Right
	seen := map[string]bool{}
	for r, err := range rights {
		if err != nil {
			return nil, err
		}
		all := r
		all.Name = ""
		if has, err := a.ask(ctx, all); err != nil {
			return nil, err
		} else if has {
			continue
		}
		key := r.Namespace + " " + r.String()
		if seen[key] {
			continue
		}
		ok, err := a.May(ctx, r)
		if err != nil {
			return nil, err
		}
		if !ok {
			seen[key] = true
			missing = append(missing, r)
		}
	}
	slices.SortFunc(missing, func(a, b Right) int { return strings.Compare(a.String(), b.String()) })
	return missing, nil
}

// NotInTokenFile says why a user whom the token file named has no rights any more.
func NotInTokenFile(who v1alpha1.Identity) string {
	if len(who.Through) > 0 {
		return "has no rights: the token file of the server names the user, or a user through whose worker it acted, no more"
	}
	return "has no rights: the token file of the server names the user no more"
}

// ListRights returns rights in one line, as in: create sim-networks.sim.hykube.io, update ... in the namespace "prod".
// All rights must be of one namespace, except those to unnamed objects, which it lists last.
func ListRights(rights []Right) string {
	var texts, unnamed []string
	namespace := ""
	for _, r := range rights {
		if r.Unnamed {
			unnamed = append(unnamed, r.String())
			continue
		}
		texts, namespace = append(texts, r.String()), r.Namespace
	}
	slices.Sort(unnamed)
	unnamed = slices.Compact(unnamed) // their number would reveal how many objects there are
	if len(texts) == 0 {
		return strings.Join(unnamed, ", ")
	}
	return strings.Join(append([]string{fmt.Sprintf("%s in the namespace %q", strings.Join(texts, ", "), namespace)},
		unnamed...), ", ")
}

// RightsOfNotification returns the rights that the author of a Notification needs: the server reads Secrets, plans and
// stacks for it, and sends their state to the receiver.
func RightsOfNotification(n *v1alpha1.Notification) []Right {
	needed := []Right{
		{Verb: VerbGet, Namespace: n.Namespace, Group: v1alpha1.GroupName, Resource: "plans"},
		{Verb: VerbGet, Namespace: n.Namespace, Group: v1alpha1.GroupName, Resource: "stacks"},
	}
	for _, k := range n.Spec.Webhook.SecretKeys() {
		needed = append(needed, Right{Verb: VerbGet, Namespace: n.Namespace, Resource: "secrets", Name: k.Name})
	}
	return needed
}
