package access

import (
	"context"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/server/rights"
)

// Stamps verifies the text with which a worker acts for the user who started a workflow.
type Stamps interface {
	// VerifyTask returns the user who started the workflow, and those who took part in it. worker is the user who sends
	// the text.
	VerifyTask(ctx context.Context, text, worker string) (v1alpha1.Identity, error)
}

// OnBehalf is an authenticator that reads the header of workers that act for the user who started a workflow. The user
// of such a request is that user. The worker's user, and the other users who took part in the workflow, need the
// rights, too.
type OnBehalf struct {
	authenticator.Request
	Stamps Stamps
}

// AuthenticateRequest implements authenticator.Request.
func (a OnBehalf) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.Request.AuthenticateRequest(r)
	texts := r.Header.Values(v1alpha1.HeaderOnBehalfOf)
	if !ok || err != nil || len(texts) == 0 {
		return response, ok, err
	}
	acting := *response
	acting.User = a.acting(r.Context(), response.User, texts)
	return &acting, true, nil
}

func (a OnBehalf) acting(ctx context.Context, worker user.Info, texts []string) user.Info {
	if len(texts) > 1 {
		return refused(worker, "the request has it twice")
	}
	starter, err := a.Stamps.VerifyTask(ctx, texts[0], worker.GetName())
	if err != nil {
		return refused(worker, err.Error())
	}
	return rights.InfoOf(rights.Join(starter, rights.WorkerOf(rights.IdentityOf(worker))))
}

// refusedKey has the reason why a request is refused, in the extra attributes. The authorizer refuses it, because
// an authenticator could say only that the credentials are wrong.
const refusedKey = "hykube.io/refused"

func refused(worker user.Info, why string) user.Info {
	extra := map[string][]string{refusedKey: {"the header " + v1alpha1.HeaderOnBehalfOf + " is not valid: " + why}}
	return &user.DefaultInfo{Name: worker.GetName(), UID: worker.GetUID(), Groups: worker.GetGroups(), Extra: extra}
}
