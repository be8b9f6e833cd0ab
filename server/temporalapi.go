package server

import (
	"context"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/server/temporalapi"
)

var errStarting = status.Error(codes.Unavailable, "Temporal is still starting; try again in a moment")

// workflowRoom returns an error of gRPC if a namespace may not start a number of workflows, or may have no further schedule.
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
		Room: s.workflowRoom,
	})
	if err != nil {
		return err
	}
	s.generic.Handler.NonGoRestfulMux.HandlePrefix(temporalapi.PathPrefix, s.temporal)
	return nil
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
		return inner(r, info) || temporalapi.Serves(r)
	}
}
