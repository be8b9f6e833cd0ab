package module

import "github.com/hykube/hykube/internal/diag"

// check reports problems of the tree that concern several blocks.
func (t *Tree) check() diag.Diagnostics { return nil }
