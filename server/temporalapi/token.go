package temporalapi

import (
	"context"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/tasktoken"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hykube/hykube/server/starter"
)

// checkToken returns an error if the token of a task belongs to another Temporal namespace. Temporal also compares the
// two, except before its cache has the namespace of the request: then it uses the namespace of the token.
func checkToken(message any, namespaceID string) error {
	holder, ok := message.(interface{ GetTaskToken() []byte })
	if !ok {
		return nil
	}
	tokens := tasktoken.NewSerializer()
	var id string
	if _, query := message.(*workflowservice.RespondQueryTaskCompletedRequest); query {
		token, err := tokens.DeserializeQueryTaskToken(holder.GetTaskToken())
		if err != nil {
			return status.Error(codes.InvalidArgument, "the task token is invalid")
		}
		id = token.GetNamespaceId()
	} else {
		token, err := tokens.Deserialize(holder.GetTaskToken())
		if err != nil {
			return status.Error(codes.InvalidArgument, "the task token is invalid")
		}
		id = token.GetNamespaceId()
	}
	if id != namespaceID {
		return status.Error(codes.PermissionDenied, "the task token belongs to another Temporal namespace")
	}
	return nil
}

// unseal replaces the token in the answer to a task by that of Temporal, and returns the task. It returns an error for
// a token that this server did not make: a token of Temporal names the run without a proof.
func (s *Service) unseal(ctx context.Context, message any) (task starter.Task, err error) {
	holder, ok := message.(interface{ GetTaskToken() []byte })
	if !ok {
		return task, nil
	}
	task, err = s.config.Stamps.Unseal(ctx, holder.GetTaskToken())
	if err != nil {
		return task, status.Error(codes.PermissionDenied, "the task token is not from this server")
	}
	m := message.(proto.Message).ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName("task_token"), protoreflect.ValueOfBytes(task.Token))
	return task, nil
}

// startsOf returns the number of workflow executions that a request may add. The answer to a workflow task adds one for
// each command that starts a workflow.
func startsOf(message any) (n int) {
	answer, ok := message.(*workflowservice.RespondWorkflowTaskCompletedRequest)
	if !ok {
		return 1
	}
	for _, c := range answer.GetCommands() {
		switch c.GetCommandType() {
		case enumspb.COMMAND_TYPE_START_CHILD_WORKFLOW_EXECUTION,
			enumspb.COMMAND_TYPE_CONTINUE_AS_NEW_WORKFLOW_EXECUTION:
			n++
		}
	}
	return n
}
