package contain

import (
	"fmt"
	"slices"
	"strings"
)

// Support describes the features for sandboxes that the machine and the server's rights provide.
type Support struct {
	// System is true on Linux on amd64 and arm64. Other systems have no sandbox.
	System bool
	// Landlock is the version of its ABI; 0 if the kernel does not support it.
	Landlock int
	// Seccomp is true if the kernel can filter system calls.
	Seccomp bool
	// OwnUser is true if the server can run each provider as another user.
	OwnUser bool
	// Cgroup is true if each process has a cgroup of its own. NoCgroup is the reason why not; "" if the server does not
	// want them.
	Cgroup   bool
	NoCgroup string
	// Controllers limit the cgroup of a process. NoControllers are missing.
	Controllers, NoControllers []string
}

// enough reports whether a sandbox prevents access to files and processes of the server.
func (s Support) enough() bool { return s.System && s.Landlock > 0 && s.Seccomp }

// essential returns the missing features without which enough returns false.
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

// missing returns all missing features, as text for users.
func (s Support) missing(g Grants) []string {
	missing := s.essential()
	if !s.System {
		return missing
	}
	if !s.OwnUser {
		missing = append(missing, "a separate user for each provider (a server that runs as root)")
	}
	if s.NoCgroup != "" {
		missing = append(missing, "a cgroup for each process ("+s.NoCgroup+")")
	}
	for _, c := range s.NoControllers {
		missing = append(missing, "the cgroup controller "+c)
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
				missing = append(missing, fmt.Sprintf("%s (Landlock %d; this kernel has %d)", f.what, f.since,
					s.Landlock))
			}
		}
	}
	return missing
}

// Report describes the restrictions for the processes of a provider.
type Report struct {
	// Contained is true if the processes cannot access files and processes of the server.
	Contained bool
	// Off is true if the server or the Provider turns the sandbox off.
	Off bool
	// Message has one or two sentences for users.
	Message string
}

// report returns the Report for processes with these grants. user is their user ID; 0 means the server's user.
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
	switch {
	case s.Cgroup && len(s.Controllers) > 0:
		holds = append(holds, fmt.Sprintf("a cgroup with limits (%s)", strings.Join(s.Controllers, ", ")))
	case s.Cgroup:
		holds = append(holds, "a cgroup")
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
	// Auto uses all features that the machine supports.
	Auto Mode = "auto"
	// Require refuses to start a provider that is not contained.
	Require Mode = "require"
	// Off uses no sandboxes.
	Off Mode = "off"
)

// ParseMode parses the flag.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); slices.Contains([]Mode{Auto, Require, Off}, m) {
		return m, nil
	}
	return "", fmt.Errorf("use --provider-sandbox %q: write auto, require or off", s)
}
