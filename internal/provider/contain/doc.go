// Package contain runs the programs of providers with as few rights as the machine allows. The server prepares a Sandbox for each
// process: a private directory, an environment, a user, a ruleset of Landlock, and a filter of system calls. It then starts its own
// binary again as "hykube provider-exec". That process, see package entry, gives up its rights and executes the file that the
// server verified.
//
// It imports the standard library, golang.org/x/sys and go-landlock. It knows no plugin protocol and no API objects.
package contain
