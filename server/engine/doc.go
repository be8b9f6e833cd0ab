// Package engine runs Temporal: an embedded server with its Web UI, or a client of an external Temporal server. It
// stores only orchestration data; without its files, no state of infrastructure is lost.
//
// It imports Temporal and no other package of Hykube. It must not know plans, providers or resources: the users of its
// Client register workflows and activities.
package engine
