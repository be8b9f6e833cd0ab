package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/ledger"
)

// This file reads the changes since a revision.

// sinceBatch is the minimum number of rows that since reads at once.
const sinceBatch = 1000

// changed is one change of a key in kine's table.
type changed struct {
	name     string
	value    []byte
	revision int64
	deleted  bool
}

// since returns the changes of the keys with a prefix after a revision, ascending by revision. A key may appear several
// times, and a repeated call may return a change again. since returns at least limit changes, unless there are no more.
// The next call passes the returned revision.
//
// since returns ledger.ErrExpired for revision 0, and if the table no longer has all changes. Then the caller must list
// all keys and continue from the returned revision.
//
// PostgreSQL and MySQL number a row when its transaction begins, so a row may become visible after rows with higher
// numbers. Up to the settled revision, a missing row does not exist. The returned revision is the last one without a
// gap behind that, and the rows behind a gap are read again.
func (t *table) since(ctx context.Context, prefix string, revision int64,
	limit int) (out []changed, current int64, err error) {
	last, compacted, err := t.revisions(ctx)
	if err != nil {
		return nil, 0, err
	}
	settled := t.settled(last)
	if revision == 0 || revision < compacted {
		return nil, max(settled, compacted, 1), ledger.ErrExpired
	}
	if revision == last {
		return nil, revision, nil
	}
	current = revision
	for read, gap := revision, false; gap || len(out) < limit; {
		rows, err := t.rowsSince(ctx, prefix, read, max(limit, sinceBatch))
		if err != nil {
			return nil, 0, err
		}
		for _, r := range rows {
			gap = r.revision != current+1 && r.revision > settled+1
			if !gap {
				current = r.revision
			}
			read = r.revision
			if strings.HasPrefix(r.name, prefix) {
				out = append(out, r)
			}
		}
		if len(rows) < max(limit, sinceBatch) {
			break
		}
	}
	// A compaction meanwhile may have removed rows that were not read yet.
	if _, compacted, err = t.revisions(ctx); err == nil && revision < compacted {
		return nil, max(settled, compacted), ledger.ErrExpired
	}
	return out, current, err
}

// rowsSince returns up to limit rows after a revision, ascending. Rows without the prefix have no value.
func (t *table) rowsSince(ctx context.Context, prefix string, revision int64, limit int) (out []changed, err error) {
	if limit <= maxUncancellable {
		if ctx, err = t.reading(ctx); err != nil {
			return nil, err
		}
	}
	const query = "SELECT id, name, deleted, CASE WHEN deleted = 0 AND name >= ? AND name < ? THEN value END FROM kine WHERE id > ? ORDER BY id LIMIT ?"
	rows, err := t.db.QueryContext(ctx, t.query(query), prefix, clientv3.GetPrefixRangeEnd(prefix), revision, limit)
	if err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var r changed
		var name sql.NullString
		if err := rows.Scan(&r.revision, &name, &r.deleted, &r.value); err != nil {
			return nil, fmt.Errorf("read database: %w", err)
		}
		r.name = name.String
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read database: %w", err)
	}
	return out, nil
}

// upToDate is a state of the database: the number of this process's writes, and the revision after them.
type upToDate struct {
	writes   uint64
	revision int64
}

// Since returns the changes of the objects of all providers, of ResourceSets, Modules and ConfigMaps after a revision.
// It implements index.Objects. The changes of ConfigMaps have no object.
func (o *Objects) Since(ctx context.Context, revision int64,
	limit int) (changes []index.Change, current int64, more bool, err error) {
	var now upToDate
	quiet := false
	if o.latest != nil {
		now.writes, quiet = o.latest.quiet()
		now.revision = revision
		if known := o.upToDate.Load(); quiet && known != nil && *known == now {
			return nil, revision, false, nil
		}
	}
	rows, current, err := o.table.since(ctx, objectPrefix+"/", revision, limit)
	if err != nil {
		return nil, current, false, err
	}
	if quiet && current == revision && len(rows) == 0 {
		o.upToDate.Store(&now)
	}
	last := make(map[string]int64, len(rows))
	for _, r := range rows {
		last[r.name] = r.revision
	}
	for _, r := range rows {
		c, gr, ok := changeOf(r.name)
		if !ok || last[r.name] != r.revision {
			continue // only the last state of an object matters
		}
		c.Revision = r.revision
		if !r.deleted && gr != configMaps {
			if c.Object, err = o.decode(ctx, gr, r.name, r.value, r.revision); err != nil {
				return nil, 0, false, err
			}
		}
		changes = append(changes, c)
	}
	return changes, current, len(rows) >= limit, nil
}

// All returns the objects of a provider in all namespaces. If provider is empty, it returns those of all providers, the
// ResourceSets and the Modules. It implements index.Objects.
func (o *Objects) All(ctx context.Context, provider string) iter.Seq2[index.Change, error] {
	return func(yield func(index.Change, error) bool) {
		prefixes := []string{groupPrefix(v1alpha1.ProviderGroup(provider))}
		groupOf := map[string]string{prefixes[0]: v1alpha1.ProviderGroup(provider)}
		if provider == "" {
			groups, err := o.groups(ctx)
			if err != nil {
				yield(index.Change{}, err)
				return
			}
			prefixes = nil
			for _, stored := range []string{index.StoredSets, index.StoredModules} {
				prefixes = append(prefixes, groupPrefix(v1alpha1.GroupName)+stored+"/")
				groupOf[prefixes[len(prefixes)-1]] = v1alpha1.GroupName
			}
			for _, group := range groups {
				if _, ok := v1alpha1.ProviderOfGroup(group); ok {
					prefixes = append(prefixes, groupPrefix(group))
					groupOf[groupPrefix(group)] = group
				}
			}
		}
		slices.Sort(prefixes)
		for _, prefix := range prefixes {
			group := groupOf[prefix]
			more := o.scan(ctx, group, prefix, prefix,
				func(key string, obj *unstructured.Unstructured, err error) bool {
					if err != nil {
						return yield(index.Change{}, err)
					}
					c, _, ok := changeOf(key)
					if !ok {
						return true
					}
					c.Object = obj
					c.Revision, err = strconv.ParseInt(obj.GetResourceVersion(), 10, 64)
					return yield(c, err)
				})
			if !more {
				return
			}
		}
	}
}

// ConfigMap returns the content of a ConfigMap and the revision of its last write. It implements index.Objects.
func (o *Objects) ConfigMap(ctx context.Context, namespace,
	name string) (data map[string][]byte, revision int64, err error) {
	u, err := o.Get(ctx, configMaps, namespace, name)
	if err != nil || u == nil {
		return nil, 0, err
	}
	cm := &corev1.ConfigMap{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, cm); err != nil {
		return nil, 0, fmt.Errorf("read ConfigMap %q: %w", name, err)
	}
	data = make(map[string][]byte, len(cm.Data)+len(cm.BinaryData))
	for key, value := range cm.Data {
		data[key] = []byte(value)
	}
	maps.Copy(data, cm.BinaryData) // the API ensures that no key is in both
	revision, err = strconv.ParseInt(u.GetResourceVersion(), 10, 64)
	return data, revision, err
}

// Resources that index.Objects returns besides the objects of providers.
var (
	configMaps   = kschema.GroupResource{Resource: index.StoredConfigMaps}
	resourceSets = v1alpha1.Resource(index.StoredSets)
	modules      = v1alpha1.Resource(index.StoredModules)
)

// changeOf returns the address and the resource of an object by its key. ok is false for the keys of objects that
// index.Objects does not return.
func changeOf(key string) (c index.Change, gr kschema.GroupResource, ok bool) {
	part := strings.Split(strings.TrimPrefix(key, objectPrefix+"/"), "/")
	if len(part) != 4 {
		return c, gr, false
	}
	gr = kschema.GroupResource{Group: part[0], Resource: part[1]}
	if gr.Group == "core" {
		gr.Group = ""
	}
	if c.Provider, ok = v1alpha1.ProviderOfGroup(gr.Group); !ok {
		c.Provider = "" // CutSuffix returns the group
		ok = gr == configMaps || gr == resourceSets || gr == modules
	}
	c.Stored, c.Namespace, c.Name = part[1], part[2], part[3]
	return c, gr, ok
}
