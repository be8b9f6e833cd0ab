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
		logger := slog.New(repeating{slog.NewTextHandler(&out, nil), &repeats{seen: map[string]int{}}}).With("component", "kubernetes")
		for i := range 60 {
			logger.Error("Unhandled Error", "err", fmt.Errorf("read tcp 127.0.0.1:6443->127.0.0.1:%d: i/o timeout, Addr:(*net.TCPAddr)(%#x)", 50_000+i, 0x3301f5cbbdd0+i*4099))
			logger.Info("written each time")
		}
		logger.Error("Unhandled Error", "err", errors.New("another one"))
		if n := strings.Count(out.String(), "i/o timeout"); n != mostRepeats {
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
		logger.Error("Unhandled Error", "err", errors.New("read tcp 127.0.0.1:6443->127.0.0.1:1: i/o timeout"))
		if !strings.Contains(out.String(), "i/o timeout") {
			t.Error("the next minute writes nothing")
		}
		time.Sleep(repeatsWindow + time.Second)
	})
}
