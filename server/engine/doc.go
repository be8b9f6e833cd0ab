// Package engine runs what makes Hykube's work durable: a Temporal server inside this process with its Web UI, or
// a client of a Temporal cluster that somebody else runs. It keeps orchestration only; losing its files loses no
// state of anyone's infrastructure.
//
// It imports Temporal and nothing of Hykube. It must not know what a plan, a provider or a resource is: workflows
// and activities are registered by whoever asks for Client.
package engine
