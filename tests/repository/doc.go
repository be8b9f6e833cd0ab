// Package repository tests the rules of the repository: imports, package comments, links, commands and messages in the
// docs. It reads files and calls the go command. Of Hykube it imports only the plugin's commands, which the docs
// mention.
package repository
