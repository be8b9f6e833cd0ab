package temporalapi

import (
	"fmt"
	"strings"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/primitives/timestamp"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// This file refuses requests that make Temporal start workflow executions too often on its own: schedules, crons and
// retries.

const (
	// maxTimes is the maximum number of calendars, intervals and cron strings of a schedule.
	maxTimes = 5
	// minInterval is the minimum time between two runs of each of these.
	minInterval = time.Minute
	// maxAttempts is the maximum number of runs of a workflow with a retry policy.
	maxAttempts = 10
)

// tooOften returns the reason why a message would start executions too often; "" if there is none.
func tooOften(message protoreflect.ProtoMessage) string {
	var retry *commonpb.RetryPolicy
	cron := ""
	switch m := message.(type) {
	case *workflowservice.StartWorkflowExecutionRequest:
		retry, cron = m.GetRetryPolicy(), m.GetCronSchedule()
	case *workflowservice.SignalWithStartWorkflowExecutionRequest:
		retry, cron = m.GetRetryPolicy(), m.GetCronSchedule()
	case *workflowpb.NewWorkflowExecutionInfo:
		retry, cron = m.GetRetryPolicy(), m.GetCronSchedule()
	case *commandpb.StartChildWorkflowExecutionCommandAttributes:
		retry, cron = m.GetRetryPolicy(), m.GetCronSchedule()
	case *commandpb.ContinueAsNewWorkflowExecutionCommandAttributes:
		retry, cron = m.GetRetryPolicy(), m.GetCronSchedule()
	case *schedulepb.ScheduleSpec:
		return oftenSpec(m)
	case *schedulepb.BackfillRequest:
		return "this server makes no runs of a schedule for times that have passed"
	default:
		return ""
	}
	switch {
	case cron != "":
		return "this server runs no workflows with a cron schedule: use a schedule, whose runs are limited"
	case retry != nil && (retry.GetMaximumAttempts() == 0 || retry.GetMaximumAttempts() > maxAttempts):
		return fmt.Sprintf("the retry policy of a workflow must have maximum attempts of at most %d", maxAttempts)
	}
	return ""
}

// oftenSpec returns the reason why a schedule runs too often; "" if there is none.
func oftenSpec(s *schedulepb.ScheduleSpec) string {
	if n := len(s.GetCalendar()) + len(s.GetStructuredCalendar()) + len(s.GetInterval()) +
		len(s.GetCronString()); n > maxTimes {
		return fmt.Sprintf("the schedule has %d calendars, intervals and cron strings, and may have %d", n, maxTimes)
	}
	why := fmt.Sprintf("a schedule may run once in %s at most for each of its calendars, intervals and cron strings",
		minInterval)
	for _, i := range s.GetInterval() {
		if i.GetInterval().AsDuration() < minInterval {
			return why
		}
	}
	for _, c := range s.GetStructuredCalendar() {
		for _, r := range c.GetSecond() {
			if len(c.GetSecond()) > 1 || r.GetEnd() > r.GetStart() {
				return why
			}
		}
	}
	for _, c := range s.GetCalendar() {
		if strings.ContainsAny(c.GetSecond(), "*,-/") {
			return why
		}
	}
	for _, text := range s.GetCronString() {
		if oftenCron(text) {
			return why
		}
	}
	return ""
}

// oftenCron reports whether a cron string may run more often than once in a minute: with a field for seconds, or an
// interval. It parses the string as Temporal does.
func oftenCron(text string) bool {
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "CRON_TZ=") || strings.HasPrefix(text, "TZ=") {
		_, text, _ = strings.Cut(text, " ")
	}
	text, _, _ = strings.Cut(text, "#")
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "@every") {
		return len(strings.Fields(text)) > 6 // the first of seven fields has the seconds
	}
	_, every, _ := strings.Cut(text, " ")
	every, _, _ = strings.Cut(every, "/")
	d, err := timestamp.ParseDuration(every)
	return err == nil && d < minInterval
}
