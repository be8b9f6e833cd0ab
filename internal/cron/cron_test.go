package cron

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, expression := range []string{"0 6 * * 1-5", "*/5 * * * *", "0 0 * * MON", "@hourly", "@every 6h", "@every 10s"} {
		if _, err := Parse(expression, "Europe/Berlin"); err != nil {
			t.Errorf("%s: %v", expression, err)
		}
	}
	for _, wrong := range [][2]string{
		{"", ""}, {"0 6 * *", ""}, {"0 0 6 * * *", ""}, {"60 * * * *", ""}, {"@every 9s", ""}, {"@every 10.9s", ""}, {"@every 500ms", ""}, {"@every x", ""}, {"0 0 30 2 *", ""},
		{"TZ=Europe/Berlin 0 6 * * *", ""}, {"0 0 1 * 1", ""}, {"0 0 ? * 1", ""}, {"CRON_TZ=Europe/Berlin 0 6 * * *", ""}, {"0 6 * * *", "Europe/Atlantis"}, {"0 6 * * *", "Local"},
	} {
		if _, err := Parse(wrong[0], wrong[1]); err == nil {
			t.Errorf("%q in %q is accepted", wrong[0], wrong[1])
		}
	}
}

// TestNext finds the next time across a change to summer time.
func TestNext(t *testing.T) {
	s, err := Parse("0 6 * * *", "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	before := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
	if got, want := s.Next(before), time.Date(2026, 3, 29, 4, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("the next time is %s, want %s", got.UTC(), want)
	}
}

// TestNextOfAnInterval finds the next time of intervals, which begin in 1970.
func TestNextOfAnInterval(t *testing.T) {
	for expression, want := range map[string]string{"@every 6h": "2026-11-24T18:00:00Z", "@every 10s": "2026-11-24T17:14:30Z"} {
		s, err := Parse(expression, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Next(time.Date(2026, 11, 24, 17, 14, 25, 0, time.UTC)).UTC().Format(time.RFC3339); got != want {
			t.Errorf("%s: %s, want %s", expression, got, want)
		}
	}
}

func TestJitter(t *testing.T) {
	for expression, want := range map[string]time.Duration{"@every 10s": time.Second, "@every 15s": time.Second, "*/10 * * * *": time.Minute, "0 6 * * *": maxJitter} {
		s, err := Parse(expression, "")
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Jitter(time.Date(2026, 11, 24, 15, 0, 0, 0, time.UTC)); got != want {
			t.Errorf("%s has a jitter of %s, want %s", expression, got, want)
		}
	}
}

func TestWindow(t *testing.T) {
	at := func(text string) time.Time {
		clock, err := time.Parse("15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 11, 24, clock.Hour(), clock.Minute(), 0, 0, time.UTC)
	}
	for _, c := range []struct {
		window, zone, now string
		until, left       time.Duration
	}{
		{"22:00-06:00", "", "21:30", 30 * time.Minute, 0},
		{"22:00-06:00", "", "22:00", 0, 8 * time.Hour},
		{"22:00-06:00", "", "05:59", 0, time.Minute},
		{"22:00-06:00", "", "06:00", 16 * time.Hour, 0},
		{"09:00-17:00", "", "08:00", time.Hour, 0},
		{"09:00-17:00", "", "12:00", 0, 5 * time.Hour},
		{"09:00-17:00", "", "17:00", 16 * time.Hour, 0},
		{"22:00-06:00", "Europe/Berlin", "21:30", 0, 7*time.Hour + 30*time.Minute},
		{"", "", "12:00", 0, 0},
	} {
		w, err := ParseWindow(c.window, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Until(at(c.now)); got != c.until {
			t.Errorf("%s in %q at %s begins in %s, want %s", c.window, c.zone, c.now, got, c.until)
		}
		if c.until > 0 {
			continue
		}
		if got := w.Left(at(c.now)); got != c.left {
			t.Errorf("%s in %q at %s has %s left, want %s", c.window, c.zone, c.now, got, c.left)
		}
	}
	for _, wrong := range []string{"22:00", "22-06", "25:00-06:00", "22:00-22:00", "22:00-06:00-07:00"} {
		if _, err := ParseWindow(wrong, ""); err == nil {
			t.Errorf("the window %q is accepted", wrong)
		}
	}
}
