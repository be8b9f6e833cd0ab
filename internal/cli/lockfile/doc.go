// Package lockfile reads Terraform's dependency lock file.
package lockfile
