package kinds

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const swaggerPath = "/openapi/v2"

// swaggerVersion is part of the document's hash. Increment it when the models below change.
const swaggerVersion = 2

// swaggerPrefix is the prefix of a reference to a model in an OpenAPI v2 document.
const swaggerPrefix = "#/definitions/"

// Models of /openapi/v2 that all kinds use.
const (
	swaggerSpec      = "io.hykube.meta.v1.Spec"
	swaggerLifecycle = "io.hykube.meta.v1.Lifecycle"
	swaggerStatus    = "io.hykube.meta.v1.Status"
)

// swagger is /openapi/v2: the document of the fixed kinds with a model of each provider's kind. It is built on the
// first request and kept compressed.
//
// Clients that compute the result of a server-side apply, such as Argo CD, derive their merge types from this document
// alone. So the models must merge as newParseableType does. An expression may replace the value of any argument, so
// spec and lifecycle are free-form. This also keeps the document small; /openapi/v3 has the arguments.
type swagger struct {
	mu   sync.Mutex
	etag string
	// json and protobuf are compressed; nil until the first request.
	json, protobuf []byte
}

// serveSwagger serves the document from next with the models of the providers' kinds.
func (k *Kinds) serveSwagger(w http.ResponseWriter, r *http.Request, next http.Handler) {
	if !readOnly(w, r) {
		return
	}
	w.Header().Set("Vary", "Accept, Accept-Encoding")
	contentType, ok := negotiateDocument(r.Header.Get("Accept"), swaggerProtobuf, swaggerProtobufOld)
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	groups := k.snapshot.Load().sorted()
	head := fixedDocument(r, next, http.MethodHead, documentJSON)
	if head.code != http.StatusOK {
		head.copyTo(w)
		return
	}
	etag := swaggerHash(head.header.Get("Etag"), groups)
	w.Header().Set("Etag", `"`+etag+`"`)
	if strings.Contains(r.Header.Get("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	packed, err := k.swagger.packed(etag, contentType, groups, func(accept string) ([]byte, error) {
		rec := fixedDocument(r, next, http.MethodGet, accept)
		if rec.code != http.StatusOK {
			return nil, fmt.Errorf("read document of the fixed kinds: status %d", rec.code)
		}
		return rec.body.Bytes(), nil
	})
	if err != nil {
		k.log.Error("OpenAPI document cannot be made", "path", swaggerPath, "error", err)
		k.fail(w, r, err)
		return
	}
	k.writePacked(w, r, contentType, packed)
}

// fixedDocument requests the document from next, complete and uncompressed.
func fixedDocument(r *http.Request, next http.Handler, method, accept string) *recorder {
	rec := &recorder{header: http.Header{}, code: http.StatusOK}
	plain := unconditional(r)
	plain.Method = method
	plain.Header.Set("Accept", accept)
	next.ServeHTTP(rec, plain)
	return rec
}

// swaggerHash returns the hash of the document.
func swaggerHash(fixed string, groups []*group) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %s\n", swaggerVersion, fixed)
	for _, g := range groups {
		_, _ = io.WriteString(h, g.documentHash()+"\n")
	}
	return strings.ToUpper(hex.EncodeToString(h.Sum(nil)))
}

// packed returns the compressed document. fixed returns the document of the fixed kinds in a content type.
func (s *swagger) packed(etag, contentType string, groups []*group,
	fixed func(accept string) ([]byte, error)) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etag != etag {
		s.etag, s.json, s.protobuf = etag, nil, nil
	}
	kept := &s.json
	if contentType != documentJSON {
		kept = &s.protobuf
	}
	if *kept != nil {
		return *kept, nil
	}
	base, err := fixed(contentType)
	if err != nil {
		return nil, err
	}
	whole := swaggerJSON
	if contentType != documentJSON {
		whole = swaggerBinary
	}
	doc, err := whole(base, groups)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", swaggerPath, err)
	}
	*kept, err = compress(func(w io.Writer) error { _, err := w.Write(doc); return err })
	return *kept, err
}

// swaggerJSON adds the models of the groups to a JSON document.
func swaggerJSON(base []byte, groups []*group) ([]byte, error) {
	var doc, models map[string]json.RawMessage
	if err := json.Unmarshal(base, &doc); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(doc["definitions"], &models); err != nil {
		return nil, err
	}
	if models == nil {
		models = map[string]json.RawMessage{}
	}
	ours, err := swaggerModels(groups, func(name string) bool { return models[name] != nil })
	if err != nil {
		return nil, err
	}
	var added map[string]json.RawMessage
	if err := json.Unmarshal(ours, &added); err != nil {
		return nil, err
	}
	maps.Copy(models, added)
	if doc["definitions"], err = json.Marshal(models); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// swaggerBinary adds the models of the groups to a protobuf document. Protobuf merges concatenated messages, so it
// appends the models as another document.
func swaggerBinary(base []byte, groups []*group) ([]byte, error) {
	var fixed openapi_v2.Document
	if err := proto.Unmarshal(base, &fixed); err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, m := range fixed.GetDefinitions().GetAdditionalProperties() {
		there[m.GetName()] = true
	}
	models, err := swaggerModels(groups, func(name string) bool { return there[name] })
	if err != nil {
		return nil, err
	}
	text := bytes.Join([][]byte{[]byte(`{"swagger":"2.0","info":{"title":"","version":""},"paths":{},"definitions":`),
		models, []byte(`}`)}, nil)
	ours, err := openapi_v2.ParseDocument(text)
	if err != nil {
		return nil, err
	}
	more, err := proto.Marshal(&openapi_v2.Document{Definitions: ours.GetDefinitions()})
	if err != nil {
		return nil, err
	}
	return append(bytes.Clone(base), more...), nil
}

// swaggerModels returns the models of the groups' kinds, and the models to which these refer unless the document has
// them.
func swaggerModels(groups []*group, there func(name string) bool) ([]byte, error) {
	var buf bytes.Buffer
	j := newJSONWriter(&buf)
	j.open("{")
	if len(groups) > 0 {
		writeSwaggerShared(j, there)
	}
	for _, g := range groups {
		for _, s := range g.kinds {
			j.object(s.modelName(), func() { s.writeSwaggerModel(j) })
		}
	}
	j.close("}")
	err := j.flush()
	return buf.Bytes(), err
}

func (s *served) writeSwaggerModel(j *jsonWriter) {
	to := func(model string) map[string]any { return map[string]any{"$ref": swaggerPrefix + model} }
	j.string("type", "object")
	j.string("description", s.description())
	s.writeGVKs(j)
	j.value("properties", map[string]any{
		"apiVersion": map[string]any{"type": "string"},
		"kind":       map[string]any{"type": "string"},
		"metadata":   to(modelOf(metav1.ObjectMeta{})),
		"spec":       to(swaggerSpec),
		"lifecycle":  to(swaggerLifecycle),
		"status":     to(swaggerStatus),
	})
}

func writeSwaggerShared(j *jsonWriter, there func(name string) bool) {
	free := func(description string) map[string]any {
		return map[string]any{"type": "object", "description": description,
			"x-kubernetes-preserve-unknown-fields": true}
	}
	j.value(swaggerSpec, free("Arguments of the type, under the provider's own names. A string with an expression, such as ${sim_network.main.id}, may be the value of any of them. /openapi/v3 describes each argument."))
	j.value(swaggerLifecycle, free("Terraform's meta-arguments. /openapi/v3 describes each field."))
	status := free("Conditions, and the attributes that the provider returned. Read-only.")
	properties := map[string]any{
		"conditions": map[string]any{
			"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []string{"type"},
			"items": map[string]any{"$ref": swaggerPrefix + modelOf(metav1.Condition{})},
		},
		"attributes": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
	}
	for name, model := range statusFields() {
		properties[name] = model
	}
	status["properties"] = properties
	j.value(swaggerStatus, status)
	for name, model := range metaModels(swaggerPrefix) {
		if !there(name) {
			j.value(name, model)
		}
	}
}
