// Package state is the verbs taint and untaint, and those below state: list, show, rm, mv, pull and push.
package state
