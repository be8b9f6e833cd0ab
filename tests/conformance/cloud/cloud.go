// Package cloud is the cloud of the conformance suite's providers: a directory of JSON files, with a log of all calls
// to a provider, and commands that make the provider misbehave. The tests read and write the same directory. It knows
// no protocol.
package cloud

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DirectoryEnv names the directory for a provider without one in its configuration.
const DirectoryEnv = "CONFORM_DIRECTORY"

// Cloud is a directory. Several processes may use it at once.
type Cloud struct{ dir string }

// Open opens a directory, and creates it if it does not exist.
func Open(dir string) (*Cloud, error) {
	if dir == "" {
		return nil, fmt.Errorf("open cloud: no directory; set the provider's directory, or %s", DirectoryEnv)
	}
	if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o755); err != nil {
		return nil, fmt.Errorf("open cloud: %w", err)
	}
	return &Cloud{dir}, nil
}

// Object is an object of the cloud: strings by name, which is all that the providers store.
type Object map[string]string

func (c *Cloud) path(typeName, id string) string {
	return filepath.Join(c.dir, "objects", typeName+"."+id+".json")
}

// Create creates an object and its ID: the name with the number of the attempt, so that a replacement differs from the
// instance that it replaced.
func (c *Cloud) Create(typeName, name string, o Object) (id string, err error) {
	for n := 1; ; n++ {
		id = fmt.Sprintf("%s-%d", name, n)
		// A name stays in use after its object was removed.
		f, err := os.OpenFile(filepath.Join(c.dir, typeName+"."+id+".taken"), os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("create %s: %w", typeName, err)
		}
		return id, errors.Join(f.Close(), c.Put(typeName, id, o))
	}
}

// Put writes an object.
func (c *Cloud) Put(typeName, id string, o Object) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(c.path(typeName, id), data, 0o644)
}

// Get reads an object. It returns nil if there is none.
func (c *Cloud) Get(typeName, id string) (Object, error) {
	data, err := os.ReadFile(c.path(typeName, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	o := Object{}
	return o, json.Unmarshal(data, &o)
}

// Remove deletes an object. It does nothing if there is none.
func (c *Cloud) Remove(typeName, id string) error {
	err := os.Remove(c.path(typeName, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// IDs returns the IDs of all objects of a type, in order.
func (c *Cloud) IDs(typeName string) ([]string, error) {
	found, err := filepath.Glob(c.path(typeName, "*"))
	ids := make([]string, len(found))
	for i, path := range found {
		ids[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), typeName+"."), ".json")
	}
	slices.Sort(ids)
	return ids, err
}

// Call is one call to a provider.
type Call struct {
	// RPC is the name of the call in the protocol. "Stopped", "Renew" and similar names are the suite's own.
	RPC string `json:"rpc"`
	// Type is the resource type.
	Type string `json:"type,omitempty"`
	// Name is the resource's name, if the call has one.
	Name string `json:"name,omitempty"`
	// Action is Create, Update or Delete, for plans and applies.
	Action string `json:"action,omitempty"`
	// Private holds the private bytes in the call.
	Private []byte `json:"private,omitempty"`
	// Detail holds other facts of the call that a test needs.
	Detail string `json:"detail,omitempty"`
	// PID is the process ID of the provider.
	PID int `json:"pid"`
}

// ActionOf returns the Action of a call: Create, Update or Delete.
func ActionOf(creating, deleting bool) string {
	switch {
	case deleting:
		return "Delete"
	case creating:
		return "Create"
	}
	return "Update"
}

// Log appends a call. Lines of several processes do not mix: each is one write to a file in append mode.
func (c *Cloud) Log(call Call) error {
	call.PID = os.Getpid()
	line, err := json.Marshal(call)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.dir, "calls.log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// Calls returns the calls so far.
func (c *Cloud) Calls() ([]Call, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, "calls.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Call
	for line := range strings.Lines(string(data)) {
		var call Call
		if err := json.Unmarshal([]byte(line), &call); err != nil {
			return nil, fmt.Errorf("read calls.log: %w", err)
		}
		out = append(out, call)
	}
	return out, nil
}

// Command sets how a provider treats the resources of a name from now on, instead of their behaviour attribute. It
// cannot be reverted.
func (c *Cloud) Command(name string, behaviours ...string) error {
	path := filepath.Join(c.dir, name+".command")
	if len(behaviours) == 0 {
		return os.Remove(path)
	}
	return os.WriteFile(path, []byte(strings.Join(behaviours, ",")), 0o644)
}

// Behaviours returns the behaviours that a command set for a name, or else those in its attribute.
func (c *Cloud) Behaviours(name, attribute string) Behaviours {
	if data, err := os.ReadFile(filepath.Join(c.dir, name+".command")); err == nil && name != "" {
		attribute = string(data)
	}
	var out Behaviours
	for b := range strings.SplitSeq(attribute, ",") {
		out = append(out, strings.TrimSpace(b))
	}
	return out
}

// Behaviours lists the ways in which a provider misbehaves.
type Behaviours []string

// Has reports whether a behaviour is in the list.
func (b Behaviours) Has(name string) bool { return slices.Contains(b, name) }

// Options are in a file beside a provider's executable. They change what the provider reports about itself, which is
// fixed from its start, and so also the package's checksum.
type Options struct {
	// Generation is 0 for the first generation of schemas; any other value means the current one.
	Generation *int `json:"generation,omitempty"`
	// NoPlanDestroy and NoMove remove the capabilities.
	NoPlanDestroy bool `json:"noPlanDestroy,omitempty"`
	NoMove        bool `json:"noMove,omitempty"`
	// PaddingMB is the number of megabytes by which the schema grows.
	PaddingMB int `json:"paddingMB,omitempty"`
}

// First reports whether the provider uses the first generation of schemas.
func (o Options) First() bool { return o.Generation != nil && *o.Generation == 0 }

// OptionsFile is the name of the file.
const OptionsFile = "options.json"

// OwnOptions reads the options beside this executable. It returns none without the file.
func OwnOptions() (o Options, err error) {
	exe, err := os.Executable()
	if err != nil {
		return o, err
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(exe), OptionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(data, &o)
}
