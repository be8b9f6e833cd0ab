package contain

import (
	"encoding/json"
	"slices"
)

// Grants are the rights that a Provider object gives to its processes, beside those that every provider has. The zero value gives none.
type Grants struct {
	// Provider is the name of the Provider object, for messages.
	Provider string `json:",omitempty"`
	// Off runs the processes without a sandbox, with the user and the files of the server. The environment stays restricted.
	Off bool `json:",omitempty"`
	// ReadPaths, WritePaths and ExecutePaths are absolute paths of files or directories, with all that is below them.
	ReadPaths, WritePaths, ExecutePaths []string `json:",omitempty"`
	// ConnectPorts are the TCP ports that the processes may connect to; empty allows all.
	ConnectPorts []uint16 `json:",omitempty"`
	// Environment names the variables of the server that the processes get.
	Environment []string `json:",omitempty"`
}

// Key is equal for equal grants. Processes with different keys must not be shared.
func (g Grants) Key() string {
	data, err := json.Marshal(g)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	return string(data)
}

// paths are all granted paths.
func (g Grants) paths() []string { return slices.Concat(g.ReadPaths, g.WritePaths, g.ExecutePaths) }
