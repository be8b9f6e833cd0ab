package simcloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
)

// control serves the control API. It is always consistent, and neither latency nor throttling nor faults affect it. The
// log does not have its calls. It requires the same token as the API.
func (s *Server) control() {
	s.mux.HandleFunc("GET /_sim/health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"status": "ok"})
	})
	handle := func(pattern string, h func(r *http.Request) (any, error)) {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if !s.authorized(r) {
				writeError(w, &Error{Status: http.StatusUnauthorized, Code: "Unauthorized", Message: "the token is missing or wrong"})
				return
			}
			body, err := h(r)
			switch {
			case err != nil:
				writeError(w, asError(err))
			case body == nil:
				writeJSON(w, http.StatusNoContent, nil)
			default:
				writeJSON(w, http.StatusOK, body)
			}
		})
	}
	handle("GET /_sim/settings", func(*http.Request) (any, error) { return s.Settings(), nil })
	handle("PUT /_sim/settings", func(r *http.Request) (any, error) {
		var set Settings
		if err := readBody(r, &set); err != nil {
			return nil, err
		}
		if err := s.Change(set); err != nil {
			return nil, badRequest(err)
		}
		return s.Settings(), nil
	})
	handle("GET /_sim/faults", func(*http.Request) (any, error) { return map[string]any{"items": s.faults.list()}, nil })
	handle("POST /_sim/faults", func(r *http.Request) (any, error) {
		var f Fault
		if err := readBody(r, &f); err != nil {
			return nil, err
		}
		if err := f.validate(); err != nil {
			return nil, badRequest(err)
		}
		return s.faults.add(f), nil
	})
	handle("DELETE /_sim/faults", func(*http.Request) (any, error) { s.faults.remove(0); return nil, nil })
	handle("DELETE /_sim/faults/{id}", func(r *http.Request) (any, error) {
		id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
		if err != nil || id < 1 || !s.faults.remove(id) {
			return nil, notFound("fault", r.PathValue("id"))
		}
		return nil, nil
	})
	handle("GET /_sim/calls", func(r *http.Request) (any, error) {
		f, limit, err := readFilter(r)
		if err != nil {
			return nil, badRequest(err)
		}
		calls, total := s.calls.find(f, limit)
		return callList{Items: calls, Total: total}, nil
	})
	handle("DELETE /_sim/calls", func(*http.Request) (any, error) { s.calls.reset(); return nil, nil })
	handle("GET /_sim/stats", func(*http.Request) (any, error) { return s.stats(), nil })
	handle("GET /_sim/objects/{kind}", func(r *http.Request) (any, error) {
		k, err := kindOf(r)
		if err != nil {
			return nil, err
		}
		q := r.URL.Query()
		items, more := s.store.list(k, q.Get("name"), q.Get("after"), 1000, true)
		return objectList{Items: items, Next: more}, nil
	})
	handle("GET /_sim/objects/{kind}/{id}", func(r *http.Request) (any, error) {
		k, id, err := s.objectOf(r)
		if err != nil {
			return nil, err
		}
		return s.store.read(k, id, true)
	})
	handle("PATCH /_sim/objects/{kind}/{id}", func(r *http.Request) (any, error) {
		k, id, err := s.objectOf(r)
		if err != nil {
			return nil, err
		}
		var fields map[string]any
		if err := readBody(r, &fields); err != nil {
			return nil, err
		}
		return s.store.drift(k, id, fields)
	})
	handle("DELETE /_sim/objects/{kind}/{id}", func(r *http.Request) (any, error) {
		k, id, err := s.objectOf(r)
		if err != nil {
			return nil, err
		}
		return nil, s.store.remove(k, id, r.URL.Query().Get("force") == "true", &Settings{})
	})
	handle("POST /_sim/reset", func(*http.Request) (any, error) { return nil, s.Reset() })
}

type callList struct {
	Items []Call `json:"items"`
	Total int    `json:"total"`
}

type objectList struct {
	Items []map[string]any `json:"items"`
	Next  string           `json:"next"`
}

// Reset removes objects, calls and faults, and restores the initial settings.
func (s *Server) Reset() error {
	s.faults.remove(0)
	s.calls.reset()
	return errors.Join(s.store.reset(), s.Change(s.initial))
}

func (s *Server) stats() Stats {
	st := s.calls.stats()
	st.Batches = s.batches.Load()
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	st.Objects = maps.Clone(s.store.count)
	maps.DeleteFunc(st.Objects, func(_ string, n int) bool { return n == 0 })
	return st
}

func kindOf(r *http.Request) (*kind, error) {
	name := r.PathValue("kind")
	if k := kindNamed(name); k != nil {
		return k, nil
	}
	return nil, &Error{Status: http.StatusNotFound, Code: "UnknownKind",
		Message: fmt.Sprintf("there is no kind %q; there are %s", name, strings.Join(KindNames(), ", "))}
}

// objectOf returns the object in a path, by its ID or by a unique name.
func (s *Server) objectOf(r *http.Request) (*kind, string, error) {
	k, err := kindOf(r)
	if err != nil {
		return nil, "", err
	}
	id := r.PathValue("id")
	if _, err := s.store.read(k, id, true); err == nil {
		return k, id, nil
	}
	switch items, _ := s.store.list(k, id, "", 2, true); len(items) {
	case 0:
		return nil, "", notFound(k.name, id)
	case 1:
		return k, text(items[0]["id"]), nil
	default:
		return nil, "", conflict("Ambiguous", "more than one %s is named %q; give an id", k.name, id)
	}
}

func readBody(r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return badRequest(err)
	}
	return nil
}

func badRequest(err error) error {
	return &Error{Status: http.StatusBadRequest, Code: "InvalidParameter", Message: err.Error()}
}

func readFilter(r *http.Request) (f Filter, limit int, err error) {
	q := r.URL.Query()
	f = Filter{
		Kind: q.Get("kind"), Op: q.Get("op"), Method: q.Get("method"), Name: q.Get("name"), Object: q.Get("object"),
		Effect: q.Get("effect") == "true", Pending: q.Get("pending") == "true", RequestID: q.Get("requestID"),
	}
	for name, into := range map[string]*int{"status": &f.Status, "limit": &limit} {
		if v := q.Get(name); v != "" {
			if *into, err = strconv.Atoi(v); err != nil {
				return f, 0, fmt.Errorf("%s %q is no number", name, v)
			}
		}
	}
	if v := q.Get("since"); v != "" {
		if f.Since, err = strconv.ParseInt(v, 10, 64); err != nil {
			return f, 0, fmt.Errorf("since %q is no number", v)
		}
	}
	if err := checkKindOp(f.Kind, f.Op); err != nil {
		return f, 0, err
	}
	f.Kind = canonical(f.Kind)
	return f, limit, nil
}
