package loopback

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/contributor"
	"github.com/hykube/hykube/internal/query"
	"github.com/hykube/hykube/internal/store"
)

// Stacks writes the status and the outputs of Stacks.
type Stacks struct {
	Client rest.Interface
	Core   kubernetes.Interface
	// Queries evaluates outputs, and Access checks the rights of the authors.
	Queries *query.Queries
	Access  store.Access
}

// Get returns a stack. It returns store.ErrGone if there is none with the UID.
func (k *Stacks) Get(ctx context.Context, namespace, name string, uid types.UID) (*v1alpha1.Stack, error) {
	s := &v1alpha1.Stack{}
	err := asGone(k.Client.Get().Namespace(namespace).Resource("stacks").Name(name).Do(ctx).Into(s))
	if err == nil && s.UID != uid {
		err = store.ErrGone
	}
	return s, err
}

// UpdateStatus changes the status of a stack. It does nothing if there is none with the UID.
func (k *Stacks) UpdateStatus(ctx context.Context, namespace, name string, uid types.UID,
	change func(*v1alpha1.StackStatus)) error {
	err := Update(ctx, k.Client, "stacks", namespace, name, "status", func(s *v1alpha1.Stack) error {
		if s.UID != uid {
			return store.ErrGone
		}
		change(&s.Status)
		return nil
	})
	return store.IgnoreGone(asGone(err))
}

// Outputs evaluates the outputs of a stack with the rights of its author, and writes them to the objects that the spec
// names. It returns a *query.OutputError if the reason is one that a user can change.
func (k *Stacks) Outputs(ctx context.Context, s *v1alpha1.Stack) ([]v1alpha1.StackOutput, error) {
	if s.Status.Author == nil {
		return nil, &query.OutputError{Problem: "the stack has no author; write its spec again."}
	}
	values, err := k.Queries.Outputs(ctx, *s.Status.Author, s.Namespace, s.Spec.Outputs)
	if err != nil {
		return nil, err
	}
	public, secret, writers := map[string]string{}, map[string][]byte{}, map[string][]v1alpha1.Contributor{}
	var out []v1alpha1.StackOutput
	for _, o := range values {
		writers[o.Name] = o.Writers
		if o.Sensitive {
			secret[o.Name] = []byte(o.Text)
			out = append(out, v1alpha1.StackOutput{Name: o.Name, Sensitive: true})
			continue
		}
		public[o.Name] = o.Text
		out = append(out, v1alpha1.StackOutput{Name: o.Name, Value: o.JSON})
	}
	to := s.Spec.WriteOutputsTo
	if to == nil {
		return out, nil
	}
	if err := k.mayWrite(ctx, s, to); err != nil {
		return nil, err
	}
	if to.ConfigMap != "" {
		err = k.writeConfigMap(ctx, s, public, writers)
	}
	if to.Secret != "" && err == nil {
		err = k.writeSecret(ctx, s, secret, writers)
	}
	return out, err
}

// Written returns the UIDs and versions of the objects that the spec of a stack names for its outputs.
func (k *Stacks) Written(ctx context.Context, s *v1alpha1.Stack) (string, error) {
	to := s.Spec.WriteOutputsTo
	if to == nil {
		return "", nil
	}
	var found []string
	note := func(obj metav1.Object, err error) error {
		if err == nil {
			found = append(found, string(obj.GetUID())+"/"+obj.GetResourceVersion())
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if to.ConfigMap != "" {
		if err := note(k.Core.CoreV1().ConfigMaps(s.Namespace).Get(ctx, to.ConfigMap,
			metav1.GetOptions{})); err != nil {
			return "", err
		}
	}
	if to.Secret != "" {
		if err := note(k.Core.CoreV1().Secrets(s.Namespace).Get(ctx, to.Secret, metav1.GetOptions{})); err != nil {
			return "", err
		}
	}
	return strings.Join(found, " "), nil
}

// mayWrite checks the rights of the author at the time of the write.
func (k *Stacks) mayWrite(ctx context.Context, s *v1alpha1.Stack, to *v1alpha1.StackOutputTargets) error {
	asker := store.Asker{Access: k.Access, Who: *s.Status.Author}
	missing, err := asker.Missing(ctx,
		append(store.WriteOf(s.Namespace, "configmaps", to.ConfigMap),
			store.WriteOf(s.Namespace, "secrets", to.Secret)...))
	if err != nil || len(missing) == 0 {
		return err
	}
	return &query.OutputError{Problem: fmt.Sprintf("the user %q, who wrote the stack, has no right to %s.",
		asker.Who.Username, store.ListRights(missing))}
}

func (k *Stacks) writeConfigMap(ctx context.Context, s *v1alpha1.Stack, data map[string]string,
	writers map[string][]v1alpha1.Contributor) error {
	client, name := k.Core.CoreV1().ConfigMaps(s.Namespace), s.Spec.WriteOutputsTo.ConfigMap
	old, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, &corev1.ConfigMap{ObjectMeta: madeBy(s, name,
			writtenFor(s, "", nil, data, writers)), Data: data}, metav1.CreateOptions{})
		return refusedWrite("ConfigMap", name, err)
	}
	if err != nil {
		return err
	}
	owned, err := k.takeOver(ctx, s, old, "ConfigMap")
	if err != nil || owned && maps.Equal(old.Data, data) && len(old.BinaryData) == 0 {
		return err
	}
	written := writtenFor(s, old.Annotations[v1alpha1.AnnotationWriters], old.Data, data, writers)
	old.Data, old.BinaryData = data, nil
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, v1alpha1.AnnotationWriters, written)
	_, err = client.Update(ctx, old, metav1.UpdateOptions{})
	return refusedWrite("ConfigMap", name, err)
}

func (k *Stacks) writeSecret(ctx context.Context, s *v1alpha1.Stack, data map[string][]byte,
	writers map[string][]v1alpha1.Contributor) error {
	client, name := k.Core.CoreV1().Secrets(s.Namespace), s.Spec.WriteOutputsTo.Secret
	old, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, &corev1.Secret{ObjectMeta: madeBy(s, name,
			writtenFor(s, "", nil, asText(data), writers)), Data: data}, metav1.CreateOptions{})
		return refusedWrite("Secret", name, err)
	}
	if err != nil {
		return err
	}
	owned, err := k.takeOver(ctx, s, old, "Secret")
	if err != nil || owned && equality.Semantic.DeepEqual(old.Data, data) {
		return err
	}
	written := writtenFor(s, old.Annotations[v1alpha1.AnnotationWriters], asText(old.Data), asText(data), writers)
	old.Data = data
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, v1alpha1.AnnotationWriters, written)
	_, err = client.Update(ctx, old, metav1.UpdateOptions{})
	return refusedWrite("Secret", name, err)
}

// madeBy returns the metadata of an object that a stack makes. written is the annotation with the writers.
func madeBy(s *v1alpha1.Stack, name, written string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: s.Namespace,
		Annotations: map[string]string{v1alpha1.AnnotationWriters: written},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s,
			v1alpha1.SchemeGroupVersion.WithKind("Stack"))}}
}

// asText returns the data of a Secret as that of a ConfigMap.
func asText(data map[string][]byte) map[string]string {
	out := make(map[string]string, len(data))
	for key, value := range data {
		out[key] = string(value)
	}
	return out
}

// writtenFor returns the annotation of an object that the server writes with the rights of a stack's author. was is the
// annotation before the write, and before and after are the keys. Each key that changes has the author, and the writers
// of what its output reads. Other keys keep their writers.
func writtenFor(s *v1alpha1.Stack, was string, before, after map[string]string,
	writers map[string][]v1alpha1.Contributor) string {
	author := contributor.CreateKeys(contributor.Write{By: *s.Status.Author, At: time.Now()})
	list, err := contributor.DecodeKeys(was)
	if err != nil {
		list = []v1alpha1.Contributor{{More: true}}
	}
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		value, has := after[key]
		if old, had := before[key]; !had || !has || old != value {
			list = contributor.WriteTogether(list, contributor.Merge(writers[key], author), []string{key},
				func(key string) bool {
					_, ok := after[key]
					return ok
				})
		}
	}
	return contributor.EncodeKeys(list)
}

// takeOver makes a stack the controller of an object that an earlier stack of the same name made. It does not write the
// object. owned is true if the stack was the controller before. takeOver returns an error for any other object.
func (k *Stacks) takeOver(ctx context.Context, s *v1alpha1.Stack, obj metav1.Object,
	kind string) (owned bool, err error) {
	if metav1.IsControlledBy(obj, s) {
		return true, nil
	}
	refs := obj.GetOwnerReferences()
	at := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
	if at < 0 || refs[at].APIVersion != v1alpha1.SchemeGroupVersion.String() || refs[at].Kind != "Stack" ||
		refs[at].Name != s.Name {
		return false, &query.OutputError{Problem: fmt.Sprintf(
			"the %s %q, to which spec.writeOutputsTo refers, exists and was not made by this stack: name another object, or delete that one.", kind, obj.GetName())}
	}
	// The owner no longer exists if the stack with its name has another UID. The cache may have an earlier stack.
	if _, err := k.Get(ctx, s.Namespace, s.Name, s.UID); err != nil {
		return false, err
	}
	refs[at].UID = s.UID
	obj.SetOwnerReferences(refs)
	return false, nil
}

// refusedWrite returns an *query.OutputError for a write that the server refuses, such as one beyond a quota.
func refusedWrite(kind, name string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) {
		return &query.OutputError{Problem: fmt.Sprintf("the server refuses the %s %q: %v", kind, name, err)}
	}
	return err
}
