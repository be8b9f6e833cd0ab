// Package planapi reads and decides Plans on a server, and says in which state a Plan is and who may approve it. It
// makes no decision of a verb; package operation does.
package planapi
