package simcloud

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// This file has the references between objects.

// users returns the objects that refer to an ID: the number of those that prevent its deletion, by kind, and those that
// release it.
func (s *store) users(id string) (bound map[string]int, loose []*object) {
	bound = map[string]int{}
	for child := range s.children[id] {
		o := s.objects[child]
		fields := decode(o.fields)
		for _, f := range o.kind.fields {
			switch {
			case f.ref == "" || fields[f.name] != id:
			case f.release:
				loose = append(loose, o)
			default:
				bound[o.kind.name]++
			}
		}
	}
	return bound, loose
}

// letGo clears the fields of an object that refer to an ID.
func (s *store) letGo(o *object, id string) error {
	before := decode(o.fields)
	after := maps.Clone(before)
	for _, f := range o.kind.fields {
		if f.release && after[f.name] == id {
			delete(after, f.name)
		}
	}
	next := *o
	next.fields, next.former, next.updated = encode(after), nil, time.Now()
	next.revision++
	if err := s.journal.put(&next, ""); err != nil {
		return err
	}
	s.unlink(o, before)
	s.link(&next, after)
	s.objects[o.id] = &next
	return nil
}

func (s *store) references(k *kind, fields map[string]any) *Error {
	for _, f := range k.fields {
		id := text(fields[f.name])
		if f.ref == "" || id == "" {
			continue
		}
		if o := s.objects[id]; o == nil || o.kind.name != f.ref {
			e := invalid(f.name, fmt.Sprintf("%s %q does not exist", f.ref, id))
			e.Code = "ReferenceNotFound"
			return e
		}
	}
	return nil
}

func (s *store) link(o *object, fields map[string]any) {
	key := nameKey{o.kind.name, o.name}
	ids := s.names[key]
	i, _ := slices.BinarySearchFunc(ids, o.id, compareIDs)
	s.names[key] = slices.Insert(ids, i, o.id)
	if key := o.kind.uniqueKey(fields); key != "" {
		s.unique[key] = o.id
	}
	for _, f := range o.kind.fields {
		if id := text(fields[f.name]); f.ref != "" && id != "" {
			if s.children[id] == nil {
				s.children[id] = map[string]bool{}
			}
			s.children[id][o.id] = true
		}
	}
}

func (s *store) unlink(o *object, fields map[string]any) {
	key := nameKey{o.kind.name, o.name}
	ids := slices.DeleteFunc(s.names[key], func(id string) bool { return id == o.id })
	if s.names[key] = ids; len(ids) == 0 {
		delete(s.names, key)
	}
	if key := o.kind.uniqueKey(fields); key != "" {
		delete(s.unique, key)
	}
	for _, f := range o.kind.fields {
		id := text(fields[f.name])
		if f.ref == "" || s.children[id] == nil {
			continue
		}
		delete(s.children[id], o.id)
		if len(s.children[id]) == 0 {
			delete(s.children, id)
		}
	}
}
