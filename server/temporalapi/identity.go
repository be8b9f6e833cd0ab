package temporalapi

import (
	"encoding/json"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/starter"
)

// This file replaces what clients say about themselves: the identities in requests, which Temporal stores with the
// events of a run, and the stamps in headers. So the history of a run says who took part in it.

// maxIdentity is the maximum length of an identity in Temporal.
const maxIdentity = 1000

// client is the identity of a client in the history of a run.
type client struct {
	v1alpha1.Identity
	// Trusted is true if a role names the task queue for this user. So an administrator chose the user for that queue,
	// and the user takes no part in the runs.
	Trusted bool `json:"trusted,omitempty"`
	// Client is the identity that the client gave itself.
	Client string `json:"client,omitempty"`
}

// encode returns the identity as a text for Temporal. A user with many groups has none in it, and so fewer rights.
func (c client) encode() string {
	short := c
	short.Client = ""
	fewer := short
	fewer.Groups, fewer.Through = nil, slices.Clone(c.Through)
	for i := range fewer.Through {
		fewer.Through[i].Groups = nil
	}
	for _, form := range []client{c, short, fewer} {
		if text, err := json.Marshal(form); err == nil && len(text) <= maxIdentity {
			return string(text)
		}
	}
	return `{"username":"` + unknownUser + `"}`
}

// unknownUser is a user without rights. No user can have this name.
const unknownUser = "system:unknown"

// decodeClient returns the users behind the identity of an event. Other identities are those of the server itself.
func decodeClient(text string) (users []v1alpha1.WorkflowUser) {
	var c client
	if err := json.Unmarshal([]byte(text), &c); err != nil || c.Trusted {
		return nil
	}
	return append([]v1alpha1.WorkflowUser{rights.WorkerOf(c.Identity)}, c.Through...)
}

// replaceIdentities gives all identities in a message the user of the request, and removes stamps from its headers and
// memos.
func replaceIdentities(m protoreflect.Message, who client) {
	switch v := m.Interface().(type) {
	case *commonpb.Payload, *anypb.Any:
		return
	case *commonpb.Header:
		delete(v.GetFields(), starter.Header)
		delete(v.GetFields(), v1alpha1.ActivityHeaderOnBehalfOf)
	case *commonpb.Memo:
		delete(v.GetFields(), starter.Memo)
	}
	if field := m.Descriptor().Fields().ByName("identity"); field != nil && field.Kind() == protoreflect.StringKind &&
		!field.IsList() {
		who.Client = m.Get(field).String()
		m.Set(field, protoreflect.ValueOfString(who.encode()))
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil:
		case field.IsMap():
			if field.MapValue().Message() != nil {
				value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
					replaceIdentities(v.Message(), who)
					return true
				})
			}
		case field.IsList():
			for i := range value.List().Len() {
				replaceIdentities(value.List().Get(i).Message(), who)
			}
		default:
			replaceIdentities(value.Message(), who)
		}
		return true
	})
}
