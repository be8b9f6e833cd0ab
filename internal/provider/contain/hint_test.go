package contain

import (
	"strings"
	"testing"
)

func TestHint(t *testing.T) {
	p := &Policy{config: Config{Mode: Auto}, support: Support{System: true, Landlock: 7, Seccomp: true}}
	g := Grants{Provider: "local", WritePaths: []string{"/srv/out"}, ConnectPorts: []uint16{443}, Environment: []string{"SIM_GRANTED"}}
	for reason, tc := range map[string]struct {
		text, want string
		off        bool
	}{
		"a file":                         {text: "open /etc/motd: permission denied", want: `spec.sandbox.writePaths (or readPaths, executePaths) of the Provider "local"`},
		"a program":                      {text: `fork/exec "/usr/bin/git": operation not permitted`, want: "executePaths"},
		"a port":                         {text: "dial tcp 10.0.0.1:80: connect: permission denied", want: "spec.sandbox.connectPorts"},
		"a granted path, as our user":    {text: "open /srv/out/a: permission denied"},
		"an error of a cloud":            {text: "googleapi: Error 403: Permission denied on resource project x"},
		"another error of a cloud":       {text: "rpc error: code = PermissionDenied desc = permission denied"},
		"without a sandbox":              {text: "open /etc/motd: permission denied", off: true},
		"a path that begins like it":     {text: "open /srv/output: permission denied", want: "writePaths"},
		"an error that is about nothing": {text: "permission denied"},
		"a credential that is missing":   {text: "No token: set the argument token or the environment variable SIM_TOKEN.", want: `add SIM_TOKEN to spec.environment of the Provider "local"`},
		"one that the server gives":      {text: "The environment variable SIM_GRANTED has no token."},
		"one that no provider gets":      {text: "Set the environment variable HYKUBE_TOKEN."},
		"a code of a cloud":              {text: "PERMISSION_DENIED: wrong environment"},
	} {
		t.Run(reason, func(t *testing.T) {
			g.Off = tc.off
			if got := p.Hint("example.com/a/local", g, tc.text); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("hint %q, want %q", got, tc.want)
			}
		})
	}
}
