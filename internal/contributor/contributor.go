// Package contributor edits lists of contributors: the users who wrote what the changes of a plan follow from. It is
// pure, and imports api alone. A list has at most v1alpha1.MaxContributors users, and then one entry for all others.
package contributor

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxWrote bounds the texts of what one user wrote. Further ones are left out.
const maxWrote = 32

// WroteImports is what a user wrote who changed spec.imports of a ResourceSet.
const WroteImports = "imports"

// Write is a write by a user.
type Write struct {
	By   v1alpha1.Identity
	What []string
	At   time.Time
}

// Add adds a write. What others wrote of the same part stays, because a write of a part may change only some fields of
// it.
func Add(list []v1alpha1.Contributor, w Write) []v1alpha1.Contributor {
	return Merge(list, []v1alpha1.Contributor{{Identity: w.By, Wrote: w.What, At: metav1.NewMicroTime(w.At)}})
}

// Replace adds a write of parts that have a single value each. So nobody else wrote them any more.
func Replace(list []v1alpha1.Contributor, w Write) []v1alpha1.Contributor {
	return Add(Remove(list, w.What...), w)
}

// Named returns contributors with the name of the object before what they wrote, or alone if the list does not say
// what.
func Named(list []v1alpha1.Contributor, object string) []v1alpha1.Contributor {
	list = slices.Clone(list)
	for i := range list {
		wrote := make([]string, len(list[i].Wrote))
		for k, part := range list[i].Wrote {
			wrote[k] = object + ": " + part
		}
		if len(wrote) == 0 {
			wrote = []string{object}
		}
		list[i].Wrote = wrote
	}
	return list
}

// Remove removes parts from what users wrote, and the users who wrote nothing else. The entry for all others stays.
func Remove(list []v1alpha1.Contributor, parts ...string) []v1alpha1.Contributor {
	var kept []v1alpha1.Contributor
	for _, c := range list {
		c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote),
			func(part string) bool { return slices.Contains(parts, part) })
		if len(c.Wrote) > 0 || c.More {
			kept = append(kept, c)
		}
	}
	return kept
}

// Merge returns the contributors of several lists, each user once, in the order of the last writes.
func Merge(lists ...[]v1alpha1.Contributor) []v1alpha1.Contributor {
	var out []v1alpha1.Contributor
	for _, list := range lists {
		if out == nil && len(list) > 0 {
			out = slices.Clone(list)
			continue
		}
		for _, c := range list {
			out = merge(out, c)
		}
	}
	if len(out) < 2 {
		return out
	}
	slices.SortStableFunc(out, func(a, b v1alpha1.Contributor) int {
		switch {
		case a.More != b.More && a.More:
			return 1
		case a.More != b.More:
			return -1
		}
		return cmp.Or(a.At.Compare(b.At.Time), cmp.Compare(a.Username, b.Username))
	})
	return limit(out)
}

// merge adds a contributor to a list without changing the entries that other lists share.
func merge(list []v1alpha1.Contributor, c v1alpha1.Contributor) []v1alpha1.Contributor {
	i := slices.IndexFunc(list, func(o v1alpha1.Contributor) bool {
		return o.More == c.More && SameUser(o.Identity, c.Identity)
	})
	if i < 0 {
		return append(list, c)
	}
	old := &list[i]
	for _, part := range c.Wrote {
		if !slices.Contains(old.Wrote, part) && len(old.Wrote) < maxWrote {
			old.Wrote = append(slices.Clip(old.Wrote), part)
		}
	}
	if old.At.Before(&c.At) {
		old.Identity, old.At = c.Identity, c.At
	}
	return list
}

// SameUser reports whether two identities are those of one user, through the workers of the same users. What a user
// wrote through the worker of another one needs the rights of both. The groups of a user change over time, so they do
// not count.
func SameUser(a, b v1alpha1.Identity) bool {
	return slices.Equal(users(a), users(b))
}

// users returns the users behind an identity: the user, and then the others, sorted.
func users(who v1alpha1.Identity) []user {
	others := make([]user, 0, len(who.Through))
	for _, u := range who.Through {
		others = append(others, user{u.Username, u.TokenFile})
	}
	slices.SortFunc(others, func(a, b user) int { return cmp.Compare(a.name, b.name) })
	return append([]user{{who.Username, who.TokenFile}}, slices.Compact(others)...)
}

type user struct {
	name      string
	tokenFile bool
}

// limit replaces the users with the oldest writes by one entry if there are too many.
func limit(list []v1alpha1.Contributor) []v1alpha1.Contributor {
	users := len(list)
	if list[users-1].More {
		users--
	}
	over := users - v1alpha1.MaxContributors
	if over <= 0 {
		return list
	}
	more := v1alpha1.Contributor{More: true}
	parts := map[string]bool{}
	for _, c := range append(slices.Clone(list[:over]), list[users:]...) {
		for _, part := range c.Wrote {
			parts[part] = true
		}
		if more.At.Before(&c.At) {
			more.At = c.At
		}
	}
	more.Wrote = slices.Sorted(maps.Keys(parts))
	more.Wrote = more.Wrote[:min(len(more.Wrote), maxWrote)]
	return append(slices.Clone(list[over:users]), more)
}

// othersText stands for the users whom a list leaves out.
const othersText = "others"

// Names returns the names of the users of a list, each once, in the order of the list.
func Names(list []v1alpha1.Contributor) (names []string) {
	for _, c := range list {
		name := c.String()
		if c.More {
			name = othersText
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Text returns the users of a list with what they wrote, as in: eve (spec, labels), ada (ConfigMap hosts: list).
func Text(list []v1alpha1.Contributor) string {
	var texts []string
	for _, c := range list {
		text := c.String()
		if c.More {
			text = othersText
		}
		if len(c.Wrote) > 0 {
			text += " (" + JoinParts(c.Wrote) + ")"
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, ", ")
}

// JoinParts joins what a user wrote. It names each object once, as in: spec, ConfigMap hosts: list and region.
func JoinParts(parts []string) string {
	var objects []string
	of := map[string][]string{}
	for _, part := range parts {
		object, key, found := strings.Cut(part, ": ")
		if !slices.Contains(objects, object) {
			objects = append(objects, object)
		}
		if found {
			of[object] = append(of[object], key)
		}
	}
	for i, object := range objects {
		switch keys := of[object]; len(keys) {
		case 0:
		case 1:
			objects[i] += ": " + keys[0]
		default:
			objects[i] += ": " + strings.Join(keys[:len(keys)-1], ", ") + " and " + keys[len(keys)-1]
		}
	}
	return strings.Join(objects, ", ")
}

// Without removes the entries of users whose last write done has. An entry whose user has written since stays. done may
// have further writes of a user, to other objects.
func Without(list, done []v1alpha1.Contributor) []v1alpha1.Contributor {
	if len(list) == 0 || len(done) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c v1alpha1.Contributor) bool {
		return slices.ContainsFunc(done, func(d v1alpha1.Contributor) bool {
			return c.More == d.More && SameUser(c.Identity, d.Identity) && !d.At.Before(&c.At)
		})
	})
}

// Only returns contributors with some of the parts that they wrote, without those who wrote none of these.
func Only(list []v1alpha1.Contributor, parts ...string) (out []v1alpha1.Contributor) {
	for _, c := range list {
		c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote),
			func(part string) bool { return !slices.Contains(parts, part) })
		if len(c.Wrote) > 0 && !c.More {
			out = append(out, c)
		}
	}
	return out
}

// TakeBack removes the parts that users wrote and that were taken back since. An entry whose user has written since
// stays.
func TakeBack(list, back []v1alpha1.Contributor) (out []v1alpha1.Contributor) {
	for _, c := range list {
		for _, b := range back {
			if !c.More && SameUser(c.Identity, b.Identity) && !b.At.Before(&c.At) {
				c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote),
					func(part string) bool { return slices.Contains(b.Wrote, part) })
			}
		}
		if len(c.Wrote) > 0 || c.More {
			out = append(out, c)
		}
	}
	return out
}
