// Package verify is the verb verify, which plans everything and reports what differs.
package verify
