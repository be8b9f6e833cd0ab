package contain

import (
	"fmt"
	"regexp"
	"slices"
)

// These patterns match the permission errors of files and connections, as Go and C libraries write them. Errors of
// clouds do not have these forms. The protocol has no field for the kind of an error, so the hint depends on the text.
// Only the hint does.
var (
	fileRefused = regexp.MustCompile(`(/[^\s:"']*)["']?: (?:permission denied|operation not permitted)`)
	portRefused = regexp.MustCompile(`connect: (?:permission denied|operation not permitted)`)
	// environmentNamed and variableNamed match an error that names variables from which the provider takes arguments.
	environmentNamed = regexp.MustCompile(`(?i)\benvironment variable`)
	variableNamed    = regexp.MustCompile(`\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b`)
)

// Hint returns the remedy for an error of a provider that its sandbox or its environment may have caused; "" for any
// other error.
func (p *Policy) Hint(source string, g Grants, text string) string {
	if environmentNamed.MatchString(text) {
		for _, name := range variableNamed.FindAllString(text, -1) {
			if Grantable(name) && !slices.Contains(g.Environment, name) && !slices.Contains(passedVariables, name) {
				return fmt.Sprintf("The provider does not get the server's variable %[1]s: set the argument in the ProviderConfig, or add %[1]s to spec.environment of the Provider %[2]q.",
					name, g.Provider)
			}
		}
	}
	if !p.enforces(g) {
		return ""
	}
	if len(g.ConnectPorts) > 0 && portRefused.MatchString(text) {
		return fmt.Sprintf("The provider runs in a sandbox: add the port to spec.sandbox.connectPorts of the Provider %q.", g.Provider)
	}
	m := fileRefused.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	granted := slices.IndexFunc(g.WritePaths, func(dir string) bool { return within(m[1], dir) })
	user := p.User(source, g)
	switch {
	case granted >= 0 && user != 0:
		return fmt.Sprintf("The Provider %[1]q grants %[2]s, but the provider runs as user %[3]d, which has no right there. Give it the path, for example with: chown -R %[3]d %[2]s",
			g.Provider, g.WritePaths[granted], user)
	case granted >= 0:
		return ""
	}
	return fmt.Sprintf("The provider runs in a sandbox: to let it use the path, add it to spec.sandbox.writePaths (or readPaths, executePaths) of the Provider %q.", g.Provider)
}
