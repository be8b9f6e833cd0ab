// Package cron parses the times at which a Stack acts: schedules, time zones, and windows of the day.
package cron

import (
	"errors"
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // a minimal container has no time zones

	"github.com/robfig/cron/v3"
)

// minEvery is the minimum interval of a schedule such as "@every 30s".
const minEvery = 10 * time.Second

// Schedule is a cron expression in a time zone.
type Schedule struct {
	times cron.Schedule
	zone  *time.Location
}

// Parse parses a cron expression of five fields, or a descriptor such as "@hourly" or "@every 6h", with the rules of
// Kubernetes' CronJob. An empty zone means UTC.
func Parse(expression, zone string) (*Schedule, error) {
	if strings.Contains(expression, "TZ=") {
		return nil, errors.New("names a time zone: set timeZone instead")
	}
	// Temporal requires that both fields match, and cron requires only one.
	if f := strings.Fields(expression); len(f) == 5 && f[2] != "*" && f[4] != "*" {
		return nil, errors.New("names days of the month and days of the week: name only one of them")
	}
	if strings.Contains(expression, "?") {
		return nil, errors.New("has a question mark: write * instead")
	}
	times, err := cron.ParseStandard(expression)
	if err != nil {
		return nil, fmt.Errorf("must be a cron expression of five fields such as \"0 6 * * 1-5\", or one such as \"@every 6h\": %w", err)
	}
	if every, ok := times.(cron.ConstantDelaySchedule); ok {
		exact, err := time.ParseDuration(strings.TrimPrefix(expression, "@every "))
		switch {
		case err != nil || exact != every.Delay:
			return nil, errors.New("must name whole seconds, such as \"@every 90s\"")
		case every.Delay < minEvery:
			return nil, fmt.Errorf("must not act more often than every %s", minEvery)
		}
	}
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	s := &Schedule{times: times, zone: location}
	if s.Next(time.Now()).IsZero() {
		return nil, errors.New("matches no time within five years")
	}
	return s, nil
}

// Zone returns a time zone of the IANA database. An empty name means UTC.
func Zone(name string) (*time.Location, error) {
	if name == "Local" {
		return nil, errors.New("must be a time zone such as Europe/Berlin, because Local differs between machines")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("must be a time zone such as Europe/Berlin: %w", err)
	}
	return zone, nil
}

// Next returns the next time after another; the zero time if there is none within five years. As in Temporal, the times
// of "@every 6h" are multiples of the interval since 1970.
func (s *Schedule) Next(after time.Time) time.Time {
	if every, ok := s.times.(cron.ConstantDelaySchedule); ok {
		seconds := int64(every.Delay / time.Second)
		return time.Unix((after.Unix()/seconds+1)*seconds, 0).In(s.zone)
	}
	return s.times.Next(after.In(s.zone))
}

// maxJitter is the maximum of Jitter.
const maxJitter = 5 * time.Minute

// Jitter returns the maximum delay of an action, so that the actions of many stacks do not begin at once. It is a tenth
// of the interval, and at most five minutes.
func (s *Schedule) Jitter(now time.Time) time.Duration {
	first := s.Next(now)
	second := s.Next(first)
	if second.IsZero() {
		return maxJitter
	}
	return min(maxJitter, second.Sub(first)/10).Truncate(time.Second)
}

// Window is a part of each day in a time zone.
type Window struct {
	// from and to are minutes after midnight. A window with to <= from contains midnight.
	from, to int
	zone     *time.Location
}

// ParseWindow parses a window such as "22:00-06:00". An empty text is nil: the whole day.
func ParseWindow(text, zone string) (*Window, error) {
	if text == "" {
		return nil, nil
	}
	location, err := Zone(zone)
	if err != nil {
		return nil, err
	}
	wrong := errors.New("must be two times of the day such as \"22:00-06:00\"")
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		return nil, wrong
	}
	from, err := time.Parse("15:04", first)
	if err != nil {
		return nil, wrong
	}
	to, err := time.Parse("15:04", last)
	if err != nil {
		return nil, wrong
	}
	w := &Window{from: from.Hour()*60 + from.Minute(), to: to.Hour()*60 + to.Minute(), zone: location}
	if w.from == w.to {
		return nil, errors.New("must have different times; without a window, every time is allowed")
	}
	return w, nil
}

// Until returns the time until the window begins; 0 within it.
func (w *Window) Until(now time.Time) time.Duration {
	if w == nil {
		return 0
	}
	now = now.In(w.zone)
	minute := now.Hour()*60 + now.Minute()
	inside := minute >= w.from && minute < w.to
	if w.to < w.from {
		inside = minute >= w.from || minute < w.to
	}
	if inside {
		return 0
	}
	begin := time.Date(now.Year(), now.Month(), now.Day(), w.from/60, w.from%60, 0, 0, w.zone)
	if !begin.After(now) {
		begin = time.Date(now.Year(), now.Month(), now.Day()+1, w.from/60, w.from%60, 0, 0, w.zone)
	}
	return begin.Sub(now)
}

// Left returns the time until the window ends, for a time within it; 0 without a window.
func (w *Window) Left(now time.Time) time.Duration {
	if w == nil {
		return 0
	}
	now = now.In(w.zone)
	end := time.Date(now.Year(), now.Month(), now.Day(), w.to/60, w.to%60, 0, 0, w.zone)
	if !end.After(now) {
		end = time.Date(now.Year(), now.Month(), now.Day()+1, w.to/60, w.to%60, 0, 0, w.zone)
	}
	return end.Sub(now)
}
