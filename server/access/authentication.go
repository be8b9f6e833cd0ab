package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	apiservervalidation "k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	kubeauthenticator "k8s.io/kubernetes/pkg/kubeapiserver/authenticator"
)

// Audience is the audience of tokens.
const Audience = "hykube"

// AuthenticationConfig configures the authentication of users. There are no anonymous users.
type AuthenticationConfig struct {
	// ClientCA is the certificate authority of users' certificates.
	ClientCA dynamiccertificates.CAContentProvider
	// TokenFile is the path of a token file with lines token,user,uid,"group1,group2"; empty means none. The server
	// reads it again when it changes.
	TokenFile string
	// ConfigFile is the path of a Kubernetes AuthenticationConfiguration (OIDC); empty means none.
	ConfigFile string
	// Metrics registers the metric of the token file; nil means none.
	Metrics prometheus.Registerer
	// Logger is required.
	Logger *slog.Logger
}

// Narrow returns a user whom the token file named, with the groups that the file still gives to the user. It returns
// false if the file no longer names the user.
type Narrow func(user.Info) (user.Info, bool)

// NewAuthenticator returns the authenticator for all requests, and the Narrow of its token file. Until ctx ends, it
// watches the token file and may fetch the keys of token issuers.
func NewAuthenticator(ctx context.Context, cfg AuthenticationConfig) (authenticator.Request, Narrow, error) {
	narrow := func(user.Info) (user.Info, bool) { return nil, false }
	kc := kubeauthenticator.Config{APIAudiences: authenticator.Audiences{Audience}, APIServerID: "hykube"}
	if cfg.TokenFile != "" {
		known, err := openTokens(ctx, cfg.TokenFile, cfg.Metrics, cfg.Logger)
		if err != nil {
			return nil, nil, err
		}
		narrow = known.narrow
		// Kubernetes reads its own token file only once. The field for bootstrap tokens accepts any token
		// authenticator.
		kc.BootstrapToken, kc.BootstrapTokenAuthenticator = true, known
	}
	if cfg.ConfigFile != "" {
		var err error
		if kc.AuthenticationConfig, err = readAuthenticationConfig(cfg.ConfigFile); err != nil {
			return nil, nil, fmt.Errorf("read authentication configuration %q: %w", cfg.ConfigFile, err)
		}
	}
	tokens, _, _, _, err := kc.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("set up authentication: %w", err)
	}
	certificates := group.NewAuthenticatedGroupAdder(x509.NewDynamic(cfg.ClientCA.VerifyOptions,
		x509.CommonNameUserConversion))
	if tokens == nil {
		return certificates, narrow, nil
	}
	return union.New(certificates, withoutSystemNames{tokens}), narrow, nil
}

// systemPrefixes are the prefixes of the user and group names that Kubernetes and Hykube reserve, such as
// system:masters and hykube:admin.
var systemPrefixes = []string{"system:", "hykube:"}

// withoutSystemNames rejects a user whose name begins with one of systemPrefixes, or one of whose groups does, except
// system:authenticated. It wraps the authenticator of tokens; the server's own certificates may have such names.
type withoutSystemNames struct{ authenticator.Request }

// AuthenticateRequest implements authenticator.Request.
func (a withoutSystemNames) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	response, ok, err := a.Request.AuthenticateRequest(r)
	if !ok || err != nil {
		return response, ok, err
	}
	names := slices.DeleteFunc(slices.Clone(response.User.GetGroups()),
		func(name string) bool { return name == user.AllAuthenticated })
	for _, name := range append(names, response.User.GetName()) {
		for _, prefix := range systemPrefixes {
			if strings.HasPrefix(name, prefix) {
				return nil, false, fmt.Errorf(
					"refuse user %q: the name %q begins with %q, which only the server's own certificates may use",
					response.User.GetName(), name, prefix)
			}
		}
	}
	return response, true, nil
}

func readAuthenticationConfig(path string) (*apiserver.AuthenticationConfiguration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	obj, err := runtime.Decode(serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(), data)
	if err != nil {
		return nil, err
	}
	config, ok := obj.(*apiserver.AuthenticationConfiguration)
	if !ok {
		return nil, fmt.Errorf("it is a %T instead of an AuthenticationConfiguration", obj)
	}
	if config.Anonymous != nil && config.Anonymous.Enabled {
		return nil, errors.New("anonymous: this server has no anonymous users; remove it")
	}
	return config, apiservervalidation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(),
		config, nil).ToAggregate()
}
