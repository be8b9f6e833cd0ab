// Package addrs parses and formats the addresses of resources, as arguments, flags and references name them. It sends
// no requests.
package addrs
