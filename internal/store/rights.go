package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Verbs that the server asks about. Use is the right to let plans and queries use a ProviderConfig.
const (
	VerbGet     = "get"
	VerbCreate  = "create"
	VerbUpdate  = "update"
	VerbDelete  = "delete"
	VerbUse     = "use"
	VerbApprove = "approve"
)

// maxNamed bounds the questions about single objects of one kind, of a user who has no right to all of them.
const maxNamed = 1000

// Right is a verb on a resource of the API.
type Right struct {
	Verb, Namespace, Group string
	// Resource is a plural, such as "secrets", also with a subresource, such as "sim-networks/state".
	Resource string
	// Name is the name of one object; empty for all objects of the namespace.
	Name string
}

// UseOf is the right to use a ProviderConfig.
func UseOf(namespace, name string) Right {
	return Right{Verb: VerbUse, Namespace: namespace, Group: v1alpha1.GroupName, Resource: "providerconfigs", Name: name}
}

// Target is the resource with its group, as kubectl auth can-i takes it, and its subresource.
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

// String is the verb and the target. Of a ProviderConfig it is the name, too: each is a right of its own.
func (r Right) String() string {
	if r.Verb == VerbUse {
		return fmt.Sprintf("%s the ProviderConfig %q", r.Verb, r.Name)
	}
	return r.Verb + " " + r.Target()
}

// Asker asks what one user may do. It asks about all objects of a namespace first, and each question once.
type Asker struct {
	Access Access
	Who    v1alpha1.Identity

	mu      sync.Mutex
	answers map[Right]bool
	// named counts the questions about single objects, by the right to all of them.
	named map[Right]int
}

// May says whether the user has a right.
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

// Missing returns the rights that the user does not have, once for each verb and resource, and for each ProviderConfig.
func (a *Asker) Missing(ctx context.Context, rights []Right) ([]Right, error) {
	var missing []Right
	seen := map[string]bool{}
	for _, r := range rights {
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

// ListRights lists rights, all of one namespace, as "create sim-networks.sim.hykube.io, update ... in the namespace "prod"".
func ListRights(rights []Right) string {
	if len(rights) == 0 {
		return ""
	}
	texts := make([]string, len(rights))
	for i, r := range rights {
		texts[i] = r.String()
	}
	return fmt.Sprintf("%s in the namespace %q", strings.Join(texts, ", "), rights[0].Namespace)
}
