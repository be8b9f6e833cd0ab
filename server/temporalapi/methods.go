package temporalapi

import (
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/ownership"
)

// PathPrefix begins the paths of all requests for the service.
const PathPrefix = "/temporal.api.workflowservice.v1.WorkflowService/"

// Resource is the virtual resource in the group hykube.io that represents the workflows of a namespace. VerbWork is the
// verb of a worker: it polls tasks and completes them.
const (
	Resource = "workflows"
	VerbWork = "work"
)

// header is the gRPC header with the Temporal namespace. The clients of Temporal set it from each request.
const header = "temporal-namespace"

// method describes the checks for a method of the service.
type method struct {
	// verb is the verb that the user needs on workflows in the namespace.
	verb string
	// waits is true for a method that waits for a task, a worker or an event. The server counts these separately.
	waits bool
	// starts is true for a method that may add workflow executions.
	starts bool
}

// publicMethod returns only the version and the capabilities of Temporal. Each client calls it first, without a
// namespace.
const publicMethod = "GetSystemInfo"

// methods lists the methods that users may call: those that workers and clients of workflows need. All others are
// refused: the administration of namespaces, clusters, search attributes, Nexus endpoints and worker versions, and
// batch operations.
var methods = map[string]method{
	// Workers.
	"PollWorkflowTaskQueue":        {verb: VerbWork, waits: true},
	"PollActivityTaskQueue":        {verb: VerbWork, waits: true},
	"RespondWorkflowTaskCompleted": {verb: VerbWork, starts: true},
	"RespondWorkflowTaskFailed":    {verb: VerbWork},
	"RespondQueryTaskCompleted":    {verb: VerbWork},
	"ResetStickyTaskQueue":         {verb: VerbWork},
	"ShutdownWorker":               {verb: VerbWork},

	"RecordActivityTaskHeartbeat":      {verb: VerbWork},
	"RecordActivityTaskHeartbeatById":  {verb: VerbWork},
	"RespondActivityTaskCompleted":     {verb: VerbWork},
	"RespondActivityTaskCompletedById": {verb: VerbWork},
	"RespondActivityTaskFailed":        {verb: VerbWork},
	"RespondActivityTaskFailedById":    {verb: VerbWork},
	"RespondActivityTaskCanceled":      {verb: VerbWork},
	"RespondActivityTaskCanceledById":  {verb: VerbWork},

	// Clients that read.
	"DescribeNamespace":                  {verb: "get"},
	"DescribeTaskQueue":                  {verb: "get"},
	"DescribeWorkflowExecution":          {verb: "get"},
	"DescribeSchedule":                   {verb: "get"},
	"GetWorkflowExecutionHistory":        {verb: "get", waits: true},
	"GetWorkflowExecutionHistoryReverse": {verb: "get"},
	"QueryWorkflow":                      {verb: "get", waits: true},
	"PollWorkflowExecutionUpdate":        {verb: "get", waits: true},
	"ListWorkflowExecutions":             {verb: "list"},
	"CountWorkflowExecutions":            {verb: "list"},
	"ListSchedules":                      {verb: "list"},
	"ListScheduleMatchingTimes":          {verb: "get"},

	// Clients that change.
	"StartWorkflowExecution":           {verb: "create", starts: true},
	"SignalWithStartWorkflowExecution": {verb: "create", starts: true},
	"ExecuteMultiOperation":            {verb: "create", starts: true, waits: true},
	"CreateSchedule":                   {verb: "create", starts: true},
	"SignalWorkflowExecution":          {verb: "update"},
	"UpdateWorkflowExecution":          {verb: "update", waits: true},
	"RequestCancelWorkflowExecution":   {verb: "update"},
	"PauseWorkflowExecution":           {verb: "update"},
	"UnpauseWorkflowExecution":         {verb: "update"},
	"PauseActivity":                    {verb: "update"},
	"UnpauseActivity":                  {verb: "update"},
	"ResetActivity":                    {verb: "update"},
	"UpdateSchedule":                   {verb: "update"},
	"PatchSchedule":                    {verb: "update", starts: true},
	"ResetWorkflowExecution":           {verb: "update", starts: true},
	"TerminateWorkflowExecution":       {verb: "delete"},
	"DeleteWorkflowExecution":          {verb: "delete"},
	"DeleteSchedule":                   {verb: "delete"},
}

// methodOf returns the method of a request. served is false if the path is not one of the service.
func methodOf(path string) (name string, m method, served bool) {
	name, served = strings.CutPrefix(path, PathPrefix)
	return name, methods[name], served
}

// Serves reports whether a request is for the service. The handlers of the API server must treat it as a long-running
// request, because their time limit loses the trailers of gRPC. The service has limits of its own.
func Serves(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, PathPrefix) }

// Resolver describes requests for the service as requests for workflows in a namespace, so that the API server
// authorizes, queues and records them. It takes the namespace from the header of Temporal's clients. The service then
// refuses a request that names another namespace in its message.
type Resolver struct{ request.RequestInfoResolver }

// NewRequestInfo implements request.RequestInfoResolver.
func (r Resolver) NewRequestInfo(req *http.Request) (*request.RequestInfo, error) {
	if namespace, ok := strings.CutPrefix(req.URL.Path, ownership.Path); ok {
		return requestInfo(req.URL.Path, "list", namespace), nil
	}
	name, m, served := methodOf(req.URL.Path)
	if !served {
		return r.RequestInfoResolver.NewRequestInfo(req)
	}
	if name == publicMethod { // it reveals no more than /version, which has the same readers
		return &request.RequestInfo{Path: "/version", Verb: "get"}, nil
	}
	verb := m.verb
	if verb == "" { // not in the list: the service refuses it
		verb = VerbWork
	}
	namespace, _ := v1alpha1.NamespaceOfTemporal(req.Header.Get(header))
	return requestInfo(req.URL.Path, verb, namespace), nil
}

// requestInfo describes a request for workflows in a namespace.
func requestInfo(path, verb, namespace string) *request.RequestInfo {
	return &request.RequestInfo{
		IsResourceRequest: true, Path: path, Verb: verb, Namespace: namespace, APIPrefix: "apis",
		APIGroup: v1alpha1.GroupName, APIVersion: v1alpha1.SchemeGroupVersion.Version, Resource: Resource,
	}
}
