// Package diff writes the changes of a plan as text for people: every attribute of a change the way Terraform
// shows it, the first screen of a plan of any size, and diagnostics. It reads the API types of a plan and
// nothing else: no client, no schema, no terminal. Whoever calls it says how wide the page is and whether it has colours.
//
// It may import api, apimachinery and text width helpers. It must not know commands, servers or providers.
package diff
