package contain

import (
	"encoding/json"
	"slices"
)

// Grants are the rights that a Provider object gives to its processes, in addition to those of every provider. The zero
// value grants nothing.
type Grants struct {
	// Provider is the name of the Provider object. Only messages use it.
	Provider string `json:",omitempty"`
	// Off runs the processes without a sandbox, with the server's user and files. The environment remains restricted.
	Off bool `json:",omitempty"`
	// ReadPaths, WritePaths and ExecutePaths are absolute paths. A directory includes everything below it.
	ReadPaths, WritePaths, ExecutePaths []string `json:",omitempty"`
	// ConnectPorts are the TCP ports to which the processes may connect. Empty allows all ports.
	ConnectPorts []uint16 `json:",omitempty"`
	// Environment holds the names of the server's variables that the processes get.
	Environment []string `json:",omitempty"`
}

// Key returns a string that is equal only for equal grants. Processes with different keys must not be shared.
func (g Grants) Key() string {
	data, err := json.Marshal(g)
	if err != nil {
		panic(err) // cannot fail for strings and numbers
	}
	return string(data)
}

// paths returns all granted paths.
func (g Grants) paths() []string { return slices.Concat(g.ReadPaths, g.WritePaths, g.ExecutePaths) }
