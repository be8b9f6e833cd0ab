package server

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/namespace/deletion"

	"github.com/hykube/hykube/server/access"
	"github.com/hykube/hykube/server/flowcontrol"
)

// certificateCheck is the interval at which a running server checks the expiry of its certificates.
const certificateCheck = 12 * time.Hour

// addHooks registers the post-start hooks. The server is not ready until they have finished.
func (s *Server) addHooks() error {
	client := s.config.client
	hooks := map[string]genericapiserver.PostStartHookFunc{
		"hykube-roles": func(ctx genericapiserver.PostStartHookContext) error {
			return access.EnsureRoles(ctx, client, access.ClusterRoles(), access.ClusterRoleBindings())
		},
		"hykube-namespaces": func(ctx genericapiserver.PostStartHookContext) error {
			return ensureNamespace(ctx, client, metav1.NamespaceDefault)
		},
		"hykube-priority-levels": func(ctx genericapiserver.PostStartHookContext) error {
			return flowcontrol.NewEnsurer(client.FlowcontrolV1(), s.config.informers,
				s.log.With("component", "flowcontrol")).Start(ctx)
		},
		"hykube-kubernetes-controllers": s.startKubernetesControllers,
		"hykube-certificates": func(ctx genericapiserver.PostStartHookContext) error {
			go s.renewCertificates(ctx)
			return nil
		},
	}
	for name, hook := range hooks {
		if s.config.Worker && name != "hykube-certificates" { // the server does the others
			continue
		}
		if err := s.generic.AddPostStartHook(name, hook); err != nil {
			return fmt.Errorf("add start hook %q: %w", name, err)
		}
	}
	return nil
}

func ensureNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}},
		metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %q: %w", name, err)
	}
	return nil
}

// startKubernetesControllers starts the controllers that an API server requires: the deletion of namespaces and their
// content, and the aggregation of cluster roles.
func (s *Server) startKubernetesControllers(ctx genericapiserver.PostStartHookContext) error {
	metadataClient, err := metadata.NewForConfig(s.config.generic.LoopbackClientConfig)
	if err != nil {
		return fmt.Errorf("make metadata client: %w", err)
	}
	s.emptier = deletion.NewNamespacedResourcesDeleter(ctx, s.config.client.CoreV1().Namespaces(), metadataClient,
		s.config.client.CoreV1(),
		s.emptied, corev1.FinalizerKubernetes)
	quiet := rest.CopyConfig(s.config.generic.LoopbackClientConfig)
	quiet.WarningHandler = rest.NoWarnings{} // the warnings about a delete are for users
	if s.dynamic, err = dynamic.NewForConfig(quiet); err != nil {
		return fmt.Errorf("make dynamic client: %w", err)
	}
	aggregation := clusterroleaggregation.NewClusterRoleAggregation(s.config.informers.Rbac().V1().ClusterRoles(),
		s.config.client.RbacV1())
	s.background.Go(func() { s.runDeletions(ctx) })
	s.background.Go(func() { aggregation.Run(ctx, 1) })
	return nil
}

// renewCertificates renews the certificates of a server that runs for months before they expire.
func (s *Server) renewCertificates(ctx context.Context) {
	ticker := time.NewTicker(min(certificateCheck, s.config.admin().Lifetime/12))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			if err := s.replaceCertificates(now, false); err != nil {
				s.log.Error("cannot renew certificates", "error", err)
			}
		}
	}
}

// replaceCertificates replaces the serving certificate and that of the administrator, either all or those that expire
// soon. It loads the serving certificate for new connections.
func (s *Server) replaceCertificates(now time.Time, all bool) error {
	s.certificates.Lock()
	defer s.certificates.Unlock()
	renewed, err := s.config.certs.Renew(now, all)
	if err != nil {
		return err
	}
	if err := s.config.serving.RunOnce(context.Background()); err != nil {
		return fmt.Errorf("load serving certificate: %w", err)
	}
	if renewed {
		s.log.Info("renewed serving certificate")
	}
	admin := s.config.admin()
	admin.Replace = all
	return s.config.certs.WriteKubeconfig(admin, now)
}
