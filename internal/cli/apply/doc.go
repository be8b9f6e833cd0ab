// Package apply is the verbs that change infrastructure: apply, destroy and refresh.
package apply
