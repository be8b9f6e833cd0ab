// Package ownership has the list of the running workflows and of the schedules of a namespace, with the users for whom
// they act. The server writes it as JSON, and the plugin reads it. It must not know Temporal.
package ownership

import "time"

// Path begins the path of the list. The name of a namespace follows.
const Path = "/workflows/"

// List has what runs in a namespace, and what starts there by itself.
type List struct {
	Workflows []Workflow `json:"workflows"`
	Schedules []Schedule `json:"schedules"`
}

// Workflow is a run that goes on.
type Workflow struct {
	ID        string `json:"id"`
	RunID     string `json:"runID"`
	Type      string `json:"type"`
	TaskQueue string `json:"taskQueue"`
	// StartedBy is the user for whom the workflow acts.
	StartedBy string    `json:"startedBy"`
	StartedAt time.Time `json:"startedAt"`
	// Schedule started the run; empty if none did.
	Schedule string `json:"schedule,omitempty"`
}

// Schedule starts workflows.
type Schedule struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	TaskQueue string `json:"taskQueue"`
	// Owner is the user for whom its workflows act.
	Owner  string `json:"owner"`
	Paused bool   `json:"paused"`
	// Note says why the schedule is paused.
	Note string `json:"note,omitempty"`
	// Next is the time of its next run; nil if there is none.
	Next *time.Time `json:"next,omitempty"`
}
