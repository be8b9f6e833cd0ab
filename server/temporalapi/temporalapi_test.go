package temporalapi

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	protocolpb "go.temporal.io/api/protocol/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	updatepb "go.temporal.io/api/update/v1"
	"go.temporal.io/api/workflowservice/v1"
	tokenspb "go.temporal.io/server/api/token/v1"
	"go.temporal.io/server/common/tasktoken"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestMethodsAreListed checks the list of methods against the service of Temporal: each exists, names a namespace in its
// request, and belongs to none of the families that administer Temporal.
func TestMethodsAreListed(t *testing.T) {
	service := workflowservice.File_temporal_api_workflowservice_v1_service_proto.Services().ByName("WorkflowService")
	found := 0
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		name := string(m.Name())
		if _, listed := methods[name]; !listed {
			continue
		}
		found++
		if m.Input().Fields().ByName("namespace") == nil {
			t.Errorf("%s names no namespace, so nothing limits it to one", name)
		}
		for _, family := range []string{"Nexus", "Batch", "Cluster", "Deployment", "Versioning", "BuildId", "WorkflowRule", "SearchAttributes", "Archived", "WorkerConfig"} {
			if strings.Contains(name, family) {
				t.Errorf("%s is for the administration of Temporal", name)
			}
		}
	}
	if found != len(methods) {
		t.Errorf("the service has %d of the %d listed methods", found, len(methods))
	}
	for _, name := range []string{"RegisterNamespace", "UpdateNamespace", "DeprecateNamespace", "ListNamespaces"} {
		if _, listed := methods[name]; listed {
			t.Errorf("%s is listed", name)
		}
	}
}

func TestCheck(t *testing.T) {
	packed := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	message := func(body *anypb.Any) proto.Message {
		return &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "hykube.a", Messages: []*protocolpb.Message{{Body: body}}}
	}
	child := func(namespace string) proto.Message {
		attributes := &commandpb.StartChildWorkflowExecutionCommandAttributes{}
		attributes.ProtoReflect().Set(attributes.ProtoReflect().Descriptor().Fields().ByName("namespace"), protoreflect.ValueOfString(namespace))
		return &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "hykube.a", Commands: []*commandpb.Command{{
			Attributes: &commandpb.Command_StartChildWorkflowExecutionCommandAttributes{StartChildWorkflowExecutionCommandAttributes: attributes},
		}}}
	}
	for name, tc := range map[string]struct {
		request proto.Message
		want    codes.Code
	}{
		"its own namespace":              {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a"}, codes.OK},
		"another":                        {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.b"}, codes.PermissionDenied},
		"none":                           {&workflowservice.StartWorkflowExecutionRequest{}, codes.PermissionDenied},
		"a request without the field":    {&workflowservice.GetClusterInfoRequest{}, codes.PermissionDenied},
		"a child in the same":            {child("hykube.a"), codes.OK},
		"a child in the default":         {child(""), codes.OK},
		"a child in another":             {child("hykube.b"), codes.PermissionDenied},
		"an update's answer":             {message(packed(&updatepb.Response{})), codes.OK},
		"another's request in a message": {message(packed(&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.b"})), codes.PermissionDenied},
		"a message of an unknown type":   {message(&anypb.Any{TypeUrl: "type.googleapis.com/x.Y"}), codes.InvalidArgument},
		"a broken message":               {message(&anypb.Any{TypeUrl: "type.googleapis.com/temporal.api.update.v1.Response", Value: []byte{0xff}}), codes.InvalidArgument},
		"a payload that looks like one": {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{
			{Metadata: map[string][]byte{"namespace": []byte("hykube.b")}}}}}, codes.OK},
		"nested messages":     {message(packed(packed(packed(packed(&updatepb.Response{}))))), codes.InvalidArgument},
		"a cron schedule":     {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", CronSchedule: "@every 1s"}, codes.InvalidArgument},
		"retries without end": {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", RetryPolicy: &commonpb.RetryPolicy{}}, codes.InvalidArgument},
		"a few retries":       {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", RetryPolicy: &commonpb.RetryPolicy{MaximumAttempts: 3}}, codes.OK},
		"a child with a cron schedule": {&workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "hykube.a", Commands: []*commandpb.Command{{
			Attributes: &commandpb.Command_StartChildWorkflowExecutionCommandAttributes{StartChildWorkflowExecutionCommandAttributes: &commandpb.StartChildWorkflowExecutionCommandAttributes{CronSchedule: "* * * * *"}},
		}}}, codes.InvalidArgument},
		"runs of a schedule for the past": {&workflowservice.PatchScheduleRequest{Namespace: "hykube.a", Patch: &schedulepb.SchedulePatch{BackfillRequest: []*schedulepb.BackfillRequest{{}}}}, codes.InvalidArgument},
		"a memo":                          {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", Memo: &commonpb.Memo{Fields: bytesOf(15 << 10)}}, codes.OK},
		"a large memo":                    {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", Memo: &commonpb.Memo{Fields: bytesOf(17 << 10)}}, codes.InvalidArgument},
		"a large header":                  {&workflowservice.SignalWorkflowExecutionRequest{Namespace: "hykube.a", Header: &commonpb.Header{Fields: bytesOf(17 << 10)}}, codes.InvalidArgument},
		"large user metadata":             {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", UserMetadata: &sdkpb.UserMetadata{Details: bytesOf(17 << 10)["x"]}}, codes.InvalidArgument},
		"many timers":                     {&workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "hykube.a", Commands: make([]*commandpb.Command, 2000)}, codes.OK},
		"too many timers":                 {&workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: "hykube.a", Commands: make([]*commandpb.Command, 2001)}, codes.InvalidArgument},
		"a callback in a map's value":     {&workflowservice.StartWorkflowExecutionRequest{Namespace: "hykube.a", CompletionCallbacks: []*commonpb.Callback{{}}}, codes.PermissionDenied},
	} {
		if err := check(tc.request, "hykube.a"); status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

func bytesOf(size int) map[string]*commonpb.Payload {
	return map[string]*commonpb.Payload{"x": {Data: make([]byte, size)}}
}

func TestPagesAreLimited(t *testing.T) {
	for asked, want := range map[int32]int32{0: maxPage, 1: 1, maxPage: maxPage, 1000: maxPage, -1: maxPage} {
		executions, schedules := &workflowservice.ListWorkflowExecutionsRequest{PageSize: asked}, &workflowservice.ListSchedulesRequest{MaximumPageSize: asked}
		limitPage(executions)
		limitPage(schedules)
		if executions.PageSize != want || schedules.MaximumPageSize != want {
			t.Errorf("a page of %d: %d and %d, want %d", asked, executions.PageSize, schedules.MaximumPageSize, want)
		}
	}
}

func TestLimitsOfRequests(t *testing.T) {
	c := newCounter(limits{user: 2, namespace: 3, all: 4})
	enter := func(namespace, user string, want bool) func() {
		t.Helper()
		done, err := c.enter(namespace, user)
		if (err == nil) != want || err != nil && status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s in %s: %v, want success %t", user, namespace, err, want)
		}
		return done
	}
	first := enter("a", "u", true)
	enter("a", "u", true)
	enter("a", "u", false)
	enter("a", "v", true)
	enter("a", "w", false) // the namespace
	enter("b", "u", true)
	enter("c", "x", false) // all
	first()
	enter("a", "u", true)
}

func TestResolver(t *testing.T) {
	for name, tc := range map[string]struct {
		path, namespace string
		want            request.RequestInfo
	}{
		"a poll":        {PathPrefix + "PollWorkflowTaskQueue", "hykube.a", request.RequestInfo{IsResourceRequest: true, Verb: "work", Namespace: "a", Resource: "workflows", APIGroup: "hykube.io"}},
		"a start":       {PathPrefix + "StartWorkflowExecution", "hykube.a", request.RequestInfo{IsResourceRequest: true, Verb: "create", Namespace: "a", Resource: "workflows", APIGroup: "hykube.io"}},
		"the server's":  {PathPrefix + "StartWorkflowExecution", "hykube", request.RequestInfo{IsResourceRequest: true, Verb: "create", Resource: "workflows", APIGroup: "hykube.io"}},
		"not listed":    {PathPrefix + "RegisterNamespace", "hykube.a", request.RequestInfo{IsResourceRequest: true, Verb: "work", Namespace: "a", Resource: "workflows", APIGroup: "hykube.io"}},
		"the abilities": {PathPrefix + "GetSystemInfo", "", request.RequestInfo{Verb: "get"}},
	} {
		r := httptest.NewRequest(http.MethodPost, tc.path, nil)
		r.Header.Set(header, tc.namespace)
		got, err := Resolver{}.NewRequestInfo(r)
		if err != nil || got.IsResourceRequest != tc.want.IsResourceRequest || got.Verb != tc.want.Verb || got.Namespace != tc.want.Namespace || got.Resource != tc.want.Resource || got.APIGroup != tc.want.APIGroup {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// A client of gRPC shows the message of a refusal, whatever characters it has.
func TestRefusalsAreThoseOfGRPC(t *testing.T) {
	refused := WithStatus(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"kind":"Status","message":"no: 100% \u00fc\n"}`))
	}))
	w := httptest.NewRecorder()
	refused.ServeHTTP(w, httptest.NewRequest(http.MethodPost, PathPrefix+"StartWorkflowExecution", nil))
	if h := w.Header(); w.Code != http.StatusOK || h.Get("Content-Type") != "application/grpc" || h.Get("Grpc-Status") != "7" || h.Get("Grpc-Message") != "no: 100%25 %C3%BC%0A" || w.Body.Len() != 0 {
		t.Errorf("status %d, header %v, body %q", w.Code, h, w.Body)
	}
	w = httptest.NewRecorder()
	refused.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/apis", nil))
	if w.Code != http.StatusForbidden || w.Body.Len() == 0 {
		t.Errorf("another path: status %d, body %q; want the answer as it is", w.Code, w.Body)
	}
}

// These calls reach the service although the API server should have stopped them, or the server has no Temporal for users.
// TestSchedulesThatRunTooOften has specs of schedules, in all forms that Temporal knows.
func TestSchedulesThatRunTooOften(t *testing.T) {
	interval := func(d time.Duration) *schedulepb.ScheduleSpec {
		return &schedulepb.ScheduleSpec{Interval: []*schedulepb.IntervalSpec{{Interval: durationpb.New(d)}}}
	}
	cron := func(texts ...string) *schedulepb.ScheduleSpec { return &schedulepb.ScheduleSpec{CronString: texts} }
	seconds := func(ranges ...*schedulepb.Range) *schedulepb.ScheduleSpec {
		return &schedulepb.ScheduleSpec{StructuredCalendar: []*schedulepb.StructuredCalendarSpec{{Second: ranges}}}
	}
	calendar := func(second string) *schedulepb.ScheduleSpec {
		return &schedulepb.ScheduleSpec{Calendar: []*schedulepb.CalendarSpec{{Second: second, Minute: "*"}}}
	}
	for name, tc := range map[string]struct {
		spec  *schedulepb.ScheduleSpec
		often bool
	}{
		"each minute":                   {interval(time.Minute), false},
		"each second":                   {interval(time.Second), true},
		"no interval":                   {&schedulepb.ScheduleSpec{Interval: []*schedulepb.IntervalSpec{{}}}, true},
		"a cron string":                 {cron("0 6 * * 1-5"), false},
		"a cron string with a year":     {cron("TZ=UTC 0 6 * * * 2027 # daily"), false},
		"a cron string with seconds":    {cron("* * * * * * *"), true},
		"the same, with a time zone":    {cron("CRON_TZ=UTC */5 * * * * * *"), true},
		"a predefined one":              {cron("@hourly"), false},
		"@every second":                 {cron("@every 1s"), true},
		"@every second, with a phase":   {cron("@every 1s/1h"), true},
		"a comment in the time zone":    {cron("TZ=U#TC @every 1s"), true},
		"@every day":                    {cron("@every 1d"), false},
		"many":                          {cron("0 1 * * *", "0 2 * * *", "0 3 * * *", "0 4 * * *", "0 5 * * *", "0 6 * * *"), true},
		"one second":                    {seconds(&schedulepb.Range{Start: 30}), false},
		"a range of seconds":            {seconds(&schedulepb.Range{Start: 0, End: 59}), true},
		"several seconds":               {seconds(&schedulepb.Range{Start: 1}, &schedulepb.Range{Start: 2}), true},
		"a calendar with one second":    {calendar("30"), false},
		"a calendar with all seconds":   {calendar("*"), true},
		"a calendar with a few seconds": {calendar("1,2"), true},
	} {
		request := &workflowservice.CreateScheduleRequest{Namespace: "hykube.a", Schedule: &schedulepb.Schedule{Spec: tc.spec}}
		if err := check(request, "hykube.a"); (status.Code(err) == codes.InvalidArgument) != tc.often || err != nil && !tc.often {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestABodyIsLimited sends bytes without end after the message of a call that waits. gRPC would keep them all.
func TestABodyIsLimited(t *testing.T) {
	s, err := New(Config{Connection: func() grpc.ClientConnInterface { return waitingConnection{} }})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	body, sent := &endless{ctx: ctx}, make(chan error, 1)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+PathPrefix+publicMethod, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	go func() {
		resp, err := server.Client().Do(r)
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		sent <- err
	}()
	<-sent // the call waits until ctx ends
	if n := body.read.Load(); n > 16<<20 {
		t.Errorf("the server took %d bytes of a request", n)
	}
}

// waitingConnection is a connection to a Temporal that does not answer.
type waitingConnection struct{ grpc.ClientConnInterface }

func (waitingConnection) Invoke(ctx context.Context, _ string, _, _ any, _ ...grpc.CallOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// endless is the body of a request: an empty message, and then bytes until ctx ends, or until 64 MiB.
type endless struct {
	ctx  context.Context
	read atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.ctx.Err() != nil || e.read.Load() > 64<<20 {
		<-e.ctx.Done()
		return 0, e.ctx.Err()
	}
	clear(p)
	if e.read.Load() == 0 {
		p = p[:5] // the header of an empty message
	}
	e.read.Add(int64(len(p)))
	return len(p), nil
}

func TestServiceRefuses(t *testing.T) {
	authorized := func(namespace, verb string) context.Context {
		ctx := request.WithUser(t.Context(), &user.DefaultInfo{Name: "u"})
		return request.WithRequestInfo(ctx, &request.RequestInfo{IsResourceRequest: true, Resource: Resource, Verb: verb, Namespace: namespace})
	}
	for name, tc := range map[string]struct {
		config Config
		ctx    context.Context
		method string
		want   codes.Code
	}{
		"served":                      {Config{}, authorized("a", "list"), "ListWorkflowExecutions", codes.OK},
		"an external cluster":         {Config{External: true}, authorized("a", "list"), "ListWorkflowExecutions", codes.Unimplemented},
		"not authorized":              {Config{}, t.Context(), "ListWorkflowExecutions", codes.Internal},
		"authorized for less":         {Config{}, authorized("a", "get"), "ListWorkflowExecutions", codes.Internal},
		"no namespace":                {Config{}, authorized("", "list"), "ListWorkflowExecutions", codes.PermissionDenied},
		"the server's own":            {Config{Reserved: "hykube.a"}, authorized("a", "list"), "ListWorkflowExecutions", codes.PermissionDenied},
		"a method that is not listed": {Config{}, authorized("a", "list"), "ListNamespaces", codes.PermissionDenied},
	} {
		tc.config.Access, tc.config.Stamps = everything{}, testStamps
		tc.config.Prepare = func(context.Context, string) (string, error) { return "id", nil }
		s, err := New(tc.config)
		if err != nil {
			t.Fatal(err)
		}
		call := func() error {
			_, err := s.intercept(answers{}.TagRPC(tc.ctx, nil), &workflowservice.ListWorkflowExecutionsRequest{Namespace: "hykube.a"}, &grpc.UnaryServerInfo{FullMethod: PathPrefix + tc.method},
				func(context.Context, any) (any, error) { return nil, nil })
			return err
		}
		if err := call(); status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
		if s.Stop(); tc.want == codes.OK && status.Code(call()) != codes.Unavailable {
			t.Errorf("%s: a stopped service does not refuse", name)
		}
	}
}

func TestTokens(t *testing.T) {
	tokens := tasktoken.NewSerializer()
	of := func(id string) []byte {
		data, err := tokens.Serialize(&tokenspb.Task{NamespaceId: id})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	query, err := tokens.SerializeQueryTaskToken(&tokenspb.QueryTask{NamespaceId: "other"})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		message any
		want    codes.Code
	}{
		"its own task":        {&workflowservice.RespondActivityTaskCompletedRequest{TaskToken: of("own")}, codes.OK},
		"another's task":      {&workflowservice.RespondActivityTaskCompletedRequest{TaskToken: of("other")}, codes.PermissionDenied},
		"another's heartbeat": {&workflowservice.RecordActivityTaskHeartbeatRequest{TaskToken: of("other")}, codes.PermissionDenied},
		"another's workflow":  {&workflowservice.RespondWorkflowTaskFailedRequest{TaskToken: of("other")}, codes.PermissionDenied},
		"another's query":     {&workflowservice.RespondQueryTaskCompletedRequest{TaskToken: query}, codes.PermissionDenied},
		"no token":            {&workflowservice.RespondActivityTaskCompletedRequest{}, codes.PermissionDenied},
		"no token at all":     {&workflowservice.RespondActivityTaskCompletedRequest{TaskToken: []byte("x")}, codes.InvalidArgument},
		"without tokens":      {&workflowservice.StartWorkflowExecutionRequest{}, codes.OK},
	} {
		if err := checkToken(tc.message, "own"); status.Code(err) != tc.want {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}
