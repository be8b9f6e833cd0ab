// Package provider installs and runs Terraform providers. An Installer finds a version that meets a constraint,
// verifies it and writes it to disk as a Package. A Pool starts packages as processes and configures them. It returns
// a Lease on a process: a tfprotov6.ProviderServer, extended by lists and actions. Other packages call a provider only
// through a Lease.
//
// It imports internal/schema and its own subpackages: registry, mirror and archive to install, plugin and protocol to
// run. It knows no API objects, plans or workflows.
package provider
