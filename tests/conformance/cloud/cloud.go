// Package cloud is the cloud of the conformance suite's providers: a directory of JSON files, with a log of all calls
// that reached a provider, and commands that make it misbehave. The tests read and write the same directory. It knows
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

// DirectoryEnv names the directory for a provider whose configuration does not.
const DirectoryEnv = "CONFORM_DIRECTORY"

// Cloud is a directory. Several processes may use it at once.
type Cloud struct{ dir string }

// Open makes the directory when it is missing.
func Open(dir string) (*Cloud, error) {
	if dir == "" {
		return nil, fmt.Errorf("open cloud: no directory; set the provider's directory, or %s", DirectoryEnv)
	}
	if err := os.MkdirAll(filepath.Join(dir, "objects"), 0o755); err != nil {
		return nil, fmt.Errorf("open cloud: %w", err)
	}
	return &Cloud{dir}, nil
}

// Object is what exists: strings by name, which is all that the providers keep.
type Object map[string]string

func (c *Cloud) path(typeName, id string) string {
	return filepath.Join(c.dir, "objects", typeName+"."+id+".json")
}

// Create makes an object, and its id: the name with the number of the attempt, so that a replacement can be told from what it replaced.
func (c *Cloud) Create(typeName, name string, o Object) (id string, err error) {
	for n := 1; ; n++ {
		id = fmt.Sprintf("%s-%d", name, n)
		// A name is taken for ever, also when its object is gone.
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

// Get reads an object; nil when there is none.
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

// Remove deletes an object; one that is gone is fine.
func (c *Cloud) Remove(typeName, id string) error {
	err := os.Remove(c.path(typeName, id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// IDs are those of all objects of a type, in order.
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
	// RPC is the protocol's name of it; "Stopped", "Renew" and the like stand for themselves.
	RPC string `json:"rpc"`
	// Type is the resource type.
	Type string `json:"type,omitempty"`
	// Name is the resource's name, where one can be told.
	Name string `json:"name,omitempty"`
	// Action is Create, Update or Delete for plans and applies.
	Action string `json:"action,omitempty"`
	// Private are the private bytes that came with the call.
	Private []byte `json:"private,omitempty"`
	// Detail is whatever a test wants to know of such a call.
	Detail string `json:"detail,omitempty"`
	// PID is that of the provider's process.
	PID int `json:"pid"`
}

// Log appends a call. Lines of several processes do not mix: each is one write to a file opened for appending.
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

// Calls are those so far.
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

// Command tells a provider how to treat the resources of a name from now on, whatever their behaviour attribute says;
// nothing takes the command back.
func (c *Cloud) Command(name string, behaviours ...string) error {
	path := filepath.Join(c.dir, name+".command")
	if len(behaviours) == 0 {
		return os.Remove(path)
	}
	return os.WriteFile(path, []byte(strings.Join(behaviours, ",")), 0o644)
}

// Behaviours are those that were commanded for a name, else those that its attribute asks for.
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

// Behaviours say in what a provider misbehaves.
type Behaviours []string

// Has says whether it misbehaves so.
func (b Behaviours) Has(name string) bool { return slices.Contains(b, name) }

// Options are what a provider's executable finds in a file beside it: they change what it says of itself, which has to be
// fixed from the start, and change the package's checksum with it.
type Options struct {
	// Generation is 0 for the first generation of schemas; anything else is the current one.
	Generation *int `json:"generation,omitempty"`
	// NoPlanDestroy and NoMove take the capabilities away.
	NoPlanDestroy bool `json:"noPlanDestroy,omitempty"`
	NoMove        bool `json:"noMove,omitempty"`
	// PaddingMB makes the schema so many megabytes larger.
	PaddingMB int `json:"paddingMB,omitempty"`
}

// First says whether the first generation of schemas is asked for.
func (o Options) First() bool { return o.Generation != nil && *o.Generation == 0 }

// OptionsFile is their name.
const OptionsFile = "options.json"

// OwnOptions reads the options beside this executable; none is none.
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
