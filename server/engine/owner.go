package engine

import (
	"os"
	"os/user"
	"strconv"
	"sync"
	_ "unsafe" // for go:linkname
)

// processOwner is the function with which the SDK of OpenTelemetry finds the user of the process. Temporal describes
// the process for its traces, also without traces, and does not start if the function fails. There is no option for it.
//
//go:linkname processOwner go.opentelemetry.io/otel/sdk/resource.owner
var processOwner func() (*user.User, error)

// allowUnnamedUser lets Temporal start as a user without a name in the system, as in a container with an arbitrary user
// ID.
var allowUnnamedUser = sync.OnceFunc(func() { nameUser(user.Current) })

// nameUser gives the user of the process its ID as its name if current fails.
func nameUser(current func() (*user.User, error)) {
	if _, err := current(); err == nil {
		return
	}
	uid, gid := strconv.Itoa(os.Getuid()), strconv.Itoa(os.Getgid())
	processOwner = func() (*user.User, error) { return &user.User{Uid: uid, Gid: gid, Username: uid}, nil }
}
