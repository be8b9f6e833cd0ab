package contributor

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hykube/hykube/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file records who wrote each key of a ConfigMap or Secret last. These kinds have no status, so an annotation has
// the list. An entry without keys wrote all keys that no entry names.

// maxKeys bounds the keys in the annotation. Beyond it, each user may have written each key.
const maxKeys = 500

// WriteKeys records a write of some keys, with those that it removed.
func WriteKeys(list []v1alpha1.Contributor, w Write) []v1alpha1.Contributor {
	entry := v1alpha1.Contributor{Identity: w.By, At: metav1.NewMicroTime(w.At), Wrote: slices.Clone(w.What)}
	var out []v1alpha1.Contributor
	rest, keys := 0, len(w.What)
	for _, c := range list {
		if len(c.Wrote) == 0 {
			out, rest = append(out, c), rest+1
			continue
		}
		c.Wrote = slices.DeleteFunc(slices.Clone(c.Wrote), func(key string) bool { return slices.Contains(w.What, key) })
		switch {
		case len(c.Wrote) == 0:
		case !c.More && SameUser(c.Identity, w.By):
			entry.Wrote = append(entry.Wrote, c.Wrote...)
		default:
			out, keys = append(out, c), keys+len(c.Wrote)
		}
	}
	if rest == 1 {
		// The user who wrote all other keys writes one of them again.
		if i := slices.IndexFunc(out, func(c v1alpha1.Contributor) bool { return len(c.Wrote) == 0 }); !out[i].More && SameUser(out[i].Identity, w.By) {
			entry.Wrote, out = nil, slices.Delete(out, i, i+1)
		}
	}
	out = append(out, entry)
	if keys <= maxKeys && len(out) <= v1alpha1.MaxContributors {
		return out
	}
	for i := range out {
		out[i].Wrote = nil
	}
	return Merge(out[:1], out[1:])
}

// WriteAll records a write of all keys.
func WriteAll(w Write) []v1alpha1.Contributor {
	return []v1alpha1.Contributor{{Identity: w.By, At: metav1.NewMicroTime(w.At)}}
}

// WritersOf returns who wrote a key last, or each user for an empty key. What each wrote is then the key, or nothing.
func WritersOf(list []v1alpha1.Contributor, key string) []v1alpha1.Contributor {
	var named, rest []v1alpha1.Contributor
	for _, c := range list {
		keys := c.Wrote
		if key != "" {
			c.Wrote = []string{key}
		}
		switch {
		case key == "" || slices.Contains(keys, key):
			named = append(named, c)
		case len(keys) == 0:
			rest = append(rest, c)
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
