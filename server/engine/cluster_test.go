package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hykube/hykube/server/engine"
)

// An embedded server serves as the external cluster.
func TestExternalCluster(t *testing.T) {
	dir := t.TempDir()
	cluster := start(t, engine.Config{DataDir: dir})
	credentials := cluster.CredentialsFor(t)
	namespace := func(name string) engine.Config {
		return engine.Config{DataDir: t.TempDir(), Address: cluster.Address(), Namespace: name, Credentials: credentials}
	}

	t.Run("registers its namespace and search attributes, and runs workflows", func(t *testing.T) {
		e := start(t, namespace("elsewhere"))
		if err := e.Healthy(); err != nil {
			t.Error(err)
		}
		stopWork := work(t, e)
		var got string
		r, err := e.Client().ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "greet", TaskQueue: queue,
			TypedSearchAttributes: temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeywordList("HykubeProvider").ValueSet([]string{"sim"})),
		}, greet, "you")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Get(t.Context(), &got); err != nil || got != "hello you" {
			t.Errorf("got %q, %v", got, err)
		}
		stopWork()
		stop(t, e)
		if err := cluster.Healthy(); err != nil {
			t.Errorf("stopping the client hurt the cluster: %v", err)
		}
	})

	t.Run("refuses the namespace of another installation", func(t *testing.T) {
		first := namespace("claimed")
		first.Installation = "first"
		stop(t, start(t, first))
		stop(t, start(t, first)) // its own
		other := namespace("claimed")
		other.Installation = "other"
		e, err := engine.New(other)
		if err != nil {
			t.Fatal(err)
		}
		err = e.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), `"claimed" belongs to another installation of Hykube (first; this one is other)`) || !strings.Contains(err.Error(), "--temporal-namespace") {
			t.Errorf("another installation: %v", err)
		}
		unclaimed := namespace("elsewhere") // without the name of an installation
		unclaimed.Installation = "first"
		stop(t, start(t, unclaimed))
	})

	t.Run("registers a namespace again that the cluster has lost", func(t *testing.T) {
		e := start(t, namespace("lost"))
		identity := func() (string, error) {
			found, err := e.Client().WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: "lost"})
			return found.GetNamespaceInfo().GetId(), err
		}
		before, err := identity()
		if err != nil {
			t.Fatal(err)
		}
		db, err := sql.Open("sqlite", filepath.Join(dir, "temporal", "temporal.db")+"?_pragma=busy_timeout(5000)")
		if err == nil {
			_, err = db.ExecContext(t.Context(), "DELETE FROM namespaces WHERE name = 'lost'")
		}
		if err = errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "another namespace", func() error {
			after, err := identity()
			if err == nil && after == before {
				err = errors.New("the same")
			}
			return err
		})
		eventually(t, "health", e.Healthy)
	})

	t.Run("starts a worker again", func(t *testing.T) {
		e := start(t, namespace("elsewhere"))
		var fail func(error)
		started := make(chan struct{}, 2)
		end, err := e.RunWorker(t.Context(), func(onFatal func(error)) worker.Worker {
			fail = onFatal
			w := worker.New(e.Client(), queue, worker.Options{WorkerStopTimeout: time.Second})
			w.RegisterWorkflow(greet)
			w.RegisterActivity(hello)
			started <- struct{}{}
			return w
		})
		if err != nil {
			t.Fatal(err)
		}
		defer end()
		<-started
		fail(errors.New("namespace gone"))
		eventually(t, "the reason in the health", func() error {
			if err := e.Healthy(); err == nil || !strings.Contains(err.Error(), "namespace gone") {
				return fmt.Errorf("healthy: %v", err)
			}
			return nil
		})
		<-started
		eventually(t, "another worker", e.Healthy)
		var got string
		if err := run(t, e.Client(), "again", greet, "again").Get(t.Context(), &got); err != nil || got != "hello again" {
			t.Errorf("got %q, %v", got, err)
		}
	})

	t.Run("starts again where everything is registered", func(t *testing.T) {
		stop(t, start(t, namespace("elsewhere")))
	})

	t.Run("refuses a search attribute of another type", func(t *testing.T) {
		_, err := cluster.Client().WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
			Namespace: "taken", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "an attribute in the new namespace", func() error {
			_, err := cluster.Client().OperatorService().AddSearchAttributes(t.Context(), &operatorservice.AddSearchAttributesRequest{
				Namespace: "taken", SearchAttributes: map[string]enumspb.IndexedValueType{"HykubeProvider": enumspb.INDEXED_VALUE_TYPE_INT}})
			return err
		})
		eventually(t, "the attribute", func() error {
			present, err := cluster.Client().OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: "taken"})
			if err == nil && len(present.GetCustomAttributes()) == 0 {
				err = errors.New("not there")
			}
			return err
		})
		e, err := engine.New(namespace("taken"))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err == nil || !strings.Contains(err.Error(), `"HykubeProvider"`) || !strings.Contains(err.Error(), "KeywordList") {
			t.Errorf("got %v", err)
		}
	})

	t.Run("serves the Web UI", func(t *testing.T) {
		config := namespace("elsewhere")
		config.Credentials.APIKeyFile = filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(config.Credentials.APIKeyFile, []byte("key\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(start(t, config).UIHandler())
		defer server.Close()
		if code, _, body := get(t, server, "/temporal/api/v1/namespaces"); code != http.StatusOK || !strings.Contains(body, `"name": "elsewhere"`) {
			t.Errorf("%d: %s", code, body)
		}
	})

	t.Run("says which address does not answer", func(t *testing.T) {
		config := namespace("elsewhere")
		config.Address = "127.0.0.1:1"
		e, err := engine.New(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := e.Start(ctx); err == nil || !strings.Contains(err.Error(), `"127.0.0.1:1"`) {
			t.Errorf("got %v", err)
		}
		if err := e.Healthy(); err == nil {
			t.Error("it says that it is healthy")
		}
	})
}
