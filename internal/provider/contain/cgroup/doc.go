// Package cgroup puts processes into cgroups of their own (cgroup v2), below a cgroup that is delegated to the server.
//
// Below the delegated cgroup there are two: hykube-server for the server itself, because a cgroup whose children have
// controllers cannot have processes, and hykube-providers-NUMBER for the processes that the server starts. See
// https://docs.kernel.org/admin-guide/cgroup-v2.html and https://systemd.io/CGROUP_DELEGATION.
//
// It imports only the standard library, golang.org/x/sys and package dirlock. It must not know what the processes do.
package cgroup
