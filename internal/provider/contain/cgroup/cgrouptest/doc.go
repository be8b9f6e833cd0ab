// Package cgrouptest makes cgroups for tests. It imports only the standard library and golang.org/x/sys.
package cgrouptest
