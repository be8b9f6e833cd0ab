// Package simcloud is a cloud in one process. It has an HTTP API with networks, instances, disks and other kinds that
// depend on each other. A control API under /_sim/ makes it slow, throttled, eventually consistent or faulty, changes
// objects, and lists all calls. Demos, tests and benchmarks use it. It imports only the standard library and does not
// know Terraform or Hykube.
//
// The API is plain REST: POST and GET on /v1/<collection>, GET, PUT and DELETE on /v1/<collection>/<id>, and POST on
// /v1/disks/<id>/attach and /detach, /v1/instances/<id>/reboot and /v1/sessions/<id>/renew. A PUT changes the fields of
// its body and keeps the others; a null removes one. Except for a few kinds, names are not unique, so that tests can
// find duplicates.
package simcloud
