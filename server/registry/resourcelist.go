package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/warning"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/index"
	"github.com/hykube/hykube/internal/store"
	hykubestorage "github.com/hykube/hykube/server/storage"
)

// maxExamined is the number of objects that a page of a search by attribute reads. Such a page may have fewer items
// than its limit, although others follow.
const maxExamined = 5000

// warningMoreInstances says that a response without a limit has not all instances.
const warningMoreInstances = "the list has only the first %d instances of ResourceSets: read the others with limit and continue"

// resourceList is the work on one page of a list of Resources.
type resourceList struct {
	resourcesREST
	resourceSelection
	view hykubestorage.View
	list *v1alpha1.ResourceSummaryList
	// revision is that of all pages of the list.
	revision int64
}

// List implements rest.Lister. The stored objects come first, and then the instances of ResourceSets. All pages have
// the stored objects of one revision, and the instances as they are when their page is read.
func (r resourcesREST) List(ctx context.Context, opts *metainternalversion.ListOptions) (runtime.Object, error) {
	selected, err := newResourceSelection(opts)
	if err != nil {
		return nil, err
	}
	who, err := requireUser(ctx, "list resources")
	if err != nil {
		return nil, err
	}
	asker := &store.Asker{Access: r.access, Who: who} // remembers its answers
	l := &resourceList{resourcesREST: r, resourceSelection: selected,
		list: &v1alpha1.ResourceSummaryList{Items: []v1alpha1.ResourceSummary{}}}
	l.view = r.view(ctx, "list", selected.SelectionPredicate, asker.May)
	if err := l.read(ctx, opts); err != nil {
		return nil, err
	}
	return l.list, storage.APIObjectVersioner{}.UpdateList(l.list, uint64(l.revision), l.list.Continue, nil)
}

// read reads the page.
func (l *resourceList) read(ctx context.Context, opts *metainternalversion.ListOptions) error {
	if l.record == v1alpha1.RecordWithoutObject {
		return l.withoutObject(ctx)
	}
	if l.names != (index.Names{}) && l.backend.Index != nil {
		return l.search(ctx)
	}
	var token instancesToken
	if ok, err := token.decode(l.Continue); err != nil {
		return err
	} else if ok {
		l.revision = token.Revision
		return l.instances(ctx, token.After)
	}
	if err := l.stored(ctx, opts); err != nil || l.list.Continue != "" || l.backend.Index == nil {
		return err
	}
	return l.instances(ctx, index.Place{})
}

// stored adds the stored objects of the page.
func (l *resourceList) stored(ctx context.Context, opts *metainternalversion.ListOptions) error {
	var failed error
	if l.attribute != "" {
		l.view.MaxRead = maxExamined
		l.view.Convert = func(u *unstructured.Unstructured) runtime.Object {
			if r, err := l.convert(u); err != nil {
				failed = err
			} else if r != nil {
				return r
			}
			return nil
		}
	}
	page, err := l.collection.List(ctx, l.view, storage.ListOptions{
		ResourceVersion: opts.ResourceVersion, ResourceVersionMatch: opts.ResourceVersionMatch,
		Predicate: l.SelectionPredicate,
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	for _, o := range page.Objects {
		l.list.Items = append(l.list.Items, *o.(*v1alpha1.ResourceSummary))
	}
	l.list.Continue, l.revision = page.Continue, page.Revision
	return nil
}

// room returns the number of instances that fit into the page.
func (l *resourceList) room() int {
	if l.Limit == 0 {
		return maxPage
	}
	return int(l.Limit) - len(l.list.Items)
}

// instances adds the instances after a place.
func (l *resourceList) instances(ctx context.Context, after index.Place) error {
	room, examined, first := l.room(), 0, after == index.Place{}
	for {
		var failed error
		page, err := l.backend.Index.InstancesAfter(ctx, l.view.Namespace, after, room, l.wants(l.view, &failed))
		if err == nil {
			err = failed
		}
		if err != nil {
			return apiError(err)
		}
		if first {
			l.backend.Index.NoteList(l.revision, page.Position)
			first = false
		}
		for _, found := range page.Items {
			if err := l.add(ctx, found); err != nil {
				return err
			}
		}
		examined += len(page.Items)
		if len(page.Items) > 0 {
			after = page.Last
		}
		if !page.More {
			return nil
		}
		if room = l.room(); room == 0 || l.Limit == 0 || examined >= maxExamined {
			break
		}
	}
	if l.Limit == 0 {
		warning.AddWarning(ctx, "", fmt.Sprintf(warningMoreInstances, maxPage))
	}
	l.list.Continue = instancesToken{l.revision, after}.encode()
	return nil
}

// add adds an instance to the page if the selection has it.
func (l *resourceList) add(ctx context.Context, found index.Located) error {
	u, err := l.backend.Instance(ctx, found)
	if err != nil {
		return apierrors.NewInternalError(err)
	}
	u.SetResourceVersion(fmt.Sprint(l.revision))
	r, err := l.convert(u)
	if err == nil && r != nil {
		l.list.Items = append(l.list.Items, *r)
	}
	return err
}

// search adds the objects and instances that the index finds by name or ID.
func (l *resourceList) search(ctx context.Context) error {
	var after index.FoundPlace
	if l.Continue != "" {
		if err := decodeToken(searchToken, l.Continue, &after); err != nil {
			return err
		}
	}
	limit := int(l.Limit)
	if limit == 0 {
		limit = maxPage
	}
	l.names.Namespace = l.view.Namespace
	var last index.FoundPlace // of the last item of the page
	for {
		var failed error
		found, at, err := l.backend.Index.Search(ctx, l.names, after, limit+1, l.wants(l.view, &failed))
		if err == nil {
			err = failed
		}
		if err != nil {
			return apiError(err)
		}
		l.revision = at
		for _, f := range found {
			u, err := l.located(ctx, f)
			if err != nil {
				return apierrors.NewInternalError(err)
			}
			if u == nil {
				continue
			}
			if f.Object.Instance != nil {
				u.SetResourceVersion(fmt.Sprint(at))
			}
			r, err := l.convert(u)
			if err != nil {
				return err
			}
			if r == nil {
				continue
			}
			if len(l.list.Items) == limit {
				l.list.Continue = encodeToken(searchToken, last)
				return nil
			}
			l.list.Items, last = append(l.list.Items, *r), f.Place()
		}
		if len(found) <= limit {
			return nil
		}
		after = found[len(found)-1].Place()
	}
}

// Beginnings of the tokens of the pages that the index answers. The tokens of stored objects begin with neither.
const (
	instanceToken = "instances."
	searchToken   = "search."
)

// instancesToken is the token of a page that begins with an instance.
type instancesToken struct {
	Revision int64       `json:"rv"`
	After    index.Place `json:"a"`
}

func (t instancesToken) encode() string { return encodeToken(instanceToken, t) }

// decode decodes a token. ok is false if it is that of a page of stored objects.
func (t *instancesToken) decode(token string) (ok bool, err error) {
	if !strings.HasPrefix(token, instanceToken) {
		return false, nil
	}
	return true, decodeToken(instanceToken, token, t)
}

func encodeToken(beginning string, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // texts and numbers can always be encoded
	}
	return beginning + base64.RawURLEncoding.EncodeToString(text)
}

func decodeToken(beginning, token string, v any) error {
	encoded, ok := strings.CutPrefix(token, beginning)
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if !ok || err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("the continue token %q is not that of an earlier page", token))
	}
	return nil
}
