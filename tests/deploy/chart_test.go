package deploy

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install"
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	podsecurity "k8s.io/pod-security-admission/api"
	podsecuritypolicy "k8s.io/pod-security-admission/policy"
)

// valuesFiles returns the files of values below ci/ of the chart.
func valuesFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(chart + "/ci/*-values.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("found only the values %v: %v", files, err)
	}
	return files
}

func render(t *testing.T, helm *tool, args ...string) (string, error) {
	t.Helper()
	return helm.run(t, "", append([]string{"template", "hykube", chart, "--namespace", "infra", "--kube-version", kubernetesVersion}, args...)...)
}

// document is one rendered object as text and, for the kinds of Kubernetes, as an object.
type document struct {
	text   string
	object runtime.Object
}

// decode decodes YAML documents. It fails for fields that do not exist and for fields that are set twice.
func decode(t *testing.T, rendered string) (documents []document) {
	t.Helper()
	decoder := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(rendered))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents
		}
		if err != nil {
			t.Fatal(err)
		}
		d := document{text: string(text)}
		if !strings.Contains(d.text, "apiVersion: monitoring.coreos.com/") {
			if d.object, _, err = decoder.Decode(text, nil, nil); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
		}
		documents = append(documents, d)
	}
}

// validate does what an API server does with a new object: it sets the defaults and calls Kubernetes' validation.
func validate(t *testing.T, obj runtime.Object) {
	t.Helper()
	obj = obj.DeepCopyObject()
	legacyscheme.Scheme.Default(obj)
	internal, err := legacyscheme.Scheme.ConvertToVersion(obj, runtime.InternalGroupVersioner)
	if err != nil {
		t.Fatal(err)
	}
	var errs field.ErrorList
	switch o := internal.(type) {
	case *apps.StatefulSet:
		errs = appsvalidation.ValidateStatefulSet(o, corevalidation.PodValidationOptions{})
	case *core.Pod:
		errs = corevalidation.ValidatePodCreate(o, corevalidation.PodValidationOptions{})
	case *core.Service:
		errs = corevalidation.ValidateServiceCreate(o)
	case *core.ServiceAccount:
		errs = corevalidation.ValidateServiceAccount(o)
	case *core.ConfigMap:
		errs = corevalidation.ValidateConfigMap(o)
	case *networking.NetworkPolicy:
		errs = networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *policy.PodDisruptionBudget:
		errs = policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	default:
		t.Errorf("no validation for %T", internal)
	}
	if err := errs.ToAggregate(); err != nil {
		t.Errorf("%T: %v", obj, err)
	}
}

// TestChart lints and renders the chart with each file of values, and checks the objects as an API server would.
func TestChart(t *testing.T) {
	for _, file := range valuesFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), "-values.yaml"), func(t *testing.T) {
			var documents []document
			for _, helm := range []*tool{helm3, helm4} {
				if out, err := helm.run(t, "", "lint", chart, "--strict", "--kube-version", kubernetesVersion, "--values", file); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
				rendered, err := render(t, helm, "--values", file)
				if err != nil {
					t.Fatal(err)
				}
				again := decode(t, rendered)
				if diff := cmp.Diff(objects(documents), objects(again)); helm == helm4 && diff != "" {
					t.Errorf("Helm 3 (-) and Helm 4 (+) render different objects:\n%s", diff)
				}
				documents = again
			}
			var operator []string
			for _, d := range documents {
				if d.object == nil {
					operator = append(operator, d.text)
					continue
				}
				validate(t, d.object)
				restricted(t, d.object)
			}
			if _, err := monitoring.run(t, strings.Join(operator, "\n---\n")); err != nil {
				t.Error(err)
			}
		})
	}
}

// objects returns the objects of documents by kind and name.
func objects(documents []document) map[string]runtime.Object {
	all := map[string]runtime.Object{}
	for _, d := range documents {
		if d.object != nil {
			named := d.object.(interface{ GetName() string })
			all[d.object.GetObjectKind().GroupVersionKind().Kind+"/"+named.GetName()] = d.object
		}
	}
	return all
}

// restricted checks a pod against the Pod Security Standard "restricted".
func restricted(t *testing.T, obj runtime.Object) {
	t.Helper()
	var meta = &corev1.PodTemplateSpec{}
	switch o := obj.(type) {
	case *appsv1.StatefulSet:
		meta = &o.Spec.Template
	case *corev1.Pod:
		meta.ObjectMeta, meta.Spec = o.ObjectMeta, o.Spec
	default:
		return
	}
	evaluator, err := podsecuritypolicy.NewEvaluator(podsecuritypolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	result := podsecuritypolicy.AggregateCheckResults(evaluator.EvaluatePod(level, &meta.ObjectMeta, &meta.Spec))
	if !result.Allowed {
		t.Errorf("%T violates the Pod Security Standard restricted: %s", obj, result.ForbiddenDetail())
	}
	for _, c := range meta.Spec.Containers {
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%T can write to its root file system", obj)
		}
		if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Memory().IsZero() {
			t.Errorf("%T has no memory limit or request", obj)
		}
	}
	if token := meta.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Errorf("%T has a token of the cluster that it does not need", obj)
	}
}

// TestRefusedValues renders the chart with mistakes in its values.
func TestRefusedValues(t *testing.T) {
	for reason, tc := range map[string]struct{ set, want string }{
		"a value that does not exist":         {"persistance.size=1Gi", "persistance"},
		"two standbys":                        {"servers=3", "servers"},
		"a standby without a common database": {"servers=2,encryption.keySecret.name=k", "endpointSecret"},
		"a standby without a common key":      {"servers=2,database.endpointSecret.name=d", "keySecret"},
		"two servers on one volume":           {"servers=2,encryption.keySecret.name=k,database.endpointSecret.name=d,persistence.existingClaim=c", "existingClaim"},
		"workers without a common database":   {"workers=2,encryption.keySecret.name=k,temporal.address=t:7233", "endpointSecret"},
		"workers without a common key":        {"workers=2,database.endpointSecret.name=d,temporal.address=t:7233", "keySecret"},
		"workers without a common Temporal":   {"workers=2,encryption.keySecret.name=k,database.endpointSecret.name=d", "address"},
		"a size that is not a quantity":       {"persistence.size=big", "size"},
		"an unknown mode of the sandbox":      {"providers.sandbox=on", "sandbox"},
		"a digest that is none":               {"image.digest=latest", "digest"},
		"an address without a port":           {"temporal.address=temporal", "address"},
		"a client certificate without Secret": {"temporal.tls.clientCertificate=true", "secretName"},
		"a monitor without credentials":       {"serviceMonitor.enabled=true", "tokenSecret"},
		"a flag that is none":                 {"server.extraArgs[0]=plan-history-limit", "extraArgs"},
		"a mirror without encryption":         {"providers.mirrors[0]=http://mirror.example.com/", "mirrors"},
		"less time than the server may take":  {"terminationGracePeriodSeconds=5", "terminationGracePeriodSeconds"},
		"a volume that several nodes write":   {"persistence.accessMode=ReadWriteMany", "accessMode"},
	} {
		t.Run(reason, func(t *testing.T) {
			if _, err := render(t, helm4, "--set", tc.set); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error about %s", err, tc.want)
			}
		})
	}
}

// TestNotes prints the notes after an installation, with the warnings that the values deserve.
func TestNotes(t *testing.T) {
	// Each note names the value, the object or the command that it is about.
	const key, drain, deleted = "encryption.keySecret.name", "PodDisruptionBudget", "`helm uninstall`"
	for name, tc := range map[string]struct{ has, lacks []string }{
		"default":  {[]string{key, "data-hykube-0"}, []string{drain, deleted}},
		"external": {nil, []string{key, drain, "SQLite"}},
		"full":     {[]string{drain, deleted}, []string{key}},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(chart, "ci", name+"-values.yaml")
			notes, err := helm4.run(t, "", "install", "hykube", chart, "--namespace", "infra", "--dry-run=client", "--values", file)
			if err != nil {
				t.Fatal(err)
			}
			_, notes, _ = strings.Cut(notes, "NOTES:")
			for _, text := range append(tc.has, "hykube kubeconfig --data-dir=/var/lib/hykube/data --user=me") {
				if !strings.Contains(notes, text) {
					t.Errorf("the notes lack %q:\n%s", text, notes)
				}
			}
			for _, text := range tc.lacks {
				if strings.Contains(notes, text) {
					t.Errorf("the notes have %q:\n%s", text, notes)
				}
			}
		})
	}
}

// TestNetworkPolicy checks which connections the policy allows.
func TestNetworkPolicy(t *testing.T) {
	for name, want := range map[string]string{"default": "443,53", "external": "443,53,5432,7233", "full": "443,53,6432,8443,9000"} {
		rendered, err := render(t, helm4, "--values", filepath.Join(chart, "ci", name+"-values.yaml"), "--show-only", "templates/networkpolicy.yaml")
		if err != nil {
			t.Fatal(err)
		}
		internal, err := legacyscheme.Scheme.ConvertToVersion(decode(t, rendered)[0].object, runtime.InternalGroupVersioner)
		if err != nil {
			t.Fatal(err)
		}
		np := internal.(*networking.NetworkPolicy)
		ports := map[string]bool{}
		for _, rule := range np.Spec.Egress {
			for _, p := range rule.Ports {
				ports[p.Port.String()] = true
			}
		}
		if got := strings.Join(slices.Sorted(maps.Keys(ports)), ","); got != want {
			t.Errorf("%s: the server may connect to the ports %s, want %s", name, got, want)
		}
		if len(np.Spec.PolicyTypes) != 2 {
			t.Errorf("%s: the policy covers only %v", name, np.Spec.PolicyTypes)
		}
	}
}

// TestEveryValueIsDescribed expects the schema to have each value of values.yaml, and the other way round.
func TestEveryValueIsDescribed(t *testing.T) {
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	var values map[string]any
	for name, into := range map[string]any{"values.schema.json": &schema, "values.yaml": &values} {
		text, err := os.ReadFile(filepath.Join(chart, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(text, into); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	delete(schema.Properties, "global") // Helm itself passes it
	if diff := cmp.Diff(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(schema.Properties))); diff != "" {
		t.Errorf("values.yaml (-) and values.schema.json (+) have different values:\n%s", diff)
	}
	var closed func(path string, node any)
	closed = func(path string, node any) {
		n, ok := node.(map[string]any)
		if !ok {
			return
		}
		if n["properties"] != nil && n["type"] == "object" && n["additionalProperties"] != false {
			t.Errorf("the schema of %s accepts values that do not exist", path)
		}
		for name, child := range n {
			if name == "properties" {
				for p, c := range child.(map[string]any) {
					closed(path+"."+p, c)
				}
			}
		}
	}
	for name, node := range schema.Properties {
		closed(name, node)
	}
}
