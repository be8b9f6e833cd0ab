package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
)

var queries = v1alpha1.SchemeGroupVersion.WithResource("queries")

// answerQuery returns the query in its answer.
func answerQuery(ctx context.Context, who v1alpha1.Identity, q *v1alpha1.Query) error {
	switch q.Annotations["fail"] {
	case "provider":
		return errors.New("the cloud is closed")
	case "slow":
		<-ctx.Done()
		return ctx.Err()
	}
	q.Status.Results = []v1alpha1.QueryResult{{
		DisplayName: fmt.Sprintf("%s asks %s %s with %q for %d", who.Username, q.Spec.Provider, q.Spec.Type, q.Spec.ProviderConfig, q.Spec.Limit),
	}}
	return nil
}

func newQuery(spec map[string]any) *unstructured.Unstructured {
	q := newObject("Query", "", spec)
	delete(q.Object, "metadata")
	return q
}

func ask(t *testing.T, c *rest.Config, ns string, q *unstructured.Unstructured, opts ...metav1.CreateOptions) (string, error) {
	t.Helper()
	got, err := objects(t, c).Resource(queries).Namespace(ns).Create(t.Context(), q, append(opts, metav1.CreateOptions{FieldValidation: "Strict"})[0])
	if err != nil {
		return "", err
	}
	if list := got.GetManagedFields(); len(list) > 0 {
		t.Errorf("an answer has managed fields: %v", list)
	}
	text, err := json.Marshal(got.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), `\"`, "'"), nil
}

func TestQueryIsValidated(t *testing.T) {
	ns := namespace(t, "query-validation")
	type spec = map[string]any
	for name, test := range map[string]struct {
		spec spec
		// answer is a part of the answer; without one, want is a part of the error.
		answer string
		want   []string
	}{
		"a listing":                    {spec{"type": "sim_network"}, "hykube:admin asks sim sim_network with '' for 100", nil},
		"with everything":              {spec{"type": "sim_network", "provider": "sim", "limit": int64(7), "config": spec{"region": "eu"}, "manifests": true}, "for 7", nil},
		"by the kind":                  {spec{"type": "sim-network"}, "asks sim sim_network", nil},
		"one by its ID":                {spec{"type": "sim_disk", "import": spec{"id": "disk-1"}}, "asks sim sim_disk with '' for 0", nil},
		"one by its identity":          {spec{"type": "sim_network", "import": spec{"identity": spec{"id": "net-1"}}}, "asks sim sim_network", nil},
		"no type":                      {spec{}, "", []string{"spec.type: Required"}},
		"unknown type":                 {spec{"type": "sim_netwrok"}, "", []string{"spec.type", "no installed provider"}},
		"data source":                  {spec{"type": "sim_image"}, "", []string{"spec.type", "no installed provider"}},
		"type that cannot be listed":   {spec{"type": "sim_disk"}, "", []string{"spec.type", "cannot list this type", "spec.import"}},
		"another provider":             {spec{"type": "sim_network", "provider": "aws"}, "", []string{"spec.provider", "sim does"}},
		"negative limit":               {spec{"type": "sim_network", "limit": int64(-1)}, "", []string{"spec.limit", "10000"}},
		"excessive limit":              {spec{"type": "sim_network", "limit": int64(10001)}, "", []string{"spec.limit", "10000"}},
		"unknown argument":             {spec{"type": "sim_network", "config": spec{"regoin": "eu"}}, "", []string{"spec.config.regoin", "region"}},
		"argument that is a reference": {spec{"type": "sim_network", "config": spec{"region": "${sim_network.a.id}"}}, "", []string{"spec.config.region", "sim_network.a"}},
		"arguments that are a list":    {spec{"type": "sim_network", "config": []any{}}, "", []string{"spec.config", "map"}},
		"import by nothing":            {spec{"type": "sim_network", "import": spec{}}, "", []string{"spec.import: Required"}},
		"import by both":               {spec{"type": "sim_network", "import": spec{"id": "1", "identity": spec{"id": "1"}}}, "", []string{"spec.import", "id and identity"}},
		"import and listing":           {spec{"type": "sim_network", "import": spec{"id": "1"}, "limit": int64(5), "config": spec{"region": "eu"}, "objects": []any{"a"}}, "", []string{"spec.limit", "spec.config", "spec.objects"}},
		"import by an odd identity":    {spec{"type": "sim_network", "import": spec{"identity": spec{"nmae": "x"}}}, "", []string{"spec.import.identity.id: Required", "spec.import.identity.nmae"}},
		"import without an identity":   {spec{"type": "sim_disk", "import": spec{"identity": spec{"id": "x"}}}, "", []string{"spec.import.identity", "use id instead"}},
		"missing config":               {spec{"type": "sim_network", "providerConfig": "nowhere"}, "", []string{"spec.providerConfig", "there is no ProviderConfig"}},
		"config of an odd name":        {spec{"type": "sim_network", "providerConfig": "A B"}, "", []string{"spec.providerConfig"}},
		"unknown field":                {spec{"type": "sim_network", "lmiit": int64(5)}, "", []string{`unknown field "spec.lmiit"`}},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := ask(t, shared.admin(), ns, newQuery(test.spec))
			if test.answer != "" {
				if err != nil || !strings.Contains(answer, test.answer) {
					t.Errorf("%s %v, want %q", answer, err, test.answer)
				}
				return
			}
			if err == nil {
				t.Fatalf("answered: %s", answer)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

func TestQueryUsesAConfig(t *testing.T) {
	ns := namespace(t, "query-config")
	admin := objects(t, shared.admin())
	for name, provider := range map[string]string{"default": "other", "sim": "sim", "second": "sim"} {
		if _, err := admin.Resource(providerConfigs).Namespace(ns).Create(t.Context(), newObject("ProviderConfig", name, map[string]any{"provider": provider}), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for config, want := range map[string]string{"": "with 'sim'", "second": "with 'second'", "default": `configures the provider "other"`} {
		spec := map[string]any{"type": "sim_network"}
		if config != "" {
			spec["providerConfig"] = config
		}
		answer, err := ask(t, shared.admin(), ns, newQuery(spec))
		if got := fmt.Sprint(answer, err); !strings.Contains(got, want) {
			t.Errorf("config %q: %s, want %s", config, got, want)
		}
	}
	q := newQuery(map[string]any{"type": "sim_network"})
	if answer, err := ask(t, shared.admin(), ns, q, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || strings.Contains(answer, "asks") {
		t.Errorf("dry run: %s %v", answer, err)
	}
	if _, err := ask(t, shared.as("editor"), ns, q); !apierrors.IsForbidden(err) {
		t.Errorf("without any role: %v", err)
	}
	bind(t, ns, "view", "readers")
	bind(t, ns, "edit", "writers")
	eventually(t, "an editor may query", func() bool {
		answer, err := ask(t, shared.as("editor"), ns, q)
		return err == nil && strings.Contains(answer, "editor asks")
	})
	if _, err := ask(t, shared.as("viewer"), ns, q); !apierrors.IsForbidden(err) || kindOf(err) != "queries" {
		t.Errorf("a viewer: %v", err)
	}
	for name, want := range map[string]struct {
		is   func(error) bool
		text string
	}{
		"provider": {apierrors.IsBadRequest, "the cloud is closed"},
		"slow":     {apierrors.IsTimeout, "restrict the query"},
	} {
		failing := q.DeepCopy()
		failing.SetAnnotations(map[string]string{"fail": name})
		c := shared.admin()
		body, _ := json.Marshal(failing.Object)
		err := core(t, c).Discovery().RESTClient().Post().AbsPath("/apis/hykube.io/v1alpha1/namespaces/"+ns+"/queries").
			Param("timeout", "2s").SetHeader("Content-Type", "application/json").Body(body).Do(t.Context()).Error()
		if !want.is(err) || !strings.Contains(err.Error(), want.text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := admin.Resource(queries).Namespace(ns).List(t.Context(), metav1.ListOptions{}); !apierrors.IsMethodNotSupported(err) && !apierrors.IsNotFound(err) {
		t.Errorf("list: %v", err)
	}
}

// One who may query, but not with this configuration.
func TestQueryNeedsTheRightToUse(t *testing.T) {
	ns := namespace(t, "query-use")
	if _, err := objects(t, shared.admin()).Resource(providerConfigs).Namespace(ns).Create(t.Context(), newObject("ProviderConfig", "default", map[string]any{"provider": "sim"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	allow(t, ns, "asker", "writers", "queries", "create")
	eventually(t, "the editor may query, and lacks the right to the ProviderConfig", func() bool {
		_, err := ask(t, shared.as("editor"), ns, newQuery(map[string]any{"type": "sim_network"}))
		return apierrors.IsForbidden(err) && kindOf(err) == "providerconfigs"
	})
}
