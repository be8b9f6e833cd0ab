package simcloud

import (
	"fmt"
	"net/http"
	"path"
	"sync"
	"time"
)

// The times at which a fault occurs.
const (
	// Before the effect of the call: nothing happens. This is the default.
	Before = "before"
	// After the effect of the call: the answer is lost.
	After = "after"
)

// The actions of a fault.
const (
	// ActionStatus answers with a status. This is the default.
	ActionStatus = "status"
	// ActionClose closes the connection without an answer.
	ActionClose = "close"
	// ActionHang sends no answer until the caller gives up, the fault is removed, or its delay ends.
	ActionHang = "hang"
	// ActionDelay sends the usual answer after the fault's delay.
	ActionDelay = "delay"
	// ActionFail lets a create succeed, and gives the new object the status "failed". Kinds without a status ignore it.
	ActionFail = "fail"
)

// Fault makes calls fail on command.
type Fault struct {
	// ID is assigned by the cloud.
	ID int64 `json:"id"`
	// Kind and Op select calls; empty selects all. Name is a pattern as in path.Match. Object is an ID.
	Kind   string `json:"kind,omitempty"`
	Op     string `json:"op,omitempty"`
	Name   string `json:"name,omitempty"`
	Object string `json:"object,omitempty"`
	// Skip is the number of matching calls that pass first.
	Skip int `json:"skip,omitempty"`
	// Count is the number of calls that the fault affects; 0 means all until it is removed.
	Count int `json:"count,omitempty"`
	// When is Before or After; empty means Before.
	When string `json:"when,omitempty"`
	// Action is one of the actions above; empty means ActionStatus.
	Action string `json:"action,omitempty"`
	// Status is for ActionStatus; 0 means 500. Message is the message of the error.
	Status  int    `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	// RetryAfter is sent with the status; 0 means that it is not.
	RetryAfter Duration `json:"retryAfter,omitempty"`
	// Delay is for ActionDelay, and the maximum time for ActionHang; 0 means no maximum.
	Delay Duration `json:"delay,omitempty"`
	// Fired is the number of calls that the fault affected.
	Fired int `json:"fired"`
}

func (f *Fault) validate() error {
	if err := checkKindOp(f.Kind, f.Op); err != nil {
		return err
	}
	if _, err := path.Match(f.Name, ""); err != nil {
		return fmt.Errorf("name %q is no pattern: %w", f.Name, err)
	}
	if f.Skip < 0 || f.Count < 0 {
		return fmt.Errorf("skip and count can't be negative")
	}
	switch f.When {
	case "", Before, After:
	default:
		return fmt.Errorf("no time %q; there are %s and %s", f.When, Before, After)
	}
	switch f.Action {
	case "", ActionStatus, ActionClose, ActionHang, ActionDelay, ActionFail:
	default:
		return fmt.Errorf("no action %q; there are %s, %s, %s, %s and %s", f.Action, ActionStatus, ActionClose, ActionHang, ActionDelay, ActionFail)
	}
	if f.Status != 0 && (f.Status < 200 || f.Status > 599) {
		return fmt.Errorf("status %d is no HTTP status from 200 to 599", f.Status)
	}
	return nil
}

// answer returns the answer of ActionStatus.
func (f *Fault) answer() *Error {
	e := &Error{Status: f.Status, Code: "InjectedFault", Message: f.Message}
	if e.Status == 0 {
		e.Status = http.StatusInternalServerError
	}
	if e.Message == "" {
		e.Message = "this fault was asked for"
	}
	e.RetryAfter = time.Duration(f.RetryAfter)
	return e
}

// faults holds the faults in the order in which they were added.
type faults struct {
	mu   sync.Mutex
	last int64
	all  []*armed
}

type armed struct {
	Fault
	seen    int
	removed chan struct{}
}

func (fs *faults) add(f Fault) Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.last++
	f.ID, f.Fired, f.Kind = fs.last, 0, canonical(f.Kind)
	fs.all = append(fs.all, &armed{Fault: f, removed: make(chan struct{})})
	return f
}

// strike returns the first fault that matches a call and is not used up, and counts the call; nil if there is none.
func (fs *faults) strike(kind, op, name, object string) (*Fault, <-chan struct{}) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	for _, a := range fs.all {
		if a.Kind != "" && a.Kind != kind || a.Op != "" && a.Op != op || !matchName(a.Name, name) || a.Object != "" && a.Object != object {
			continue
		}
		if a.Count > 0 && a.Fired >= a.Count {
			continue
		}
		if a.seen++; a.seen <= a.Skip {
			continue
		}
		a.Fired++
		f := a.Fault
		return &f, a.removed
	}
	return nil, nil
}

// remove removes a fault, or all if id is 0, and ends the calls that hang because of it.
func (fs *faults) remove(id int64) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	found := false
	kept := fs.all[:0:0]
	for _, a := range fs.all {
		if id == 0 || a.ID == id {
			close(a.removed)
			found = true
			continue
		}
		kept = append(kept, a)
	}
	fs.all = kept
	return found
}

func (fs *faults) list() []Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	out := []Fault{}
	for _, a := range fs.all {
		out = append(out, a.Fault)
	}
	return out
}
