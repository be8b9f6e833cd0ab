package kinds

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/hykube/hykube/internal/schema"
)

const openAPIPath = "/openapi/v3"

// kubectlCommand is the header in which kubectl names its command, such as "kubectl apply".
const kubectlCommand = "Kubectl-Command"

// document is an OpenAPI document of a group. It is built on the first request and kept compressed. The document of a
// large provider has about 10 MB as text and a tenth of that as gzip.
type document struct {
	mu sync.Mutex
	// json and protobuf are compressed; nil until the first request.
	json, protobuf []byte
}

// WithOpenAPI serves the documents of the providers' groups, and adds them to the index and to /openapi/v2. It passes
// other requests to next, which serves the documents of the fixed kinds. It must run after authorization, so wrap it
// around the handler that genericapiserver.Config.BuildHandlerChainFunc receives. The generic server's own service
// would build every document for the index, which each kubectl command reads.
func (k *Kinds) WithOpenAPI(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, ok := strings.CutPrefix(r.URL.Path, openAPIPath)
		switch {
		case r.URL.Path == swaggerPath:
			k.serveSwagger(w, r, next)
		case !ok || path != "" && path[0] != '/':
			next.ServeHTTP(w, r)
		case path == "" || path == "/":
			k.serveIndex(w, r, next)
		default:
			for _, g := range k.snapshot.Load().groups {
				if path == "/apis/"+g.version.String() {
					k.serveDocument(w, r, g)
					return
				}
			}
			next.ServeHTTP(w, r)
		}
	})
}

// serveIndex adds the providers' groups to the index from next.
func (k *Kinds) serveIndex(w http.ResponseWriter, r *http.Request, next http.Handler) {
	rec := &recorder{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(rec, unconditional(r))
	index := handler3.OpenAPIV3Discovery{}
	if rec.code == http.StatusOK {
		if err := json.Unmarshal(rec.body.Bytes(), &index); err != nil {
			k.log.Error("index of OpenAPI documents cannot be read", "error", err)
		}
	} else if rec.code != http.StatusNotFound {
		rec.copyTo(w)
		return
	}
	if index.Paths == nil {
		index.Paths = map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}
	}
	operations := readsOperations(r)
	for _, g := range k.snapshot.Load().groups {
		hash := g.documentHash()
		if operations {
			hash = g.operationsHash()
		}
		u := url.URL{Path: openAPIPath + "/apis/" + g.version.String(), RawQuery: url.Values{"hash": {hash}}.Encode()}
		index.Paths["apis/"+g.version.String()] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: u.String()}
	}
	body, err := json.Marshal(index)
	if err != nil {
		k.fail(w, r, err)
		return
	}
	sum := sha256.Sum256(body)
	etag := `"` + strings.ToUpper(hex.EncodeToString(sum[:])) + `"`
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Vary", kubectlCommand)
	w.Header().Set("Etag", etag)
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body)
}

// readsOperations reports whether a request comes from a command of kubectl that writes objects. Such a command reads
// only whether the PATCH of a kind supports field validation and strategic merges, but it parses the document up to
// twice for each kind. The index leads it to a document without models, which is a tenth as large. All other clients
// need the models.
func readsOperations(r *http.Request) bool {
	words := strings.Fields(strings.TrimPrefix(r.Header.Get(kubectlCommand), "hykube "))
	return len(words) > 1 && words[0] == "kubectl" &&
		slices.Contains([]string{"apply", "create", "diff", "edit", "replace"}, words[1])
}

// unconditional returns a copy of a request without conditions and compression, so that the response is complete and
// plain.
func unconditional(r *http.Request) *http.Request {
	plain := r.Clone(r.Context())
	for _, name := range []string{"If-None-Match", "If-Match", "If-Modified-Since", "If-Unmodified-Since",
		"Accept-Encoding", "Range", "If-Range"} {
		plain.Header.Del(name)
	}
	return plain
}

// recorder records a response instead of sending it.
type recorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(code int)        { r.code = code }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }

func (r *recorder) copyTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.code)
	_, _ = w.Write(r.body.Bytes())
}

func (k *Kinds) serveDocument(w http.ResponseWriter, r *http.Request, g *group) {
	if !readOnly(w, r) {
		return
	}
	asked := r.URL.Query().Get("hash")
	etag, models := g.documentHash(), true
	if asked == g.operationsHash() {
		etag, models = asked, false
	}
	contentType, ok := negotiateDocument(r.Header.Get("Accept"), documentProtobuf, documentProtobufOld)
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	w.Header().Set("Etag", `"`+etag+`"`)
	if asked != "" {
		if asked != etag {
			u := *r.URL
			u.RawQuery = url.Values{"hash": {etag}}.Encode()
			http.Redirect(w, r, u.String(), http.StatusMovedPermanently)
			return
		}
		// kubectl ignores "immutable". Until the document expires, it reads the document from its disk only.
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	}
	if strings.Contains(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	packed, err := g.packed(contentType, models)
	if err != nil {
		k.log.Error("OpenAPI document cannot be made", "group", g.version.Group, "error", err)
		k.fail(w, r, err)
		return
	}
	k.writePacked(w, r, contentType, packed)
}

// readOnly rejects methods other than GET and HEAD.
func readOnly(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	w.Header().Set("Allow", "GET, HEAD")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	return false
}

// writePacked writes a compressed document. It decompresses the document for clients that do not accept gzip.
func (k *Kinds) writePacked(w http.ResponseWriter, r *http.Request, contentType string, packed []byte) {
	w.Header().Set("Content-Type", contentType)
	zipped := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	if zipped {
		w.Header().Set("Content-Encoding", "gzip")
	}
	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK)
		return
	case zipped:
		_, _ = w.Write(packed)
		return
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		k.fail(w, r, err)
		return
	}
	_, _ = io.Copy(w, z)
}

// Content types of a document. Each protobuf type has two spellings.
const (
	documentJSON        = "application/json"
	documentProtobuf    = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	documentProtobufOld = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	swaggerProtobuf     = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	swaggerProtobufOld  = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
)

// negotiateDocument returns the first supported type in an Accept header. binary and old are the two spellings of the
// protobuf type.
func negotiateDocument(accept, binary, old string) (string, bool) {
	if accept == "" {
		return documentJSON, true
	}
	for clause := range strings.SplitSeq(accept, ",") {
		mediaType, _, _ := strings.Cut(clause, ";")
		switch strings.TrimSpace(mediaType) {
		case documentJSON, "*/*", "application/*":
			return documentJSON, true
		case binary, old:
			return binary, true
		}
	}
	return "", false
}

// packed returns a compressed document, with or without models.
func (g *group) packed(contentType string, models bool) ([]byte, error) {
	d := &g.document
	if !models {
		d = &g.operations
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.json == nil {
		var err error
		if d.json, err = compress(func(w io.Writer) error { return g.writeDocument(w, models) }); err != nil {
			return nil, fmt.Errorf("write document of group %q: %w", g.version.Group, err)
		}
	}
	if contentType == documentJSON {
		return d.json, nil
	}
	if d.protobuf == nil {
		z, err := gzip.NewReader(bytes.NewReader(d.json))
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(z)
		if err != nil {
			return nil, err
		}
		binary, err := handler3.ToV3ProtoBinary(text)
		if err != nil {
			return nil, fmt.Errorf("convert document of group %q: %w", g.version.Group, err)
		}
		if d.protobuf, err = compress(func(w io.Writer) error { _, err := w.Write(binary); return err }); err != nil {
			return nil, err
		}
	}
	return d.protobuf, nil
}

func compress(write func(io.Writer) error) ([]byte, error) {
	var buf bytes.Buffer
	z, err := gzip.NewWriterLevel(&buf, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	if err := write(z); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return slices.Clip(buf.Bytes()), nil
}

// documentHash returns the hash of the document. It hashes the schema, so that the index, which every kubectl command
// reads, does not need the document.
func (g *group) documentHash() string {
	g.hashOnce.Do(func() {
		h := sha256.New()
		_, _ = fmt.Fprintf(h, "%d %q %q %q\n", documentVersion, g.provider.Name, g.provider.Source, g.provider.Version)
		if b := g.configuration(); b != nil {
			hashBlock(h, b)
		}
		for _, s := range g.kinds {
			_, _ = fmt.Fprintf(h, "%q %q %q %q %d\n", s.Mode, s.Type, s.GVK.Kind, s.GVR.Resource, s.Schema.Version)
			hashBlock(h, s.Schema.Block)
		}
		g.hash = strings.ToUpper(hex.EncodeToString(h.Sum(nil)))
	})
	return g.hash
}

// operationsHash returns the hash of the document without models.
func (g *group) operationsHash() string {
	sum := sha256.Sum256([]byte("operations of " + g.documentHash()))
	return strings.ToUpper(hex.EncodeToString(sum[:]))
}

func hashBlock(h hash.Hash, b *schema.Block) {
	_, _ = fmt.Fprintf(h, "{%q %t\n", b.Description, b.Deprecated)
	hashAttributes(h, b.Attributes)
	for _, nb := range b.Blocks {
		_, _ = fmt.Fprintf(h, "%q %d %d %d", nb.TypeName, nb.Nesting, nb.MinItems, nb.MaxItems)
		hashBlock(h, nb.Block)
	}
	_, _ = io.WriteString(h, "}\n")
}

func hashAttributes(h hash.Hash, attrs []*schema.Attribute) {
	for _, a := range attrs {
		_, _ = fmt.Fprintf(h, "%q %q %t%t%t%t%t%t", a.Name, a.Description, a.Required, a.Optional, a.Computed,
			a.Sensitive, a.WriteOnly, a.Deprecated)
		if a.Nested != nil {
			_, _ = fmt.Fprintf(h, "[%d\n", a.Nested.Nesting)
			hashAttributes(h, a.Nested.Attributes)
			_, _ = io.WriteString(h, "]\n")
			continue
		}
		_, _ = io.WriteString(h, a.Type.GoString()+"\n")
	}
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
