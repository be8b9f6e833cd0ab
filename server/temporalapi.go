package server

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ownership"
	"github.com/hykube/hykube/server/rights"
	"github.com/hykube/hykube/server/temporalapi"
)

// eventLimit is the maximum time for the write of an Event.
const eventLimit = 10 * time.Second

var errStarting = status.Error(codes.Unavailable, "Temporal is still starting; try again in a moment")

// workflowRoom returns an error of gRPC if a namespace may not start a number of workflows, or may have no further
// schedule.
func (s *Server) workflowRoom(ctx context.Context, namespace string, starts int, schedule bool) error {
	users := s.engine.Users()
	if users == nil {
		return errStarting
	}
	if err := s.config.store.HasSpace(); err != nil {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return users.Room(ctx, namespace, starts, schedule)
}

// addTemporalAPI serves Temporal's WorkflowService for the workflows of users.
func (s *Server) addTemporalAPI() (err error) {
	s.temporal, err = temporalapi.New(temporalapi.Config{
		External: s.config.TemporalAddress != "",
		Reserved: s.engine.Namespace(),
		Connection: func() grpc.ClientConnInterface {
			if users := s.engine.Users(); users != nil {
				return users.Connection()
			}
			return nil
		},
		Prepare: func(ctx context.Context, namespace string) (string, error) {
			if users := s.engine.Users(); users != nil {
				return users.Prepare(ctx, namespace)
			}
			return "", errStarting
		},
		Room:   s.workflowRoom,
		Access: rights.Access{Authorizer: s.config.generic.Authorization.Authorizer},
		Stamps: s.config.stamps,
		Ended:  s.workflowEnded,
	})
	if err != nil {
		return err
	}
	s.generic.Handler.NonGoRestfulMux.HandlePrefix(temporalapi.PathPrefix, s.temporal)
	s.generic.Handler.NonGoRestfulMux.HandlePrefix(ownership.Path, http.HandlerFunc(s.temporal.ServeOwned))
	return nil
}

// workflowEnded records an Event of a namespace about a workflow whose starter lost the right to it.
func (s *Server) workflowEnded(namespace, message string) {
	about := corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: namespace, Name: namespace}
	now := metav1.Now()
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: namespace + ".", Namespace: namespace}, InvolvedObject: about,
		Type: corev1.EventTypeWarning, Reason: v1alpha1.ReasonStarterLostRight, Message: message,
		Source: corev1.EventSource{Component: "hykube"}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	s.background.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), eventLimit)
		defer cancel()
		if _, err := s.config.client.CoreV1().Events(namespace).Create(ctx, event, metav1.CreateOptions{}); err != nil {
			s.log.Warn("cannot record an event about a workflow", "namespace", namespace, "message", message, "error",
				err)
		}
	})
}

// namespaceOwner returns the UID of a namespace; ok is false if it does not exist or is being deleted.
func (s *Server) namespaceOwner(name string) (uid string, ok bool) {
	namespace, err := s.config.informers.Core().V1().Namespaces().Lister().Get(name)
	if err != nil || namespace.DeletionTimestamp != nil {
		return "", false
	}
	return string(namespace.UID), true
}

// longRunning reports whether a request may last longer than others: a watch, or one for Temporal.
func longRunning(inner request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(r *http.Request, info *request.RequestInfo) bool {
		return inner(r, info) || temporalapi.Serves(r) || r.URL.Path == BackupPath
	}
}
