package server

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRepeatedLinesAreBounded logs what sixty half-open requests leave, and another error in between.
func TestRepeatedLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(repeating{slog.NewTextHandler(&out, nil), newRepeats(mostOfLibraries, messageKey)}).With("component", "kubernetes")
		for i := range 60 {
			logger.Error("Unhandled Error", "err", fmt.Errorf("read tcp 127.0.0.1:6443->127.0.0.1:%d: i/o timeout, Addr:(*net.TCPAddr)(%#x)", 50_000+i, 0x3301f5cbbdd0+i*4099))
			logger.Info("written each time")
		}
		logger.Error("Unhandled Error", "err", errors.New("another one"))
		if n := strings.Count(out.String(), "i/o timeout"); n != mostOfLibraries {
			t.Errorf("%d lines about timeouts", n)
		}
		if n := strings.Count(out.String(), "written each time"); n != 60 || !strings.Contains(out.String(), "another one") {
			t.Errorf("%d lines that say something else:\n%s", n, out.String())
		}
		time.Sleep(repeatsWindow + time.Second)
		synctest.Wait()
		if n := strings.Count(out.String(), "leftOut=50 within=1m0s"); n != 1 {
			t.Errorf("the lines that were left out are not counted once:\n%s", out.String())
		}
		out.Reset()
		timeout := errors.New("read tcp 127.0.0.1:6443->127.0.0.1:1: i/o timeout, Addr:(*net.TCPAddr)(0x1)")
		logger.Error("Unhandled Error", "err", timeout)
		time.Sleep(repeatsWindow)
		synctest.Wait()
		if n := strings.Count(out.String(), "i/o timeout"); n != 1 || !strings.Contains(out.String(), "leftOut=1 ") {
			t.Errorf("the next minute:\n%s", out.String())
		}
		time.Sleep(repeatsWindow)
		synctest.Wait()
		if !strings.Contains(out.String(), "ended=") {
			t.Errorf("no line says that it is over:\n%s", out.String())
		}
		out.Reset()
		logger.Error("Unhandled Error", "err", timeout)
		if !strings.Contains(out.String(), "i/o timeout") {
			t.Error("it is dropped after it had ended")
		}
		time.Sleep(repeatsWindow + time.Second)
	})
}

// TestALineThatRepeatsEachSecondIsLoggedOnceAMinute logs what a loop of the server does while its database is away.
func TestALineThatRepeatsEachSecondIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger, err := NewLogger(&out, "info", "text")
		if err != nil {
			t.Fatal(err)
		}
		logger = logger.With("component", "index")
		for i := range 300 {
			logger.Warn("refresh index", "error", fmt.Errorf("dial tcp 127.0.0.1:%d: connection refused", 40_000+i))
			time.Sleep(time.Second)
		}
		for _, plan := range []string{"plan-1", "plan-2"} {
			logger.Warn("write progress", "plan", plan, "error", errors.New("connection refused"))
		}
		time.Sleep(3 * repeatsWindow)
		synctest.Wait()
		if n := strings.Count(out.String(), "refresh index"); n < 6 || n > 7 {
			t.Errorf("%d lines in 5 minutes, want one at the start, one a minute and one at the end:\n%s", n, out.String())
		}
		if n := strings.Count(out.String(), "ended="); n != 1 {
			t.Errorf("%d lines say that it is over:\n%s", n, out.String())
		}
		if !strings.Contains(out.String(), "plan=plan-1") || !strings.Contains(out.String(), "plan=plan-2") {
			t.Errorf("lines about other plans were dropped:\n%s", out.String())
		}
	})
}
