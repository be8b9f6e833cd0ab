package temporalapi

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file limits what Temporal does not: the size of the data that it repeats in lists and histories, and the size of
// an answer.

const (
	// maxMemo is the maximum size of a memo, a header or user metadata in bytes. Temporal stores a memo twice, and each
	// list has the memos of all its executions.
	maxMemo = 16 << 10
	// maxCommands is the maximum number of commands of a workflow task. Temporal writes the new timers, activities or
	// children of a task with one statement. SQLite refuses one with 32,767 parameters, and Temporal then reloads the
	// shard that all namespaces share.
	maxCommands = 2000
	// maxPage is the maximum number of items in a page of a list.
	maxPage = 100
)

// tooLarge returns the reason why a message is too large; "" if it is not.
func tooLarge(message protoreflect.ProtoMessage) string {
	name := ""
	switch m := message.(type) {
	case *commonpb.Memo:
		name = "memo"
	case *commonpb.Header:
		name = "header"
	case *sdkpb.UserMetadata:
		name = "user metadata"
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		if n := len(m.GetCommands()); n > maxCommands {
			return fmt.Sprintf("the workflow task has %d commands, and may have %d: start fewer activities, timers or children at once", n, maxCommands)
		}
		return ""
	default:
		return ""
	}
	if size := proto.Size(message); size > maxMemo {
		return fmt.Sprintf("the %s has %d bytes, and may have %d: pass large data as input", name, size, maxMemo)
	}
	return ""
}

// limitPage reduces the page size of a list. The client gets the rest with the next pages.
func limitPage(message any) {
	limit := func(size *int32) {
		if *size <= 0 || *size > maxPage {
			*size = maxPage
		}
	}
	switch m := message.(type) {
	case *workflowservice.ListWorkflowExecutionsRequest:
		limit(&m.PageSize)
	case *workflowservice.ListSchedulesRequest:
		limit(&m.MaximumPageSize)
	}
}
