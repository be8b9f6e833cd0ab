package simcloud

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// journal is the state file. It has a line for each change, so that a write does not depend on the number of objects. A
// nil journal stores nothing. A change takes effect after its line was passed to the operating system. So it survives a
// kill of the process, but not a power cut, which no test makes.
type journal struct{ file *os.File }

// entry is one line. Fields is null for a deleted object.
type entry struct {
	ID      string          `json:"id"`
	Kind    string          `json:"kind,omitempty"`
	Fields  json.RawMessage `json:"fields,omitempty"`
	Rev     int64           `json:"rev,omitempty"`
	Created time.Time       `json:"created,omitzero"`
	Updated time.Time       `json:"updated,omitzero"`
	Token   string          `json:"token,omitempty"`
	// Seq is the last used number. Only the first line of a rewritten file has it.
	Seq int64 `json:"seq,omitempty"`
}

func (j *journal) put(o *object, clientToken string) error {
	return j.write(entry{ID: o.id, Kind: o.kind.name, Fields: o.fields, Rev: o.revision, Created: o.created, Updated: o.updated, Token: clientToken})
}

func (j *journal) remove(id string) error { return j.write(entry{ID: id}) }

func (j *journal) write(e entry) error {
	if j == nil {
		return nil
	}
	b, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode state: %w", err)
	}
	if _, err := j.file.Write(append(b, '\n')); err != nil {
		return fmt.Errorf("write state file: %w", err)
	}
	return nil
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}

// open reads the state file, rewrites it without superseded lines, and appends to it.
func (s *store) open(path string) error {
	old, err := os.Open(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return fmt.Errorf("open state file: %w", err)
	default:
		err = s.replay(old)
		if err := errors.Join(err, old.Close()); err != nil {
			return fmt.Errorf("read state file %q: %w", path, err)
		}
	}
	return s.rewrite(path)
}

func (s *store) replay(r io.Reader) error {
	lines := bufio.NewReaderSize(r, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // a last line without its end was never acknowledged
		}
		if err != nil {
			return err
		}
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		s.seq = max(s.seq, e.Seq, numberOf(e.ID))
		if was := s.objects[e.ID]; was != nil {
			s.unlink(was, decode(was.fields))
			delete(s.objects, e.ID)
			s.count[was.kind.name]--
			if e.Kind != "" { // a change: the order already has the ID
				o := restored(was.kind, e)
				s.objects[e.ID] = o
				s.count[o.kind.name]++
				s.link(o, decode(o.fields))
			}
			continue
		}
		if e.Kind == "" {
			continue
		}
		k := kindNamed(e.Kind)
		if k == nil {
			return fmt.Errorf("line %d: no kind %q", n, e.Kind)
		}
		o := restored(k, e)
		s.add(o, decode(o.fields))
		if e.Token != "" {
			s.clients[e.Token] = e.ID
		}
	}
}

func restored(k *kind, e entry) *object {
	return &object{
		kind: k, id: e.ID, name: text(decode(e.Fields)["name"]), revision: e.Rev,
		created: e.Created, updated: e.Updated, fields: e.Fields,
	}
}

// rewrite replaces the file by one with only the existing objects, and keeps it open.
func (s *store) rewrite(path string) (err error) {
	tmp := path + ".new"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("write state file: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write state file %q: %w", path, err), f.Close(), os.Remove(tmp))
		}
	}()
	tokens := make(map[string]string, len(s.clients))
	for token, id := range s.clients {
		tokens[id] = token
	}
	w := bufio.NewWriter(f)
	lines := json.NewEncoder(w)
	if err := lines.Encode(entry{Seq: s.seq}); err != nil {
		return err
	}
	for i := range kinds() {
		for _, id := range s.ids[kinds()[i].name] {
			o := s.objects[id]
			if o == nil {
				continue
			}
			e := entry{ID: id, Kind: o.kind.name, Fields: o.fields, Rev: o.revision, Created: o.created, Updated: o.updated, Token: tokens[id]}
			if err := lines.Encode(e); err != nil {
				return err
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	s.journal = &journal{file: f}
	return nil
}

// reset removes everything, also from the file. Numbers continue, so that no ID is used twice.
func (s *store) reset() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
	if s.journal == nil {
		return nil
	}
	path := s.journal.file.Name()
	path = path[:len(path)-len(".new")]
	if err := s.journal.close(); err != nil {
		return err
	}
	return s.rewrite(path)
}
