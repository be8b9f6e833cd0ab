package protocol

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// A large provider has tens of thousands of attributes of a few types.
func TestTypesAreReadOnce(t *testing.T) {
	r, raw := &schemaReader{}, []byte(`["map","string"]`)
	read := func() tftypes.Type { return r.typ("tags", raw) }
	for range 2 {
		if got, want := read(), (tftypes.Map{ElementType: tftypes.String}); !got.Equal(want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { read() }); allocs > 0 {
		t.Errorf("reading a type again takes %v allocations", allocs)
	}
	if r.typ("list", []byte(`["list","bool"]`)).Equal(read()) || r.err != nil {
		t.Errorf("another type is the first one, or an error: %v", r.err)
	}
	r.typ("odd", []byte(`"text"`))
	if r.err == nil || !strings.Contains(r.err.Error(), `"odd"`) {
		t.Errorf("got %v, want an error that names the attribute", r.err)
	}
}
