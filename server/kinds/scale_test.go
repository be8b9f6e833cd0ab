package kinds_test

import (
	"fmt"
	"net/http"
	"runtime"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
)

// large is a provider of the size of the largest ones: 1,500 types of 45 arguments each.
func large() kinds.Provider {
	p := kinds.Provider{Name: "large", Source: "registry.terraform.io/hykube/large", Version: "1.0.0", Schema: &schema.Provider{Resources: map[string]*schema.Schema{}}}
	types := []cty.Type{cty.String, cty.Number, cty.Bool, cty.List(cty.String), cty.Map(cty.String)}
	for i := range 1500 {
		b := &schema.Block{}
		for j := range 20 {
			b.Attributes = append(b.Attributes, &schema.Attribute{
				Name: fmt.Sprintf("attribute_%02d", j), Type: types[j%len(types)], Optional: j%4 != 0, Computed: j%4 == 0, Description: "Some words about it.",
			})
		}
		for j := range 5 {
			inner := &schema.Block{}
			for n := range 5 {
				inner.Attributes = append(inner.Attributes, &schema.Attribute{Name: fmt.Sprintf("inner_%d", n), Type: cty.String, Optional: true})
			}
			b.Blocks = append(b.Blocks, &schema.NestedBlock{TypeName: fmt.Sprintf("block_%d", j), Nesting: schema.NestingList, Block: inner})
		}
		p.Schema.Resources[fmt.Sprintf("large_type_%04d", i)] = &schema.Schema{Block: b}
	}
	return p
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A kind costs bytes until it is used, and little afterwards.
func TestLargeProviderIsCheap(t *testing.T) {
	h := newFixture(t)
	p := large()
	before := heap()
	start := time.Now()
	if err := h.kinds.Set(p); err != nil {
		t.Fatal(err)
	}
	set := time.Since(start)
	idle := heap()
	perKind := (int64(idle) - int64(before)) / 1500
	start = time.Now()
	a := h.do(t, admin, http.MethodGet, "/openapi/v3", "")
	index := time.Since(start)
	start = time.Now()
	a = h.do(t, admin, http.MethodGet, "/openapi/v3/apis/large.hykube.io/v1", "")
	document := time.Since(start)
	if a.code != http.StatusOK {
		t.Fatalf("document: %d", a.code)
	}
	size := len(a.body)
	start = time.Now()
	a = h.do(t, admin, http.MethodGet, swagger, "", "Accept: "+swaggerProtobuf, "Accept-Encoding: gzip")
	merge, packed := time.Since(start), len(a.body)
	a = h.do(t, admin, http.MethodGet, swagger, "")
	mergeSize := len(a.body)
	if a.code != http.StatusOK {
		t.Fatalf("%s: %d", swagger, a.code)
	}
	start = time.Now()
	h.do(t, admin, http.MethodGet, swagger, "", "If-None-Match: "+a.header.Get("Etag"))
	mergeAgain := time.Since(start)
	a = answer{}
	const used = 200
	start = time.Now()
	for i := range used {
		path := fmt.Sprintf("/apis/large.hykube.io/v1/namespaces/default/large-type-%04ds", i)
		if a := h.do(t, admin, http.MethodGet, path, ""); a.code != http.StatusOK {
			t.Fatalf("list: %d %s", a.code, a.body)
		}
	}
	first := time.Since(start) / used
	perUsed := (int64(heap()) - int64(idle)) / used
	t.Logf("set %v; %d bytes a kind; index %v; document %d bytes in %v; first use %v and %d bytes a kind",
		set, perKind, index, size, document, first, perUsed)
	t.Logf("%s: %d bytes, %d as compressed protobuf, built in %v; unchanged in %v", swagger, mergeSize, packed, merge, mergeAgain)
	if mergeSize > 1500<<10 || merge > 10*time.Second || mergeAgain > 500*time.Millisecond {
		t.Errorf("%s is too large or too slow", swagger)
	}
	if perKind > 4<<10 {
		t.Errorf("an unused kind costs %d bytes", perKind)
	}
	if perUsed > 64<<10 {
		t.Errorf("a used kind costs %d bytes", perUsed)
	}
	if set > 5*time.Second || document > 20*time.Second || first > time.Second {
		t.Error("too slow by far")
	}
	before = heap()
	h.kinds.Remove("large")
	eventually(t, func() error {
		if now := heap(); now > before {
			return fmt.Errorf("removing the provider freed nothing: %d bytes before, %d after", before, now)
		}
		return nil
	})
}
