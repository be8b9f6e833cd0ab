//go:build cgo && linux && (amd64 || arm64)

package entry

// #cgo CFLAGS: -Wall
import "C" // links entry_linux.c
