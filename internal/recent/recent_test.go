package recent

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestMapKeepsFewValuesForAShortTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New[string, int](2, time.Minute)
		for i, key := range []string{"a", "b", "c"} {
			m.Put(key, i)
		}
		if v, ok := m.Get("b"); !ok || v != 1 || m.Len() != 2 {
			t.Errorf("b is %d (%t) among %d values, want 1 among 2", v, ok, m.Len())
		}
		if _, ok := m.Get("c"); ok {
			t.Error("a full map took another value")
		}
		m.Delete("a")
		if _, ok := m.Get("a"); ok {
			t.Error("a deleted value is there")
		}
		time.Sleep(time.Minute + time.Second)
		if m.Len() != 0 {
			t.Errorf("%d values are left after the time", m.Len())
		}
		m.Put("d", 4)
		time.Sleep(time.Minute + time.Second)
		if m.Len() != 0 {
			t.Errorf("%d later values are left after the time", m.Len())
		}
	})
}
