// Package provider is where Terraform providers come from and where they run: an Installer finds a version that meets a
// constraint, verifies it and puts it on disk as a Package; a Pool starts packages as processes, configures them and returns
// each as a Lease: a tfprotov6.ProviderServer, the one interface that all other packages know, with lists and
// actions, which that interface leaves out for now.
//
// It imports internal/schema and its own subpackages: registry and archive for installing, plugin and protocol for
// running. It knows nothing of API objects, plans or workflows.
package provider
