package server_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/hykube/hykube/activities/changes"
	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/policy"
	"github.com/hykube/hykube/internal/schema"
	"github.com/hykube/hykube/server"
	"github.com/hykube/hykube/server/kinds"
	"github.com/hykube/hykube/server/registry"
)

const (
	// deadline bounds what a test waits for.
	deadline = 30 * time.Second
	// tokens are users who are not administrators: viewer may do nothing but what every user may, until a test says so.
	tokens = `viewer-token,viewer,1,"readers"
editor-token,editor,2,"writers"
approver-token,approver,3,"approvers"
`
)

// shared is the server that most tests use; starting one takes a second.
var shared *instance

// sharedTokens is its token file.
var sharedTokens string

func TestMain(m *testing.M) {
	code, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runTests(m *testing.M) (code int, err error) {
	server.BridgeLogs(slog.New(slog.DiscardHandler))
	dir, err := os.MkdirTemp("", "hykube-server-test-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tokenFile := filepath.Join(dir, "tokens.csv")
	if err := os.WriteFile(tokenFile, []byte(tokens), 0o600); err != nil {
		return 1, err
	}
	sharedTokens = tokenFile
	shared, err = start(context.Background(), server.Config{
		DataDir: filepath.Join(dir, "data"), TokenAuthFile: tokenFile, Wire: testWiring,
	})
	if err != nil {
		return 1, err
	}
	code = m.Run()
	return code, shared.stop()
}

// instance is a server that runs in this process.
type instance struct {
	*server.Server
	// itself is a client configuration as system:apiserver, which the workers have.
	itself *rest.Config
	log    *bytes.Buffer
	cancel context.CancelFunc
	done   chan error
}

// verifications holds the result of Verify, by the UID of the plan.
var verifications sync.Map

// testWiring answers as the real wiring would: an object named "used" is in use. The kinds of the provider "sim" are
// served.
func testWiring(_ context.Context, h *server.Components) (server.Wiring, error) {
	if err := h.Kinds.Set(sim()); err != nil {
		return server.Wiring{}, err
	}
	return server.Wiring{
		SaveObjects: kept.save,
		Verify: func(_ context.Context, p *v1alpha1.Plan) (changes.Verification, error) {
			if found, ok := verifications.Load(p.UID); ok {
				return found.(changes.Verification), nil
			}
			return changes.Verification{Left: 1}, nil
		},
		Backend: registry.Backend{
			Query: answerQuery,
			Judge: func(context.Context, *v1alpha1.Plan, changes.Judged) (*policy.Verdict, error) {
				return &policy.Verdict{}, nil
			},
			Automatic: func(context.Context, string) (bool, error) { return false, nil },
			InUse: func(_ context.Context, obj metav1.Object) (int, string, error) {
				if obj.GetName() != "used" {
					return 0, "", nil
				}
				return 3, "sim-network/main in namespace prod", nil
			},
		},
		Changes: func(_ context.Context, p *v1alpha1.Plan, limit int, cont string) (*v1alpha1.PlanChangeList, error) {
			list := &v1alpha1.PlanChangeList{ListMeta: metav1.ListMeta{Continue: fmt.Sprintf("%s, %d after %q", p.Name, limit, cont)}}
			list.Items = append(list.Items, v1alpha1.PlanChange{Address: "sim_network.main", Action: v1alpha1.ActionCreate, State: v1alpha1.ChangePending})
			return list, nil
		},
	}, nil
}

// completed fills in what a test leaves out: nothing is in use, has a state or is answered, and no controllers run.
func completed(wire func(context.Context, *server.Components) (server.Wiring, error)) func(context.Context, *server.Components) (server.Wiring, error) {
	return func(ctx context.Context, h *server.Components) (w server.Wiring, err error) {
		if wire != nil {
			w, err = wire(ctx, h)
		}
		unanswered := errors.New("this test does not answer it")
		if w.InUse == nil {
			w.InUse = func(context.Context, metav1.Object) (int, string, error) { return 0, "", nil }
		}
		if w.Named == nil {
			inUse := w.InUse
			w.Named = func(ctx context.Context, obj metav1.Object) (bool, error) {
				count, _, err := inUse(ctx, obj)
				return count > 0, err
			}
		}
		if w.DestroysInstances == nil {
			w.DestroysInstances = func(context.Context, metav1.Object) (*v1alpha1.Plan, error) { return nil, nil }
		}
		if w.ModuleDeletion == nil {
			w.ModuleDeletion = func(context.Context, *v1alpha1.Module) (kinds.Deletion, error) { return kinds.Deletion{}, nil }
		}
		if w.FormerSet == nil {
			w.FormerSet = func(context.Context, v1alpha1.ObjectReference, types.UID) (string, error) { return "", nil }
		}
		if w.Changes == nil {
			w.Changes = func(context.Context, *v1alpha1.Plan, int, string) (*v1alpha1.PlanChangeList, error) {
				return nil, unanswered
			}
		}
		if w.Verify == nil {
			w.Verify = func(context.Context, *v1alpha1.Plan) (changes.Verification, error) {
				return changes.Verification{}, unanswered
			}
		}
		if w.State == nil {
			w.State = func(context.Context, metav1.Object, kinds.Kind) ([]byte, error) { return nil, nil }
		}
		if w.Taint == nil {
			w.Taint = func(context.Context, metav1.Object, kinds.Kind, bool) (bool, error) { return false, unanswered }
		}
		if w.Resolve == nil {
			w.Resolve = func(context.Context, metav1.Object, kinds.Kind) error { return unanswered }
		}
		if w.Undelete == nil {
			w.Undelete = func(_ context.Context, _ metav1.Object, _ kinds.Kind, clear func(kinds.Undeleted) error, _ func() error) error {
				return clear(kinds.UndeletedUnplanned)
			}
		}
		if w.Deletion == nil {
			w.Deletion = func(context.Context, metav1.Object, kinds.Kind) (kinds.Deletion, error) { return kinds.Deletion{}, nil }
		}
		if w.CurrentStacks == nil {
			w.CurrentStacks = func(context.Context, string) {}
		}
		if w.SelectsAny == nil {
			w.SelectsAny = func(context.Context, string, func(labels.Set) bool) (bool, error) { return true, nil }
		}
		if w.CancelRun == nil {
			w.CancelRun = func(context.Context, *v1alpha1.Stack, string) (bool, error) { return false, nil }
		}
		if w.Query == nil {
			w.Query = func(context.Context, v1alpha1.Identity, *v1alpha1.Query) error { return unanswered }
		}
		if w.Evaluate == nil {
			w.Evaluate = func(context.Context, v1alpha1.Identity, *v1alpha1.Evaluation) error { return unanswered }
		}
		if w.Run == nil {
			w.Run = func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			}
		}
		if w.Ready == nil {
			w.Ready = func() error { return nil }
		}
		if w.Close == nil {
			w.Close = func(context.Context) error { return nil }
		}
		return w, err
	}
}

func start(ctx context.Context, c server.Config) (*instance, error) {
	i, err := launch(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := i.awaitReady(ctx); err != nil {
		return nil, errors.Join(err, i.stop())
	}
	return i, nil
}

// launch starts a server and does not wait until it is ready.
func launch(ctx context.Context, c server.Config) (*instance, error) {
	i := &instance{log: new(bytes.Buffer), done: make(chan error, 1)}
	if c.BindAddress == nil {
		c.BindAddress = net.IPv4(127, 0, 0, 1)
	}
	c.Logger = slog.New(slog.NewTextHandler(&lockedWriter{w: i.log}, nil))
	wire := completed(c.Wire)
	c.Wire = func(ctx context.Context, h *server.Components) (server.Wiring, error) {
		i.itself = rest.CopyConfig(h.Loopback)
		return wire(ctx, h)
	}
	config, err := c.Complete(ctx)
	if err != nil {
		return nil, err
	}
	if i.Server, err = config.New(ctx); err != nil {
		return nil, err
	}
	ctx, i.cancel = context.WithCancel(ctx)
	go func() { i.done <- i.Run(ctx) }()
	return i, nil
}

// startT starts a server that ends with the test.
func startT(t *testing.T, c server.Config) *instance {
	t.Helper()
	i, err := start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.stop(); err != nil {
			t.Errorf("stop server: %v", err)
		}
	})
	return i
}

func (i *instance) stop() error {
	if i.cancel == nil {
		return nil
	}
	i.cancel()
	i.cancel = nil
	select {
	case err := <-i.done:
		return err
	case <-time.After(10 * time.Second):
		return errors.New("the server did not stop within ten seconds")
	}
}

func (i *instance) awaitReady(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(i.admin())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	var body []byte
	for ctx.Err() == nil {
		if body, err = client.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the server is not ready: %w: %s", err, body)
}

func (i *instance) admin() *rest.Config {
	c, err := clientcmd.BuildConfigFromFlags("", i.Kubeconfig())
	if err != nil {
		panic(err)
	}
	c.QPS = -1
	return c
}

// as returns the configuration of a user of the token file.
func (i *instance) as(user string) *rest.Config {
	c := rest.AnonymousClientConfig(i.admin())
	c.BearerToken = user + "-token"
	c.QPS = -1
	return c
}

func core(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func objects(t *testing.T, c *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(deadline); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("not within %s: %s", deadline, what)
}

// namespace makes a namespace for one test.
func namespace(t *testing.T, name string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := core(t, shared.admin()).CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return name
}

// anonymous asks without any credential.
func anonymous(t *testing.T, url string) *http.Response {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = io.Copy(io.Discard, resp.Body); resp.Body.Close(); client.CloseIdleConnections() })
	return resp
}

type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// sim is a provider that can list one of its types.
func sim() kinds.Provider {
	text := func(name string) *schema.Attribute {
		return &schema.Attribute{Name: name, Type: cty.String, Optional: true}
	}
	of := func(attrs ...*schema.Attribute) *schema.Schema {
		return &schema.Schema{Block: &schema.Block{Attributes: attrs}}
	}
	return kinds.Provider{Name: "sim", Source: "registry.terraform.io/hykube/sim", Version: "1.0.0", Schema: &schema.Provider{
		Resources:     map[string]*schema.Schema{"sim_network": of(text("name")), "sim_disk": of(text("name"))},
		DataSources:   map[string]*schema.Schema{"sim_image": of(text("family"))},
		Ephemerals:    map[string]*schema.Schema{"sim_token": of(text("role"))},
		Actions:       map[string]*schema.Schema{"sim_reboot": of(text("instance"))},
		ListResources: map[string]*schema.Schema{"sim_network": of(text("region"))},
		Identities: map[string]*schema.Identity{"sim_network": {Attributes: []*schema.IdentityAttribute{
			{Name: "id", Type: cty.String, RequiredForImport: true},
		}}},
	}}
}
