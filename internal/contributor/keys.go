package contributor

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file records who wrote each key of a ConfigMap or Secret last. These kinds have no status, so an annotation has
// the list. An entry without keys wrote all keys that no entry names. A key that a write removed keeps its entry,
// because a plan may follow from its removal.

// maxKeys bounds the keys in the annotation. Beyond it, an entry no longer names the removed keys; if the keys of the
// object are too many, each user may have written each key.
const maxKeys = 500

// removedKeys stands for all removed keys of an entry. No key of an object can be equal to it.
const removedKeys = "*"

// CreateKeys records the create of an object with all its keys.
func CreateKeys(w Write) []v1alpha1.Contributor {
	return []v1alpha1.Contributor{{Identity: w.By, At: metav1.NewMicroTime(w.At)}}
}

// WriteKeys records a write of some keys, with those that it removed. has reports whether the object has a key now.
func WriteKeys(list []v1alpha1.Contributor, w Write, has func(key string) bool) []v1alpha1.Contributor {
	entry := v1alpha1.Contributor{Identity: w.By, At: metav1.NewMicroTime(w.At), Wrote: slices.Clone(w.What)}
	var out []v1alpha1.Contributor
	rest := 0
	for _, c := range list {
		if len(c.Wrote) == 0 {
			out, rest = append(out, c), rest+1
			continue
		}
		c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote),
			func(key string) bool { return slices.Contains(w.What, key) })
		switch {
		case len(c.Wrote) == 0:
		case !c.More && SameUser(c.Identity, w.By):
			entry.Wrote = append(entry.Wrote, c.Wrote...)
		default:
			out = append(out, c)
		}
	}
	if rest == 1 {
		// The user who wrote all other keys writes one of them again.
		if i := slices.IndexFunc(out, func(c v1alpha1.Contributor) bool { return len(c.Wrote) == 0 }); !out[i].More &&
			SameUser(out[i].Identity, w.By) {
			entry.Wrote, out = nil, slices.Delete(out, i, i+1)
		}
	}
	return limitKeys(append(out, entry), has)
}

// WriteAll records a write of all keys that an object has now. has reports whether it has a key.
func WriteAll(list []v1alpha1.Contributor, w Write, has func(key string) bool) []v1alpha1.Contributor {
	var out []v1alpha1.Contributor
	for _, c := range list {
		if SameUser(c.Identity, w.By) && !c.More {
			continue
		}
		if c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote), has); len(c.Wrote) > 0 {
			out = append(out, c)
		}
	}
	return limitKeys(append(out, CreateKeys(w)...), has)
}

// WriteTogether records that several users together wrote some keys, or all keys for nil. Each of them wrote each key.
// has reports whether the object has a key now.
func WriteTogether(list, by []v1alpha1.Contributor, keys []string, has func(key string) bool) []v1alpha1.Contributor {
	if keys == nil {
		list = nil
	}
	var out []v1alpha1.Contributor
	for _, c := range list {
		kept := slices.DeleteFunc(slices.Clone(c.Wrote), func(key string) bool { return slices.Contains(keys, key) })
		if len(kept) > 0 || len(c.Wrote) == 0 {
			c.Wrote = kept
			out = append(out, c)
		}
	}
	for _, c := range by {
		c.Wrote = keys
		i := slices.IndexFunc(out, func(o v1alpha1.Contributor) bool {
			return len(o.Wrote) > 0 && o.More == c.More && SameUser(o.Identity, c.Identity)
		})
		if i >= 0 {
			c.Wrote = slices.Concat(out[i].Wrote, keys)
			out = slices.Delete(out, i, i+1)
		}
		out = append(out, c)
	}
	return limitKeys(out, has)
}

// limitKeys shortens a list with too many keys or users.
func limitKeys(list []v1alpha1.Contributor, has func(key string) bool) []v1alpha1.Contributor {
	if tooManyKeys(list) {
		for i := range list {
			list[i].Wrote = joinRemoved(list[i].Wrote, has)
		}
	}
	if !tooManyKeys(list) {
		return list
	}
	for i := range list {
		list[i].Wrote = nil
	}
	return Merge(list[:1], list[1:])
}

func tooManyKeys(list []v1alpha1.Contributor) bool {
	keys := 0
	for _, c := range list {
		keys += len(c.Wrote)
	}
	return keys > maxKeys || len(list) > v1alpha1.MaxContributors
}

// joinRemoved replaces the keys that an object does not have by one entry for all of them.
func joinRemoved(keys []string, has func(key string) bool) (out []string) {
	for _, key := range keys {
		if has(key) {
			out = append(out, key)
		}
	}
	if len(out) < len(keys) {
		out = append(out, removedKeys)
	}
	return out
}

// WritersOf returns who wrote a key last, or each user for an empty key. What each wrote is then the key, or nothing.
func WritersOf(list []v1alpha1.Contributor, key string) []v1alpha1.Contributor {
	var named, rest []v1alpha1.Contributor
	for _, c := range list {
		keys := c.Wrote
		c.Wrote = nil
		if key != "" {
			c.Wrote = []string{key}
		}
		switch {
		case key == "" || slices.Contains(keys, key):
			named = merge(named, c)
		case len(keys) == 0 || slices.Contains(keys, removedKeys):
			rest = merge(rest, c)
		}
	}
	if len(named) > 0 {
		return named
	}
	return rest
}

// EncodeKeys returns a list as the value of v1alpha1.AnnotationWriters.
func EncodeKeys(list []v1alpha1.Contributor) string {
	text, err := json.Marshal(list)
	if err != nil { // strings and times can always be encoded
		return ""
	}
	return string(text)
}

// DecodeKeys is the inverse of EncodeKeys. An empty text is an empty list.
func DecodeKeys(text string) (list []v1alpha1.Contributor, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("decode annotation %s: %w", v1alpha1.AnnotationWriters, err)
	}
	return list, nil
}
