package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hykube/hykube/api/v1alpha1"
)

// planLimit is the maximum time to make a plan, or to apply it.
const planLimit = 2 * time.Minute

// hykube is Hykube's side of a story: a namespace on the shared server.
type hykube struct {
	fixture   *fixture
	cloud     *cloud
	namespace string
	before    config
	// sources holds the addresses of the providers in the story.
	sources map[string]string
	// known lists all addresses that the configuration has had.
	known map[string]bool
}

func newHykube(ctx context.Context, f *fixture, st *story, namespace string) (*hykube, error) {
	c, err := startCloud(filepath.Join(f.Dir, "clouds", namespace))
	if err != nil {
		return nil, err
	}
	y := &hykube{fixture: f, cloud: c, namespace: namespace, known: map[string]bool{}, sources: map[string]string{}}
	for _, name := range st.providers() {
		y.sources[name] = f.sources[name]
	}
	err = y.write(ctx, "/api/v1/namespaces", map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": namespace}})
	for _, provider := range st.providers() {
		// Objects that name no ProviderConfig use the one with the provider's name.
		with := providerConfig(provider, c.Address, filepath.Join(f.Dir, "clouds", namespace))
		if err != nil || len(with) == 0 {
			continue
		}
		err = y.write(ctx, "/apis/hykube.io/v1alpha1/namespaces/"+namespace+"/providerconfigs", map[string]any{
			"apiVersion": "hykube.io/v1alpha1", "kind": "ProviderConfig", "metadata": map[string]any{"name": provider},
			"spec": map[string]any{"provider": provider, "config": with},
		})
	}
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return y, nil
}

// write records an object as kubectl apply --server-side does.
func (y *hykube) write(ctx context.Context, collection string, object map[string]any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	name := object["metadata"].(map[string]any)["name"].(string)
	return y.fixture.Client().Patch(types.ApplyPatchType).AbsPath(collection, name).Param("fieldManager", "differential").
		Param("force", "true").Param("fieldValidation", "Strict").Body(body).Do(ctx).Error()
}

func (y *hykube) collection(ctx context.Context, at string) (string, error) {
	a, err := parseAddress(at)
	if err != nil {
		return "", err
	}
	plural, err := y.fixture.plural(ctx, a.provider(), a.kind())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/apis/%s.hykube.io/v1/namespaces/%s/%s", a.provider(), y.namespace, plural), nil
}

// play runs a step.
func (y *hykube) play(ctx context.Context, s *step, c config) (*outcome, error) {
	if err := y.cloud.prepare(ctx, s); err != nil {
		return nil, err
	}
	out := &outcome{}
	refused, err := y.record(ctx, s, c)
	switch {
	case err != nil:
		return nil, err
	case refused != "":
		// Hykube cannot plan an object that it cannot record.
		out.PlanError = refused
	default:
		if err := y.planAndApply(ctx, s, out); err != nil {
			return nil, err
		}
	}
	if out.States, err = y.states(ctx); err != nil {
		return nil, err
	}
	return out, y.cloud.observe(ctx, out)
}

// record records the configuration, and deletes the objects that it no longer has. refused is the server's error.
func (y *hykube) record(ctx context.Context, s *step, c config) (refused string, err error) {
	defer func() { y.before = c }()
	y.before.Files = c.Files
	var all []string
	refuse := func(at string, err error) error {
		if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsConflict(err) {
			all = append(all, at+": "+err.Error())
			return nil
		}
		return fmt.Errorf("%s: %w", at, err)
	}
	for kind, sets := range map[string]map[string]map[string]string{"ConfigMap": c.ConfigMaps, "Secret": c.Secrets} {
		for name, keys := range sets {
			data := "data"
			if kind == "Secret" {
				data = "stringData"
			}
			object := map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name}, data: keys}
			if err := y.write(ctx, "/api/v1/namespaces/"+y.namespace+"/"+strings.ToLower(kind)+"s", object); err != nil {
				return "", fmt.Errorf("write %s %q: %w", kind, name, err)
			}
		}
	}
	if len(c.Files) > 0 {
		if err := y.writeModule(ctx, c); err != nil {
			if err := refuse("the Module", err); err != nil {
				return "", err
			}
		}
	}
	for _, at := range c.addresses() {
		y.known[at] = true
		collection, err := y.collection(ctx, at)
		if err != nil {
			return "", err
		}
		if c.Repeat[at] != nil {
			collection = y.sets()
		}
		object, err := c.object(at)
		if err != nil {
			return "", err
		}
		if _, stays := y.before.Resources[at]; !stays {
			if err := y.undelete(ctx, collection, object); err != nil {
				return "", err
			}
		}
		if err := y.write(ctx, collection, object); err != nil {
			if err := refuse(at, err); err != nil {
				return "", err
			}
		}
	}
	if len(all) > 0 {
		return strings.Join(all, "\n"), nil
	}
	for _, at := range s.Forget {
		object, err := y.before.object(at)
		if err != nil {
			return "", err
		}
		lifecycle := maps.Clone(y.before.Lifecycle[at])
		if lifecycle == nil {
			lifecycle = map[string]any{}
		}
		lifecycle["destroy"] = false
		object["lifecycle"] = lifecycle
		collection, err := y.collection(ctx, at)
		if err == nil {
			err = y.write(ctx, collection, object)
		}
		if err != nil {
			if err := refuse(at, err); err != nil {
				return "", err
			}
		}
	}
	for at := range y.known {
		_, wanted := c.Resources[at]
		a, err := parseAddress(at)
		if err != nil {
			return "", err
		}
		collection, err := y.collection(ctx, at)
		if err != nil {
			return "", err
		}
		paths := map[string]bool{collection + "/" + a.name: wanted && c.Repeat[at] == nil, y.sets() + "/" + setName(a): wanted && c.Repeat[at] != nil}
		for path, stays := range paths {
			if stays {
				continue
			}
			if err := y.fixture.Client().Delete().AbsPath(path).Do(ctx).Error(); err != nil && !apierrors.IsNotFound(err) {
				if err := refuse(at, err); err != nil {
					return "", err
				}
			}
		}
	}
	for verb, addresses := range map[string][]string{"taint": s.Taint, "untaint": s.Untaint} {
		for _, at := range addresses {
			if err := y.taint(ctx, verb, at); err != nil {
				return "", err
			}
		}
	}
	return strings.Join(all, "\n"), nil
}

// undelete reverts the deletion of an object that comes back before a plan destroyed it.
func (y *hykube) undelete(ctx context.Context, collection string, object map[string]any) error {
	name := object["metadata"].(map[string]any)["name"].(string)
	data, err := y.fixture.Client().Get().AbsPath(collection, name).Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil
	}
	var o metav1.PartialObjectMetadata
	if err == nil {
		err = json.Unmarshal(data, &o)
	}
	if err == nil && o.DeletionTimestamp != nil {
		err = y.fixture.Client().Post().AbsPath(collection, name, "undelete").Body([]byte("{}")).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("undelete %s: %w", name, err)
	}
	return nil
}

func (y *hykube) taint(ctx context.Context, verb, at string) error {
	a, err := parseAddress(at)
	if err != nil && len(y.before.Files) == 0 {
		return err
	}
	if len(y.before.Files) > 0 {
		a.typ, a.name = inModule(at)
		at = a.typ + ".x"
	}
	collection, err := y.collection(ctx, at)
	if err != nil {
		return err
	}
	req := y.fixture.Client().Post()
	if verb == "untaint" {
		req = y.fixture.Client().Delete()
	}
	if err := req.AbsPath(collection, a.name, "taint").Body([]byte("{}")).Do(ctx).Error(); err != nil {
		return fmt.Errorf("%s %s: %w", verb, at, err)
	}
	return nil
}

// sets is the path of the ResourceSets.
func (y *hykube) sets() string {
	return "/apis/hykube.io/v1alpha1/namespaces/" + y.namespace + "/resourcesets"
}

// instances are the addresses of the instances of an address; none when it is not repeated.
func (y *hykube) instances(ctx context.Context, at string) (out []string, err error) {
	a, err := parseAddress(at)
	if err != nil {
		return nil, err
	}
	data, err := y.fixture.Client().Get().AbsPath(y.sets(), setName(a), "instances").Do(ctx).Raw()
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	var list v1alpha1.ResourceSetInstanceList
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	for _, item := range list.Items {
		var o metav1.PartialObjectMetadata
		if err := json.Unmarshal(item.Raw, &o); err != nil {
			return nil, err
		}
		out = append(out, a.typ+"."+o.Name)
	}
	return out, err
}

// states reads the records of all addresses that the configuration has had.
func (y *hykube) states(ctx context.Context) (map[string]*state, error) {
	out := map[string]*state{}
	var all []string
	for at := range y.known {
		instances, err := y.instances(ctx, at)
		if err != nil {
			return nil, err
		}
		all = append(append(all, at), instances...)
	}
	for _, at := range all {
		a, err := parseAddress(at)
		if err != nil {
			return nil, err
		}
		if a.mode != "managed" && a.mode != "data" {
			continue
		}
		collection, err := y.collection(ctx, at)
		if err != nil {
			return nil, err
		}
		data, err := y.fixture.Client().Get().AbsPath(collection, a.name, "state").Do(ctx).Raw()
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read state of %s: %w", at, err)
		}
		type instance struct {
			Attributes   map[string]any
			Tainted      bool
			Dependencies []string
		}
		var read struct {
			instance
			Deposed []instance
		}
		if err := decode(data, &read); err != nil {
			return nil, fmt.Errorf("read state of %s: %w", at, err)
		}
		if read.Attributes != nil {
			out[v1alpha1.ShownName(at)] = &state{Attributes: read.Attributes, Tainted: read.Tainted, Dependencies: read.Dependencies}
		}
		for i, d := range read.Deposed {
			out[fmt.Sprintf("%s deposed %d", at, i+1)] = &state{Attributes: d.Attributes, Tainted: d.Tainted, Dependencies: d.Dependencies}
		}
	}
	if len(y.before.Files) > 0 {
		if err := y.moduleStates(ctx, out); err != nil {
			return nil, err
		}
	}
	for _, s := range out {
		// Terraform's states name no keys: a reference to an instance depends on all of them.
		for i, d := range s.Dependencies {
			s.Dependencies[i] = unkeyed(d)
		}
		slices.Sort(s.Dependencies)
		s.Dependencies = slices.Compact(s.Dependencies)
	}
	return out, nil
}
