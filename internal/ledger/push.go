package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

// Push is a push of a Terraform state into a namespace. A namespace has one at a time. Its records wait in pages until
// the commit writes all of them in one transaction.
type Push struct {
	// ID is the client's, and User the name of the user who began the push.
	ID   string `json:"id"`
	User string `json:"user"`
	// Pages, Entries and Bytes are the number of pages, and of records in them, and the size of these records.
	Pages   int32 `json:"pages"`
	Entries int   `json:"entries"`
	Bytes   int   `json:"bytes"`
	// Committed is true once the records are written. Reported is the number of records whose objects have their new
	// status.
	Committed bool `json:"committed,omitempty"`
	Reported  int  `json:"reported,omitempty"`

	namespace string
	revision  int64
}

// Staged is a record that waits for the commit of a push.
type Staged struct {
	// Address is the address in the state.
	Address string    `json:"address"`
	Record  *Instance `json:"record"`
	// Revision is that of the record that it replaces; 0 if the object has none.
	Revision int64 `json:"revision,omitempty"`
}

// Lineages are the Terraform states that were pushed into a namespace, or pulled from it.
type Lineages struct {
	// Serials has the last serial of each lineage that was pushed or pulled.
	Serials map[string]int64 `json:"serials"`
	// Last is the lineage of the last push or pull, and TerraformVersion the version that wrote it.
	Last             string `json:"last"`
	TerraformVersion string `json:"terraformVersion,omitempty"`
	// Modules has the lineages of the last push or pull of single Modules, by name.
	Modules map[string]string `json:"modules,omitempty"`

	revision int64
}

// Of returns the lineage of the last push or pull of a Module, or of the whole namespace for an empty name; "" without
// one.
func (n *Lineages) Of(module string) string {
	if module != "" {
		return n.Modules[module]
	}
	return n.Last
}

func pushKey(namespace string) string     { return "push/" + namespace }
func pagesPrefix(namespace string) string { return "pushpages/" + namespace + "/" }
func lineagesKey(namespace string) string { return "lineages/" + namespace }

// Push returns the push of a namespace. Without one, the result has no ID.
func (l *Ledger) Push(ctx context.Context, namespace string) (*Push, error) {
	p := &Push{namespace: namespace}
	var err error
	p.revision, err = l.read(ctx, pushKey(namespace), p)
	return p, err
}

// BeginPush replaces the push of a namespace by a new one without pages.
func (l *Ledger) BeginPush(ctx context.Context, old *Push, id, user string) (*Push, error) {
	if err := l.DropPush(ctx, old); err != nil {
		return nil, err
	}
	return &Push{ID: id, User: user, namespace: old.namespace}, nil
}

// DropPush deletes a push and its pages.
func (l *Ledger) DropPush(ctx context.Context, p *Push) error {
	if p.revision != 0 {
		if err := l.kv.Delete(ctx, pushKey(p.namespace), p.revision); err != nil {
			return fmt.Errorf("drop push: %w", err)
		}
	}
	if err := l.kv.DeletePrefix(ctx, pagesPrefix(p.namespace)); err != nil {
		return fmt.Errorf("drop pages of push: %w", err)
	}
	return nil
}

// AddPage adds a page of records to a push. A client that lost the response may send the last page again. It returns
// ErrConflict if another request changed the push.
func (l *Ledger) AddPage(ctx context.Context, p *Push, page int32, entries []Staged) error {
	value, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("encode page of push: %w", err)
	}
	if page == p.Pages {
		p.Pages, p.Entries, p.Bytes = p.Pages+1, p.Entries+len(entries), p.Bytes+len(value)
	}
	head, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode push: %w", err)
	}
	revisions, err := l.kv.Batch(ctx, []Write{
		{Key: pushKey(p.namespace), Value: head, Revision: p.revision},
		{Key: fmt.Sprintf("%s%08d", pagesPrefix(p.namespace), page), Value: value, Revision: AnyRevision},
	})
	if err != nil {
		return fmt.Errorf("save page of push: %w", err)
	}
	p.revision = revisions[0]
	return nil
}

// StagedRecords returns the records of a push in the order of its pages.
func (l *Ledger) StagedRecords(ctx context.Context, p *Push) iter.Seq2[*Staged, error] {
	return func(yield func(*Staged, error) bool) {
		after := ""
		for {
			// one at a time, because a page may have some MiB
			pages, err := l.kv.List(ctx, pagesPrefix(p.namespace), after, 1)
			var entries []Staged
			if err == nil && len(pages) > 0 {
				after = pages[0].Key
				err = unmarshal(pages[0].Value, &entries)
			}
			if err != nil {
				yield(nil, fmt.Errorf("read pages of push: %w", err))
				return
			}
			if len(pages) == 0 {
				return
			}
			for i := range entries {
				if !yield(&entries[i], nil) {
					return
				}
			}
		}
	}
}

// CommitPush writes the records of a push, marks it as committed, and notes its lineage, in one transaction. It returns
// ErrConflict, and writes nothing, if another writer changed one of the records, the push or the lineages.
func (l *Ledger) CommitPush(ctx context.Context, p *Push, lineages *Lineages, records []*Staged) error {
	writes := make([]Write, 0, len(records)+2)
	for _, s := range records {
		value, err := s.Record.encode()
		if err != nil {
			return err
		}
		ref := s.Record.Object
		writes = append(writes, Write{Key: instanceKey(ref.Namespace, ref.UID), Value: value, Revision: s.Revision})
	}
	done := *p
	done.Committed = true
	head, err := json.Marshal(done)
	if err != nil {
		return fmt.Errorf("encode push: %w", err)
	}
	known, err := json.Marshal(lineages)
	if err != nil {
		return fmt.Errorf("encode lineages: %w", err)
	}
	writes = append(writes, Write{Key: pushKey(p.namespace), Value: head, Revision: p.revision},
		Write{Key: lineagesKey(p.namespace), Value: known, Revision: lineages.revision})
	revisions, err := l.kv.Batch(ctx, writes)
	if err != nil {
		return fmt.Errorf("commit push: %w", err)
	}
	p.Committed, p.revision = true, revisions[len(records)]
	return nil
}

// NoteReported stores the number of records of a committed push whose objects have their new status.
func (l *Ledger) NoteReported(ctx context.Context, p *Push, reported int) error {
	p.Reported = reported
	value, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("encode push: %w", err)
	}
	p.revision, err = l.kv.Put(ctx, pushKey(p.namespace), value, p.revision)
	return err
}

// Lineages returns the lineages of a namespace.
func (l *Ledger) Lineages(ctx context.Context, namespace string) (*Lineages, error) {
	out := &Lineages{}
	var err error
	out.revision, err = l.read(ctx, lineagesKey(namespace), out)
	if out.Serials == nil {
		out.Serials = map[string]int64{}
	}
	return out, err
}

// Note notes a serial of a lineage. module is empty for a state of the whole namespace.
func (n *Lineages) Note(module, lineage string, serial int64, terraformVersion string) {
	n.Serials[lineage], n.TerraformVersion = serial, terraformVersion
	if module == "" {
		n.Last = lineage
		return
	}
	if n.Modules == nil {
		n.Modules = map[string]string{}
	}
	n.Modules[module] = lineage
}

// SaveLineages writes the lineages of a namespace. It returns ErrConflict if another writer changed them.
func (l *Ledger) SaveLineages(ctx context.Context, namespace string, n *Lineages) error {
	value, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encode lineages: %w", err)
	}
	if n.revision, err = l.kv.Put(ctx, lineagesKey(namespace), value, n.revision); err != nil {
		return fmt.Errorf("save lineages: %w", err)
	}
	return nil
}

// read decodes the value of a key, and returns its revision: 0 if the key does not exist.
func (l *Ledger) read(ctx context.Context, key string, into any) (int64, error) {
	value, revision, err := l.kv.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err == nil {
		err = unmarshal(value, into)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", key, err)
	}
	return revision, nil
}

// InstancesAfter returns up to limit records of a namespace in the order of their keys, those after the one with a UID;
// all from the first for an empty UID.
func (l *Ledger) InstancesAfter(ctx context.Context, namespace, after string, limit int) ([]*Instance, error) {
	prefix := "instances/" + namespace + "/"
	if after != "" {
		after = prefix + after
	}
	page, err := l.kv.List(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list states: %w", err)
	}
	out := make([]*Instance, 0, len(page))
	for _, e := range page {
		i, err := decodeInstance(e.Value, e.Revision)
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}
