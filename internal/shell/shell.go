// Package shell quotes words of the shell commands that messages print. It imports only the standard library.
package shell

import (
	"regexp"
	"strings"
)

var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]+$`)

// Word quotes text as one word of a POSIX shell. The name of an instance needs that: web[3] is a pattern in a shell,
// and web["a"] has quotes.
func Word(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
