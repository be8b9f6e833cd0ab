package temporalapi

import (
	"cmp"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// check returns an error if a field of a request names a Temporal namespace other than the given one. It also refuses
// features that reach outside of the namespace: a callback, a Nexus operation, or a versioned worker.
func check(request proto.Message, namespace string) error {
	named, ok := request.(interface{ GetNamespace() string })
	if !ok || named.GetNamespace() != namespace {
		return status.Errorf(codes.PermissionDenied,
			"the request must name the Temporal namespace %q of its header %q in its field \"namespace\"", namespace,
			header)
	}
	if d, ok := request.(*workflowservice.DescribeNamespaceRequest); ok && d.GetId() != "" {
		return status.Error(codes.PermissionDenied, "describe the namespace by its name, not by its ID")
	}
	return checkMessage(request.ProtoReflect(), namespace, 0)
}

// maxPacked is the maximum number of nested Any messages. Each unpacking copies the content.
const maxPacked = 3

// checkMessage checks a message. packed is the number of Any messages around it.
func checkMessage(m protoreflect.Message, namespace string, packed int) error {
	switch v := m.Interface().(type) {
	case *commonpb.Payload: // the data of users, which Temporal does not read
		return nil
	case *anypb.Any:
		if packed == maxPacked {
			return status.Error(codes.InvalidArgument, "the request has too many nested messages")
		}
		inner, err := v.UnmarshalNew()
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "the request has a message of the unknown type %q",
				v.GetTypeUrl())
		}
		return checkMessage(inner.ProtoReflect(), namespace, packed+1)
	case *deploymentpb.WorkerDeploymentOptions:
		if v.GetWorkerVersioningMode() == enumspb.WORKER_VERSIONING_MODE_VERSIONED {
			return status.Error(codes.PermissionDenied,
				"this server supports no worker versioning: remove the deployment options of the worker")
		}
	}
	if why := forbidden(m.Descriptor().FullName()); why != "" {
		return status.Error(codes.PermissionDenied, why)
	}
	if why := cmp.Or(tooOften(m.Interface()), tooLarge(m.Interface())); why != "" {
		return status.Error(codes.InvalidArgument, why)
	}
	var err error
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		err = checkField(field, value, namespace, packed)
		return err == nil
	})
	return err
}

// forbidden returns the reason why users may not send a type of message; "" if they may.
func forbidden(name protoreflect.FullName) string {
	switch {
	case name == "temporal.api.common.v1.Callback":
		return "this server supports no completion callbacks: they call addresses from the server's machine"
	case strings.HasPrefix(string(name), "temporal.api.nexus."),
		strings.Contains(string(name.Name()), "NexusOperation"):
		return "this server supports no Nexus operations"
	}
	return ""
}

func checkField(field protoreflect.FieldDescriptor, value protoreflect.Value, namespace string,
	packed int) (err error) {
	switch {
	case field.IsMap():
		if field.MapValue().Message() == nil {
			return nil
		}
		value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			err = checkMessage(v.Message(), namespace, packed)
			return err == nil
		})
	case field.IsList():
		for i := range value.List().Len() {
			if err = checkValue(field, value.List().Get(i), namespace, packed); err != nil {
				return err
			}
		}
	default:
		err = checkValue(field, value, namespace, packed)
	}
	return err
}

func checkValue(field protoreflect.FieldDescriptor, value protoreflect.Value, namespace string, packed int) error {
	if field.Message() != nil {
		return checkMessage(value.Message(), namespace, packed)
	}
	if field.Kind() != protoreflect.StringKind || !namesNamespace(field.Name()) {
		return nil
	}
	if got := value.String(); got != "" && got != namespace {
		return status.Error(codes.PermissionDenied,
			fmt.Sprintf("the field %q names the Temporal namespace %q; a request for %q can name no other",
				field.Name(), got, namespace))
	}
	return nil
}

// namesNamespace reports whether a field has the name or the ID of a Temporal namespace.
func namesNamespace(name protoreflect.Name) bool {
	return name == "namespace" || name == "namespace_id" || strings.HasSuffix(string(name), "_namespace") ||
		strings.HasSuffix(string(name), "_namespace_id")
}
