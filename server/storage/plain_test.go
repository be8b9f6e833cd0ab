package storage

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestAPlainRowIsNotRead puts rows into the database that no server encrypted, as somebody who can write to it could.
func TestAPlainRowIsNotRead(t *testing.T) {
	s := openStore(t)
	for _, gr := range []schema.GroupResource{{Resource: "configmaps"}, {Group: "sim.hykube.io", Resource: "sim-networks"}} {
		group := gr.Group
		if group == "" {
			group = "core"
		}
		put(t, s, objectPrefix+"/"+group+"/"+gr.Resource+"/prod/forged", `{"metadata": {"name": "forged"}}`, 0)
		if obj, err := s.Objects().Get(t.Context(), gr, "prod", "forged"); err == nil {
			t.Errorf("a forged row of %s is read: %v", gr, obj)
		}
	}
}
