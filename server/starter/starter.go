// Package starter signs who started a workflow of a user, and who took part in it. The service for Temporal puts these
// stamps into the headers of workflows and activities. It must not know Temporal, requests or roles.
package starter

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// Header is the key of the stamp in the header of a workflow and of its commands.
const Header = "hykube-starter"

// Memo is the key of the memo with the name of the user who started a workflow. The Web UI shows it.
const Memo = "hykubeStartedBy"

// Kind is the use of a stamp. A stamp of one kind is not valid as another.
type Kind string

// Kinds of stamps.
const (
	// OfRun is in the header of a workflow and of its commands. It names the workflow ID.
	OfRun Kind = "run"
	// OfSchedule is in the header of the workflows that a schedule starts. It names the schedule ID.
	OfSchedule Kind = "schedule"
	// OfTask is what a worker gets with an activity task, for its requests to the API. It names the worker's user.
	OfTask Kind = "task"
)

// Stamp says for whom a workflow acts. Each stamp is for one namespace.
type Stamp struct {
	Kind      Kind   `json:"kind"`
	Namespace string `json:"namespace"`
	// ID is the workflow ID of a run, the ID of a schedule, or the user name of a worker.
	ID string `json:"id"`
	// For is the user who started the workflow, and those who took part in it.
	For v1alpha1.Identity `json:"for"`
}

// Signer signs stamps and task tokens. Several servers with one database have the same key.
type Signer struct {
	// Key returns the key of the signatures, which no user knows.
	Key func(ctx context.Context) ([]byte, error)
}

var errInvalid = errors.New("the signature does not fit")

// Sign returns a stamp as a text.
func (s Signer) Sign(ctx context.Context, stamp Stamp) (string, error) {
	data, err := json.Marshal(stamp)
	if err != nil {
		return "", fmt.Errorf("encode stamp: %w", err)
	}
	mac, err := s.mac(ctx, "stamp", data)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(data) + "." + base64.RawURLEncoding.EncodeToString(mac), nil
}

// Verify returns the users of a stamp that Sign made, if it has this kind, namespace and ID.
func (s Signer) Verify(ctx context.Context, text string, kind Kind, namespace, id string) (v1alpha1.Identity, error) {
	stamp, err := s.open(ctx, text)
	if err != nil {
		return v1alpha1.Identity{}, err
	}
	if stamp.Kind != kind || stamp.Namespace != namespace || stamp.ID != id {
		return v1alpha1.Identity{}, errors.New("the stamp is for something else")
	}
	return stamp.For, nil
}

// VerifyTask returns the users of a stamp that a worker with a user name got with an activity task of any namespace.
func (s Signer) VerifyTask(ctx context.Context, text, worker string) (v1alpha1.Identity, error) {
	stamp, err := s.open(ctx, text)
	if err != nil {
		return v1alpha1.Identity{}, err
	}
	if stamp.Kind != OfTask || stamp.ID != worker {
		return v1alpha1.Identity{}, errors.New("another worker got it, or it is no stamp of an activity task")
	}
	return stamp.For, nil
}

func (s Signer) open(ctx context.Context, text string) (stamp Stamp, err error) {
	body, signature, _ := strings.Cut(text, ".")
	data, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return stamp, errInvalid
	}
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return stamp, errInvalid
	}
	mac, err := s.mac(ctx, "stamp", data)
	if err != nil {
		return stamp, err
	}
	if !hmac.Equal(mac, given) {
		return stamp, errInvalid
	}
	if err := json.Unmarshal(data, &stamp); err != nil {
		return stamp, errInvalid
	}
	return stamp, nil
}

// Task is a task token of Temporal with what the answer to the task depends on.
type Task struct {
	// Queue is the task queue of the task.
	Queue string `json:"queue"`
	// Users are the users whose updates the task has. They are in no event of the run before the answer.
	Users []v1alpha1.WorkflowUser `json:"users,omitempty"`
	Token []byte                  `json:"token"`
}

// sealed is a Task with its signature.
type sealed struct {
	Task
	MAC []byte `json:"mac,omitempty"`
}

// Seal returns a task as a token that only this server can have made.
func (s Signer) Seal(ctx context.Context, task Task) ([]byte, error) {
	data, err := json.Marshal(task)
	if err != nil {
		return nil, fmt.Errorf("encode task token: %w", err)
	}
	mac, err := s.mac(ctx, "token", data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed{task, mac})
}

// Unseal returns the task in a token that Seal made.
func (s Signer) Unseal(ctx context.Context, data []byte) (Task, error) {
	var t sealed
	if err := json.Unmarshal(data, &t); err != nil {
		return Task{}, errInvalid
	}
	body, err := json.Marshal(t.Task)
	if err != nil {
		return Task{}, errInvalid
	}
	mac, err := s.mac(ctx, "token", body)
	if err != nil {
		return Task{}, err
	}
	if !hmac.Equal(mac, t.MAC) {
		return Task{}, errInvalid
	}
	return t.Task, nil
}

// mac returns the signature of data for one use.
func (s Signer) mac(ctx context.Context, use string, data []byte) ([]byte, error) {
	key, err := s.Key(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the key of stamps: %w", err)
	}
	h := hmac.New(sha256.New, key)
	h.Write([]byte("hykube workflow " + use + "\x00"))
	h.Write(data)
	return h.Sum(nil), nil
}
