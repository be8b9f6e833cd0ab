package contain

import (
	"fmt"
	"slices"
	"strings"
)

// Support is what a machine, and the rights of the server, allow to contain a provider with.
type Support struct {
	// System is false where nothing of this is implemented, as on macOS, or on other processors than amd64 and arm64.
	System bool
	// Landlock is the version of its interface; 0 when the kernel has none or does not allow it.
	Landlock int
	// Seccomp says whether system calls can be filtered.
	Seccomp bool
	// OwnUser says whether the server can run each provider as another user.
	OwnUser bool
}

// enough says whether providers reach no file and no process of the server.
func (s Support) enough() bool { return s.System && s.Landlock > 0 && s.Seccomp }

// essential are the missing features without which a provider is not contained.
func (s Support) essential() []string {
	if !s.System {
		return []string{"a sandbox (Linux on amd64 or arm64)"}
	}
	var missing []string
	if s.Landlock == 0 {
		missing = append(missing, "Landlock (files, signals and abstract sockets)")
	}
	if !s.Seccomp {
		missing = append(missing, "seccomp (system calls)")
	}
	return missing
}

// missing are all features that are missing, as a person reads them.
func (s Support) missing(g Grants) []string {
	missing := s.essential()
	if !s.System {
		return missing
	}
	if !s.OwnUser {
		missing = append(missing, "an own user of each provider (a server that runs as root)")
	}
	if s.Landlock > 0 {
		for _, f := range []struct {
			since int
			what  string
			apply bool
		}{
			{3, "truncation of files", true},
			{4, "TCP ports", len(g.ConnectPorts) > 0},
			{5, "control of devices", true},
			{6, "signals and abstract sockets", true},
			{9, "unix sockets with a path", true},
		} {
			if f.apply && s.Landlock < f.since {
				missing = append(missing, fmt.Sprintf("%s (Landlock %d; this kernel has %d)", f.what, f.since, s.Landlock))
			}
		}
	}
	return missing
}

// Report says how the processes of a provider are contained.
type Report struct {
	// Contained is true when they reach no file and no process of the server.
	Contained bool
	// Off is true when they are not contained because the server or the Provider says so.
	Off bool
	// Message is one or two sentences for a person.
	Message string
}

// report describes processes with these grants that run as a user; 0 is the server's.
func (s Support) report(mode Mode, g Grants, user int) Report {
	switch {
	case mode == Off:
		return Report{Off: true, Message: "The server runs providers without a sandbox (--provider-sandbox=off)."}
	case g.Off:
		return Report{Off: true, Message: "spec.sandbox.mode is Off: the provider runs with the user and the files of the server."}
	}
	var holds []string
	if user != 0 {
		holds = append(holds, fmt.Sprintf("user %d", user))
	}
	if s.System {
		holds = append(holds, "no capabilities", "resource limits")
	}
	if s.Landlock > 0 {
		holds = append(holds, fmt.Sprintf("Landlock %d", s.Landlock))
	}
	if s.Seccomp {
		holds = append(holds, "seccomp")
	}
	r := Report{Contained: s.enough()}
	if len(holds) > 0 {
		r.Message = "Processes have: " + strings.Join(holds, ", ") + "."
	}
	if missing := s.missing(g); len(missing) > 0 {
		r.Message += " Missing on this machine: " + strings.Join(missing, "; ") + "."
	}
	r.Message = strings.TrimSpace(r.Message)
	return r
}

// Mode is the value of the server's flag --provider-sandbox.
type Mode string

const (
	// Auto contains providers with all that the machine has.
	Auto Mode = "auto"
	// Require refuses to start a provider that is not contained.
	Require Mode = "require"
	// Off contains no provider.
	Off Mode = "off"
)

// ParseMode reads the flag.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains([]Mode{Auto, Require, Off}, m) {
		return m, nil
	}
	return "", fmt.Errorf("use --provider-sandbox %q: write auto, require or off", s)
}
