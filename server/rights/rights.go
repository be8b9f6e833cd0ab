// Package rights checks the rights of users with the server's authorizer. It must not know kinds or storage.
package rights

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/store"
)

// Access implements store.Access. It uses the authorizer of the server's requests and caches nothing.
type Access struct{ Authorizer authorizer.Authorizer }

// May implements store.Access.
func (a Access) May(ctx context.Context, who v1alpha1.Identity, right store.Right) (bool, error) {
	resource, subresource, _ := strings.Cut(right.Resource, "/")
	decision, _, err := a.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: InfoOf(who), Verb: right.Verb, Namespace: right.Namespace,
		APIGroup: right.Group, APIVersion: "*", Resource: resource, Subresource: subresource, Name: right.Name,
		ResourceRequest: true,
	})
	if decision == authorizer.DecisionAllow {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether %q may %s: %w", who.Username, right, err)
	}
	return false, nil
}

// Users implements store.Users.
type Users struct {
	// Narrow returns a user whom the token file named, with the groups that it still gives; false if it names the user
	// no more.
	Narrow func(user.Info) (user.Info, bool)
}

// Current implements store.Users. It returns users whom the token file did not name as they are. A user who acted
// through another one, whom the file names no more, is as one whom it names no more.
func (u Users) Current(who v1alpha1.Identity) (v1alpha1.Identity, bool) {
	groups, named := u.groups(WorkerOf(who))
	through := slices.Clone(who.Through)
	for i := range through {
		ok := false
		through[i].Groups, ok = u.groups(through[i])
		named = named && ok
	}
	if !named {
		groups = nil
	}
	who.Groups, who.Through = groups, through
	return who, named
}

// groups returns the groups that a user has now; false if the token file named the user, and names the user no more.
func (u Users) groups(who v1alpha1.WorkflowUser) ([]string, bool) {
	if !who.TokenFile {
		return who.Groups, true
	}
	now, ok := u.Narrow(InfoOf(v1alpha1.Identity{Username: who.Username, Groups: who.Groups, TokenFile: true}))
	if !ok {
		return nil, false
	}
	return now.GetGroups(), true
}

// Asker returns an Asker for the user of a request.
func (a Access) Asker(who user.Info) *store.Asker {
	return &store.Asker{Access: a, Who: IdentityOf(who)}
}

// IdentityOf returns the user of a request as plans record it.
func IdentityOf(who user.Info) v1alpha1.Identity {
	return v1alpha1.Identity{
		Username: who.GetName(), Groups: who.GetGroups(), TokenFile: IsNamedByTokenFile(who), Through: through(who),
	}
}

// Writer returns the user whose write a request is. ok is false if the server itself makes the request.
func Writer(ctx context.Context) (who v1alpha1.Identity, ok bool) {
	info, found := request.UserFrom(ctx)
	if !found || info.GetName() == user.APIServerUser {
		return v1alpha1.Identity{}, false
	}
	return IdentityOf(info), true
}

// InfoOf is the inverse of IdentityOf.
func InfoOf(who v1alpha1.Identity) user.Info {
	info := &user.DefaultInfo{Name: who.Username, Groups: who.Groups, Extra: map[string][]string{}}
	if who.TokenFile {
		info.Extra = NamedByTokenFile()
	}
	for _, u := range who.Through {
		text, _ := json.Marshal(u) // strings and a bool always have a JSON form
		info.Extra[throughKey] = append(info.Extra[throughKey], string(text))
	}
	return info
}

// WorkerOf returns the user of a worker's request, as a workflow that it took part in has it.
func WorkerOf(who v1alpha1.Identity) v1alpha1.WorkflowUser {
	return v1alpha1.WorkflowUser{Username: who.Username, Groups: who.Groups, TokenFile: who.TokenFile}
}

// Join returns an identity with further users who took part in its workflow.
func Join(who v1alpha1.Identity, users ...v1alpha1.WorkflowUser) v1alpha1.Identity {
	for _, u := range users {
		known := func(k v1alpha1.WorkflowUser) bool { return equality.Semantic.DeepEqual(k, u) }
		if !known(WorkerOf(who)) && !slices.ContainsFunc(who.Through, known) {
			who.Through = append(slices.Clip(who.Through), u)
		}
	}
	return who
}

// throughKey has the users whose workers act for the user of a request, as JSON, in the extra attributes.
const throughKey = "hykube.io/through"

// ThroughOf returns the users whose workers act for the user of a request. Each of them needs the rights of the
// request.
func ThroughOf(who user.Info) (users []user.Info) {
	for _, u := range through(who) {
		users = append(users, InfoOf(v1alpha1.Identity{Username: u.Username, Groups: u.Groups, TokenFile: u.TokenFile}))
	}
	return users
}

func through(who user.Info) (users []v1alpha1.WorkflowUser) {
	for _, text := range who.GetExtra()[throughKey] {
		var u v1alpha1.WorkflowUser
		// A user without a name has no rights, so a text that is no JSON gives none.
		_ = json.Unmarshal([]byte(text), &u)
		users = append(users, u)
	}
	return users
}

// tokenFileKey marks the users that the token file names, in their extra attributes.
const tokenFileKey = "hykube.io/token-file"

// NamedByTokenFile returns the extra attributes of a user that the token file names.
func NamedByTokenFile() map[string][]string { return map[string][]string{tokenFileKey: {"true"}} }

// IsNamedByTokenFile reports whether the token file named a user.
func IsNamedByTokenFile(who user.Info) bool {
	return who != nil && len(who.GetExtra()[tokenFileKey]) > 0
}
