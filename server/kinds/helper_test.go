package kinds_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	definitions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/storage"
	"github.com/hykube/hykube/tests/harness"
)

// Tokens of the test server's users.
const (
	admin  = "admin"  // may do everything
	system = "system" // the server itself
	alice  = "alice"  // may do everything except read states, secrets, and the namespace "closed"
	carol  = "carol"  // may do everything with networks, and use the ProviderConfig "mine"
)

// fixture is a generic API server with kinds on a real database.
type fixture struct {
	kinds  *kinds.Kinds
	server *httptest.Server
	// home is kubectl's, with its caches.
	home string
	// state is the response of the subresource "state".
	state []byte
	// taints holds the requests of the subresource "taint"; taint is its response.
	taints []string
	taint  error
	// resolves are the objects of the subresource "resolve"; resolve is what it answers with.
	resolves []string
	resolve  error
	// applied is whether an object that is not tainted is as it was applied.
	applied bool
	// configs are the providers of the ProviderConfigs.
	configs map[string]string
}

func newFixture(t testing.TB, providers ...kinds.Provider) *fixture {
	t.Helper()
	h := &fixture{home: t.TempDir()}
	store, err := storage.Open(t.Context(), storage.Config{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close storage: %v", err)
		}
	})

	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, kschema.GroupVersion{Version: "v1"})
	scheme.AddUnversionedTypes(kschema.GroupVersion{Version: "v1"}, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	config := genericapiserver.NewConfig(serializer.NewCodecFactory(scheme))
	config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
	config.ExternalAddress = "127.0.0.1:443"
	config.LoopbackClientConfig = &rest.Config{Host: "https://127.0.0.1", BearerToken: "unused"}
	config.AggregatedDiscoveryGroupManager = aggregated.NewResourceManager("apis")
	config.Authentication.Authenticator = bearertoken.New(authenticator.TokenFunc(authenticate))
	config.Authorization.Authorizer = authorizer.AuthorizerFunc(authorize)
	config.MaxRequestBodyBytes = kinds.MaxRequestBodyBytes
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions.GetOpenAPIDefinitions, openapi.NewDefinitionNamer(scheme))
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions.GetOpenAPIDefinitions, openapi.NewDefinitionNamer(scheme))
	var documents, late late
	config.BuildHandlerChainFunc = func(next http.Handler, c *genericapiserver.Config) http.Handler {
		late.Handler = next
		return genericapiserver.DefaultBuildHandlerChain(&documents, c)
	}
	var provided lateKinds
	s, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegateWithCustomHandler(&provided))
	if err != nil {
		t.Fatal(err)
	}
	h.kinds, err = kinds.New(kinds.Config{
		RESTOptions:         store.RESTOptions(nil, false),
		Authorizer:          config.Authorization.Authorizer,
		Discovery:           s.DiscoveryGroupManager,
		AggregatedDiscovery: s.AggregatedDiscoveryGroupManager,
		Infrastructure: &kinds.Infrastructure{State: func(context.Context, metav1.Object, kinds.Kind) ([]byte, error) {
			return h.state, nil
		},
			Taint: func(_ context.Context, obj metav1.Object, k kinds.Kind, tainted bool) (bool, error) {
				h.taints = append(h.taints, fmt.Sprintf("%s/%s %t", k.Type, obj.GetName(), tainted))
				return h.applied && !tainted, h.taint
			},
			Resolve: func(_ context.Context, obj metav1.Object, k kinds.Kind) error {
				h.resolves = append(h.resolves, k.Type+"/"+obj.GetName())
				return h.resolve
			}},
		ProviderConfigs: func(context.Context, string, string) (map[string]string, error) { return h.configs, nil },
		ProviderConfig:  func(_ context.Context, _, name string) (string, error) { return h.configs[name], nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	provided.Kinds = h.kinds
	documents.Handler = h.kinds.WithOpenAPI(&late)
	// kubectl needs /api.
	s.Handler.NonGoRestfulMux.HandleFunc("/api", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":[]}`)
	})
	s.PrepareRun()
	h.server = httptest.NewUnstartedServer(s.Handler)
	h.server.EnableHTTP2 = true
	h.server.StartTLS()
	t.Cleanup(func() {
		h.kinds.Close()
		h.server.CloseClientConnections()
		h.server.Close()
		s.Destroy()
	})
	for _, p := range providers {
		if err := h.kinds.Set(p); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// late is a handler that is known later than the place where it goes.
type late struct{ http.Handler }

type lateKinds struct{ *kinds.Kinds }

func authenticate(_ context.Context, token string) (*authenticator.Response, bool, error) {
	switch token {
	case admin:
		return &authenticator.Response{User: &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}}, true, nil
	case system:
		return &authenticator.Response{User: &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}}, true, nil
	case alice, carol:
		return &authenticator.Response{User: &user.DefaultInfo{Name: token, Groups: []string{user.AllAuthenticated}}}, true, nil
	}
	return nil, false, nil
}

func authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "alice" && a.GetSubresource() == "state" {
		return authorizer.DecisionDeny, "states are secret", nil
	}
	if a.GetUser().GetName() == "alice" && (a.GetResource() == "secrets" || a.GetNamespace() == "closed") {
		return authorizer.DecisionNoOpinion, "", nil
	}
	if a.GetUser().GetName() == "carol" && a.IsResourceRequest() && a.GetResource() != "sim-networks" && (a.GetVerb() != "use" || a.GetName() != "mine") {
		return authorizer.DecisionNoOpinion, "", nil
	}
	return authorizer.DecisionAllow, "", nil
}

func (h *fixture) config(token string) *rest.Config {
	return &rest.Config{Host: h.server.URL, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: h.ca()}, QPS: -1}
}

func (h *fixture) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.server.Certificate().Raw})
}

func (h *fixture) client(t testing.TB, token string, resource string) dynamic.ResourceInterface {
	t.Helper()
	c, err := dynamic.NewForConfig(h.config(token))
	if err != nil {
		t.Fatal(err)
	}
	provider, _, _ := strings.Cut(resource, "-")
	return c.Resource(kschema.GroupVersionResource{Group: provider + ".hykube.io", Version: "v1", Resource: resource}).Namespace("default")
}

// answer is a response of the server.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

func (a answer) message() string {
	var s metav1.Status
	_ = json.Unmarshal(a.body, &s)
	return s.Message
}

func (a answer) object(t testing.TB) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(a.body); err != nil {
		t.Fatalf("%d %s: %v", a.code, a.body, err)
	}
	return u
}

// do sends a request as it is. Header is "Name: value" lines.
func (h *fixture) do(t testing.TB, token, method, path, body string, header ...string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.server.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	resp, err := h.server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, b}
}

// kubectl runs the system's kubectl, or the one inside hykube.
func (h *fixture) kubectl(t testing.TB, stdin string, args ...string) (string, error) {
	t.Helper()
	kubectl := harness.Kubectl(t)
	kubeconfig := filepath.Join(h.home, "config")
	c := clientcmdapi.NewConfig()
	c.Clusters["test"] = &clientcmdapi.Cluster{Server: h.server.URL, CertificateAuthorityData: h.ca()}
	c.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: admin}
	c.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "default"}
	c.CurrentContext = "test"
	if err := clientcmd.WriteToFile(*c, kubeconfig); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, kubectl[0], slices.Concat(kubectl[1:], args)...)
	cmd.Env = []string{"HOME=" + h.home, "KUBECONFIG=" + kubeconfig, "PATH=" + os.Getenv("PATH")}
	cmd.Stdin = strings.NewReader(stdin)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// eventually polls until check returns nil, or fails with its last error.
func eventually(t testing.TB, check func() error) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// sim is a provider that has every shape of argument.
func sim() kinds.Provider {
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Optional: true}
	}
	id := &schema.Attribute{Name: "id", Type: cty.String, Computed: true, Description: "Identifier in the cloud."}
	endpoint := &schema.Object{Nesting: schema.NestingSingle, Attributes: []*schema.Attribute{
		{Name: "host", Type: cty.String, Required: true},
		{Name: "port", Type: cty.Number, Optional: true},
	}}
	routes := &schema.Object{Nesting: schema.NestingMap, Attributes: []*schema.Attribute{{Name: "via", Type: cty.String, Required: true}}}
	network := &schema.Block{
		Description: "A network in the simulated cloud.",
		Attributes: []*schema.Attribute{
			{Name: "anything", Type: cty.DynamicPseudoType, Optional: true},
			{Name: "cidr", Type: cty.String, Optional: true, Computed: true},
			{Name: "dns", Type: cty.List(cty.String), Optional: true},
			{Name: "enabled", Type: cty.Bool, Optional: true},
			{Name: "endpoint", Nested: endpoint, Type: endpoint.ImpliedType(), Optional: true},
			id,
			{Name: "legacy", Type: cty.String, Optional: true, Deprecated: true},
			{Name: "mtu", Type: cty.Number, Optional: true, Description: "Largest packet."},
			{Name: "name", Type: cty.String, Required: true, Description: "Name of the network."},
			{Name: "password", Type: cty.String, Optional: true, Sensitive: true},
			{Name: "pin", Type: cty.Number, Optional: true, Sensitive: true},
			{Name: "point", Type: cty.Object(map[string]cty.Type{"x": cty.Number, "y": cty.Number}), Optional: true},
			{Name: "routes", Nested: routes, Type: routes.ImpliedType(), Optional: true},
			{Name: "tags", Type: cty.Map(cty.String), Optional: true},
			{Name: "token", Type: cty.String, Optional: true, WriteOnly: true},
			{Name: "zones", Type: cty.Set(cty.String), Optional: true},
		},
		Blocks: []*schema.NestedBlock{
			{TypeName: "rule", Nesting: schema.NestingList, MaxItems: 3, Block: &schema.Block{Attributes: []*schema.Attribute{
				{Name: "cidrs", Type: cty.List(cty.String), Optional: true},
				{Name: "hits", Type: cty.Number, Computed: true},
				{Name: "port", Type: cty.Number, Required: true},
			}}},
			{TypeName: "timeouts", Nesting: schema.NestingSingle, Block: &schema.Block{Attributes: []*schema.Attribute{text("create")}}},
		},
	}
	subnet := &schema.Block{
		Attributes: []*schema.Attribute{id, {Name: "network_id", Type: cty.String, Required: true}},
		Blocks: []*schema.NestedBlock{{TypeName: "pool", Nesting: schema.NestingSet, MinItems: 1, Block: &schema.Block{
			Attributes: []*schema.Attribute{{Name: "size", Type: cty.Number, Required: true}},
		}}},
	}
	image := &schema.Block{
		Description: "An image in the simulated cloud.",
		Attributes: []*schema.Attribute{
			{Name: "family", Type: cty.String, Required: true},
			id,
			{Name: "size", Type: cty.Number, Computed: true},
		},
	}
	token := &schema.Block{Attributes: []*schema.Attribute{
		{Name: "role", Type: cty.String, Optional: true},
		{Name: "value", Type: cty.String, Computed: true, Sensitive: true},
	}}
	reboot := &schema.Block{Attributes: []*schema.Attribute{{Name: "instance_id", Type: cty.String, Required: true}}}
	return kinds.Provider{Name: "sim", Source: "registry.terraform.io/hykube/sim", Version: "0.1.0", Schema: &schema.Provider{
		Config: &schema.Schema{Block: &schema.Block{}},
		Resources: map[string]*schema.Schema{
			"sim_network": {Block: network},
			"sim_subnet":  {Block: subnet},
		},
		DataSources:   map[string]*schema.Schema{"sim_image": {Block: image}},
		Ephemerals:    map[string]*schema.Schema{"sim_token": {Block: token}},
		Actions:       map[string]*schema.Schema{"sim_reboot": {Block: reboot}},
		ListResources: map[string]*schema.Schema{"sim_network": {Block: &schema.Block{}}},
		Identities: map[string]*schema.Identity{"sim_network": {Attributes: []*schema.IdentityAttribute{
			{Name: "account", Type: cty.String, OptionalForImport: true},
			{Name: "etag", Type: cty.String},
			{Name: "number", Type: cty.Number, RequiredForImport: true, Description: "Number in the cloud."},
		}}},
		Functions: map[string]*schema.Function{"upper": {
			Parameters: []*schema.Parameter{{Name: "text", Type: cty.String}}, Return: cty.String,
		}},
	}}
}

const networks = "/apis/sim.hykube.io/v1/namespaces/default/sim-networks"

// network is a JSON sim-network.
func network(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"sim.hykube.io/v1","kind":"sim-network","metadata":{"name":%q},"spec":%s}`, name, spec)
}

func (h *fixture) create(t testing.TB, body string) *unstructured.Unstructured {
	t.Helper()
	a := h.do(t, admin, http.MethodPost, networks, body)
	if a.code != http.StatusCreated {
		t.Fatalf("create: %d %s", a.code, a.body)
	}
	return a.object(t)
}
