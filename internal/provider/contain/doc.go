// Package contain runs provider programs with minimal rights. The server prepares a Sandbox for each process: a private
// directory, an environment, a user, a Landlock ruleset and a system call filter. It then starts its own binary as
// "hykube provider-exec". That process drops its rights and executes the file that the server has verified; see package
// entry.
//
// It imports only the standard library, golang.org/x/sys and go-landlock. It must not know plugin protocols or API
// objects.
package contain
