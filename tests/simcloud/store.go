package simcloud

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// object is one object of the cloud. Its fields are encoded, so that a million objects need only some hundred MB.
type object struct {
	kind             *kind
	id, name         string
	revision         int64
	created, updated time.Time
	fields           []byte

	// visible is the time from which reads find the object.
	visible time.Time
	// former is the version that reads return until the time current; nil means fields.
	former  *object
	current time.Time
	// ready is the time at which the status is no longer "pending".
	ready time.Time
	// repeatable is the value of Settings.Repeatable at the create.
	repeatable bool
}

// store holds all objects and checks their changes. It does not know HTTP, latency or faults.
type store struct {
	mu sync.RWMutex
	// objects holds the objects by ID. ids holds the IDs by kind in order of creation. It has those of deleted objects
	// until they are swept.
	objects map[string]*object
	ids     map[string][]string
	count   map[string]int
	// names holds the IDs by kind and name. children holds the IDs of the objects that refer to an ID.
	names    map[nameKey][]string
	children map[string]map[string]bool
	unique   map[string]string // kind and values -> ID
	clients  map[string]string // client token -> ID
	// ghosts holds deleted objects, and the time until which reads find them.
	ghosts map[string]ghost
	seq    int64
	// made counts the creates by kind and name. repeatable is the setting at the last create; see Settings.
	made       map[nameKey]int64
	repeatable bool
	journal    *journal
}

type nameKey struct{ kind, name string }

type ghost struct {
	object *object
	until  time.Time
}

func newStore(last int64) *store {
	s := &store{seq: last}
	s.clear()
	return s
}

func (s *store) clear() {
	s.objects = map[string]*object{}
	s.ids = map[string][]string{}
	s.count = map[string]int{}
	s.names = map[nameKey][]string{}
	s.children = map[string]map[string]bool{}
	s.unique = map[string]string{}
	s.clients = map[string]string{}
	s.ghosts = map[string]ghost{}
	s.made = map[nameKey]int64{}
}

// create creates an object. For a client token that was used before, it returns the existing object, and made is false.
func (s *store) create(k *kind, in map[string]any, clientToken string, set *Settings) (view map[string]any, made bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if clientToken != "" && !set.IgnoreClientTokens {
		if o := s.objects[s.clients[clientToken]]; o != nil && o.kind == k {
			return o.view(time.Now(), toCreator), false, nil
		}
	}
	if quota, ok := set.Quotas[k.name]; ok && s.count[k.name] >= quota {
		return nil, false, &Error{Status: http.StatusForbidden, Code: "QuotaExceeded",
			Message: fmt.Sprintf("the quota of %d objects of kind %s is used up", quota, k.name)}
	}
	fields, e := k.accept(nil, in)
	if e != nil {
		return nil, false, e
	}
	if e := s.references(k, fields); e != nil {
		return nil, false, e
	}
	if k.check != nil {
		if e := k.check(s, nil, fields); e != nil {
			return nil, false, e
		}
	}
	if key := k.uniqueKey(fields); key != "" {
		if other := s.unique[key]; other != "" {
			return nil, false, conflict("AlreadyExists", "%s %q exists already as %s", k.name, fields["name"], other)
		}
	}
	seq := s.next(k, text(fields["name"]), set.Repeatable)
	id := idOf(k, seq)
	k.fill(s, id, seq, fields)
	now := time.Now()
	o := &object{
		kind: k, id: id, name: text(fields["name"]), revision: 1, created: now, updated: now, fields: encode(fields), repeatable: set.Repeatable,
	}
	o.visible = now.Add(time.Duration(set.Consistency.Create))
	if k.status {
		o.ready = now.Add(time.Duration(set.Provisioning[k.name]))
	}
	if err := s.journal.put(o, clientToken); err != nil {
		return nil, false, err
	}
	s.add(o, fields)
	if clientToken != "" {
		s.clients[clientToken] = id
	}
	return o.view(now, toCreator), true, nil
}

// update changes the fields in in.
func (s *store) update(k *kind, id string, in map[string]any, set *Settings) (map[string]any, error) {
	return s.change(k, id, set, func(before map[string]any) (map[string]any, *Error) {
		after, e := k.accept(before, in)
		if e == nil && k.check != nil {
			e = k.check(s, before, after)
		}
		if e == nil {
			k.fill(s, id, numberOf(id), after)
		}
		return after, e
	})
}

// attach sets or clears the instance of a disk.
func (s *store) attach(k *kind, id string, instance any, set *Settings) (map[string]any, error) {
	return s.change(k, id, set, func(before map[string]any) (map[string]any, *Error) {
		after := maps.Clone(before)
		if instance == nil {
			delete(after, "instance_id")
			return after, nil
		}
		if has := before["instance_id"]; has != nil && has != instance {
			return nil, conflict("InUse", "disk %q is attached to %v; detach it first", id, has)
		}
		after["instance_id"] = instance
		return after, s.references(k, after)
	})
}

// reboot sets an instance to pending, for the time of a new one.
func (s *store) reboot(k *kind, id string, set *Settings) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	if o == nil || o.kind != k {
		return nil, notFound(k.name, id)
	}
	now := time.Now()
	// A reboot is not drift, so it changes neither the revision nor the time of the update.
	next := *o
	next.ready = now.Add(time.Duration(set.Provisioning[k.name]))
	s.objects[id] = &next
	return next.view(now, toCaller), nil
}

// renew extends a session by its time to live. It does not extend a session that has ended.
func (s *store) renew(k *kind, id string) (map[string]any, error) {
	return s.change(k, id, &Settings{}, func(before map[string]any) (map[string]any, *Error) {
		ends, err := time.Parse(time.RFC3339Nano, text(before["expires_at"]))
		if err != nil || time.Now().After(ends) {
			return nil, &Error{Status: http.StatusGone, Code: "Expired", Message: fmt.Sprintf("session %q is over since %v; open another", id, before["expires_at"])}
		}
		after := maps.Clone(before)
		after["expires_at"] = sessionEnd(before)
		return after, nil
	})
}

// drift changes any field of an object without a check, and reads see the change at once. A null removes a field.
func (s *store) drift(k *kind, id string, in map[string]any) (map[string]any, error) {
	return s.change(k, id, &Settings{}, func(before map[string]any) (map[string]any, *Error) {
		after := maps.Clone(before)
		for name, v := range in {
			if f := k.field(name); f == nil {
				return nil, invalid(name, k.name+" has no such field")
			} else if v != nil && !f.typ.holds(v) {
				return nil, invalid(name, fmt.Sprintf("is a %s", f.typ))
			}
			if v == nil {
				delete(after, name)
			} else {
				after[name] = v
			}
		}
		return after, nil
	})
}

func (s *store) change(k *kind, id string, set *Settings, edit func(map[string]any) (map[string]any, *Error)) (map[string]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	if o == nil || o.kind != k {
		return nil, notFound(k.name, id)
	}
	before := decode(o.fields)
	after, e := edit(before)
	if e != nil {
		return nil, e
	}
	now := time.Now()
	next := *o
	next.fields, next.name, next.updated, next.former = encode(after), text(after["name"]), now, nil
	next.revision++
	if late := time.Duration(set.Consistency.Update); late > 0 {
		former := *o
		former.former = nil
		next.former, next.current = &former, now.Add(late)
	}
	if key := k.uniqueKey(after); key != "" && s.unique[key] != "" && s.unique[key] != id {
		return nil, conflict("AlreadyExists", "%s %q exists already as %s", k.name, next.name, s.unique[key])
	}
	if err := s.journal.put(&next, ""); err != nil {
		return nil, err
	}
	s.unlink(o, before)
	s.link(&next, after)
	s.objects[id] = &next
	return next.view(now, toCaller), nil
}

// remove deletes an object. Without force, it rejects the deletion of an object to which others refer.
func (s *store) remove(k *kind, id string, force bool, set *Settings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[id]
	if o == nil || o.kind != k {
		return notFound(k.name, id)
	}
	bound, loose := s.users(id)
	if len(bound) > 0 && !force {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(bound)) {
			parts = append(parts, fmt.Sprintf("%d of kind %s", bound[name], name))
		}
		return conflict("DependencyViolation", "%s %q is in use by %s", k.name, id, strings.Join(parts, " and "))
	}
	for _, user := range loose {
		if err := s.letGo(user, id); err != nil {
			return err
		}
	}
	if err := s.journal.remove(id); err != nil {
		return err
	}
	now := time.Now()
	if late := time.Duration(set.Consistency.Delete); late > 0 {
		maps.DeleteFunc(s.ghosts, func(_ string, g ghost) bool { return now.After(g.until) })
		s.ghosts[id] = ghost{object: o, until: now.Add(late)}
	}
	s.unlink(o, decode(o.fields))
	delete(s.objects, id)
	s.count[k.name]--
	if ids := s.ids[k.name]; len(ids) > 64 && s.count[k.name] < len(ids)/2 {
		s.ids[k.name] = slices.DeleteFunc(ids, func(id string) bool { return s.objects[id] == nil })
	}
	return nil
}

// read returns an object. Without strict, it returns what an eventually consistent cloud shows.
func (s *store) read(k *kind, id string, strict bool) (map[string]any, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := time.Now()
	if o := s.shown(id, strict, now); o != nil && o.kind == k {
		return o.view(now, audienceOf(strict)), nil
	}
	return nil, notFound(k.name, id)
}

func (s *store) shown(id string, strict bool, now time.Time) *object {
	o := s.objects[id]
	switch {
	case o == nil:
		if g, ok := s.ghosts[id]; ok && !strict && now.Before(g.until) {
			return g.object
		}
		return nil
	case strict:
		return o
	case now.Before(o.visible):
		return nil
	case o.former != nil && now.Before(o.current):
		return o.former
	}
	return o
}

// list returns objects in order of creation: those after an ID, at most limit. more is the ID after which the next page
// begins.
func (s *store) list(k *kind, name, after string, limit int, strict bool) (items []map[string]any, more string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	now := time.Now()
	ids := s.ids[k.name]
	if name != "" {
		ids = s.names[nameKey{k.name, name}]
	}
	start := 0
	if after != "" {
		i, found := slices.BinarySearchFunc(ids, after, compareIDs)
		if start = i; found {
			start++
		}
	}
	items = []map[string]any{}
	for _, id := range ids[start:] {
		o := s.shown(id, strict, now)
		if o == nil {
			continue
		}
		if len(items) == limit {
			return items, text(items[limit-1]["id"])
		}
		items = append(items, o.view(now, audienceOf(strict)))
	}
	return items, ""
}

// compareIDs orders IDs by number, so that they stay in order beyond 2^32.
func compareIDs(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

func numberOf(id string) (n int64) {
	_, hexa, _ := strings.Cut(id, "-")
	_, _ = fmt.Sscanf(hexa, "%x", &n)
	return n
}

// nameOf returns the name of an object; "" if there is none.
func (s *store) nameOf(id string) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if o := s.objects[id]; o != nil {
		return o.name
	}
	return ""
}

// fieldsOf returns the fields of an object; nil if there is none. It requires the lock.
func (s *store) fieldsOf(kindName string, id any) map[string]any {
	if o := s.objects[text(id)]; o != nil && o.kind.name == kindName {
		return decode(o.fields)
	}
	return nil
}

// add stores a new object. It requires the lock.
func (s *store) add(o *object, fields map[string]any) {
	s.objects[o.id] = o
	ids := s.ids[o.kind.name]
	i, _ := slices.BinarySearchFunc(ids, o.id, compareIDs)
	s.ids[o.kind.name] = slices.Insert(ids, i, o.id)
	s.count[o.kind.name]++
	s.link(o, fields)
}

// accept merges the fields of a request into those of the object. before is nil for a new object.
func (k *kind) accept(before, in map[string]any) (map[string]any, *Error) {
	out := map[string]any{}
	maps.Copy(out, before)
	for _, name := range slices.Sorted(maps.Keys(in)) {
		v, f := in[name], k.field(name)
		switch {
		case f == nil:
			return nil, invalid(name, k.name+" has no such field")
		case f.readOnly:
			return nil, invalid(name, "is set by the cloud")
		case v == nil:
			delete(out, name)
		case !f.typ.holds(v):
			return nil, invalid(name, fmt.Sprintf("is a %s", f.typ))
		default:
			out[name] = v
		}
		if before != nil && f.immutable && !sameJSON(before[name], out[name]) {
			return nil, invalid(name, fmt.Sprintf("can't be changed after the %s was created", k.name))
		}
	}
	for _, f := range k.fields {
		if f.required && (out[f.name] == nil || out[f.name] == "") {
			return nil, invalid(f.name, "is required")
		}
	}
	return out, nil
}

func (k *kind) uniqueKey(fields map[string]any) string {
	if len(k.unique) == 0 {
		return ""
	}
	var key strings.Builder
	key.WriteString(k.name)
	for _, name := range k.unique {
		key.WriteString("\x00" + text(fields[name]))
	}
	return key.String()
}

func idOf(k *kind, seq int64) string { return fmt.Sprintf("%s-%08x", k.prefix, seq) }

// next returns the number of a new object. It requires the lock.
func (s *store) next(k *kind, name string, repeatable bool) int64 {
	s.repeatable = repeatable
	if !repeatable {
		s.seq++
		return s.seq
	}
	key := nameKey{k.name, name}
	s.made[key]++
	seq := int64(digest(k.name, name, strconv.FormatInt(s.made[key], 10)) >> 33)
	for s.objects[idOf(k, seq)] != nil {
		seq++
	}
	return seq
}

// secret returns a random secret, or a derived one in a repeatable cloud.
func (s *store) secret(id string) string {
	if s.repeatable {
		return fmt.Sprintf("%032x", digest("secret", id))
	}
	return randomHex(16)
}

func digest(parts ...string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.Join(parts, "\x00"))) // never fails
	return h.Sum64()
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: https://pkg.go.dev/crypto/rand#Read
	return hex.EncodeToString(b)
}
