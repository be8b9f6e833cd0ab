// Package simcloud is a cloud in one process: an HTTP API with networks, instances, disks and the like that depend
// on each other, and a control API under /_sim/ that makes it slow, throttled, eventually consistent or faulty on
// command, changes objects behind a provider's back, and tells every call that was made. Demos, tests, benchmarks
// and chaos runs share it. It imports the standard library alone and knows nothing of Terraform or Hykube.
//
// The API is plain REST: POST and GET on /v1/<collection>, GET, PUT and DELETE on /v1/<collection>/<id>, and
// POST on /v1/disks/<id>/attach and /detach, /v1/instances/<id>/reboot and /v1/sessions/<id>/renew. A PUT changes the fields that it carries and keeps the others; a null
// removes one. Names are not unique, except where a kind says so, so that a duplicate made by mistake can be seen.
package simcloud
