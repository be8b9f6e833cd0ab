package simcloud_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/simcloud"
)

func TestSessions(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	s := get(c.Create(t.Context(), "session", fields{"name": "ci", "ttl": "1h"}))
	value, _ := s["value"].(string)
	if !strings.HasPrefix(value, "simsession-") {
		t.Errorf("the answer to the create tells the value; got %q", value)
	}
	for what, o := range map[string]simcloud.Object{"API": get(c.Read(t.Context(), "session", s.ID())), "control API": get(c.Find(t.Context(), "session", "ci"))} {
		if o["value"] != nil {
			t.Errorf("the %s tells the value again", what)
		}
	}
	var renewed simcloud.Object
	check(t, c.Do(t.Context(), http.MethodPost, "/v1/sessions/"+s.ID()+"/renew", nil, &renewed))
	if before, after := s["expires_at"].(string), renewed["expires_at"].(string); after <= before {
		t.Errorf("renewed from %s to %s", before, after)
	}
	check(t, c.Delete(t.Context(), "session", s.ID()))
	err := c.Do(t.Context(), http.MethodPost, "/v1/sessions/"+s.ID()+"/renew", nil, nil)
	wantError(t, err, http.StatusNotFound, "NotFound")

	short := get(c.Create(t.Context(), "session", fields{"name": "short", "ttl": "1ns"}))
	eventually(t, "the session is over", func() bool {
		ends, err := time.Parse(time.RFC3339Nano, short["expires_at"].(string))
		return err == nil && time.Now().After(ends)
	})
	err = c.Do(t.Context(), http.MethodPost, "/v1/sessions/"+short.ID()+"/renew", nil, nil)
	wantError(t, err, http.StatusGone, "Expired")
	_, err = c.Create(t.Context(), "session", fields{"name": "never", "ttl": "soon"})
	if e := wantError(t, err, http.StatusBadRequest, "InvalidParameter"); e.Field != "ttl" {
		t.Errorf("the error is about %q, want ttl", e.Field)
	}
	for op, want := range map[string]int{simcloud.OpCreate: 3, simcloud.OpRenew: 3, simcloud.OpDelete: 1} {
		if n, err := c.CountCalls(t.Context(), simcloud.Filter{Kind: "session", Op: op}); err != nil || n != want {
			t.Errorf("%d calls %s of sessions (%v), want %d", n, op, err, want)
		}
	}
}

func TestReboot(t *testing.T) {
	c := start(t, simcloud.Config{Settings: simcloud.Settings{Provisioning: map[string]simcloud.Duration{"instance": millis(50)}}})
	_, _, instance, _ := estate(t, c)
	status := func() string {
		return must[simcloud.Object](t)(c.Read(t.Context(), "instance", instance.ID()))["status"].(string)
	}
	eventually(t, "the instance runs", func() bool { return status() == "running" })
	before := must[simcloud.Object](t)(c.Read(t.Context(), "instance", instance.ID()))
	var answer simcloud.Object
	check(t, c.Do(t.Context(), http.MethodPost, "/v1/instances/"+instance.ID()+"/reboot", nil, &answer, simcloud.HeaderModule, "web-tier"))
	if answer["status"] != "pending" {
		t.Errorf("status %v right after the reboot, want pending", answer["status"])
	}
	eventually(t, "the instance runs again", func() bool { return status() == "running" })
	after := must[simcloud.Object](t)(c.Read(t.Context(), "instance", instance.ID()))
	if after["revision"] != before["revision"] || after["updated_at"] != before["updated_at"] {
		t.Error("a reboot changes no field, so that it is no drift")
	}
	calls := must[[]simcloud.Call](t)(c.Calls(t.Context(), simcloud.Filter{Op: simcloud.OpReboot, Effect: true}))
	if len(calls) != 1 || calls[0].Kind != "instance" || calls[0].Name != "web" || calls[0].Module != "web-tier" {
		t.Errorf("logged %+v", calls)
	}
	must[simcloud.Fault](t)(c.Fault(t.Context(), simcloud.Fault{Kind: "instance", Op: simcloud.OpReboot, Status: 409, Message: "not now"}))
	wantError(t, c.Do(t.Context(), http.MethodPost, "/v1/instances/"+instance.ID()+"/reboot", nil, nil), http.StatusConflict, "InjectedFault")
	check(t, c.RemoveFault(t.Context(), 0))
	wantError(t, c.Do(t.Context(), http.MethodPost, "/v1/instances/ins-0/reboot", nil, nil), http.StatusNotFound, "NotFound")
}

func TestDatabases(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	d := get(c.Create(t.Context(), "database", fields{"name": "app", "engine": "postgres", "engine_version": "17", "admin_password": "hidden"}))
	if d["admin_password"] != nil || get(c.Read(t.Context(), "database", d.ID()))["admin_password"] != nil {
		t.Error("the API tells the password")
	}
	if got := get(c.Find(t.Context(), "database", "app"))["admin_password"]; got != "hidden" {
		t.Errorf("the control API tells the password %v, want what was sent", got)
	}
	for _, tt := range []struct {
		reason, field string
		change        fields
	}{
		{"an engine is for ever", "engine", fields{"engine": "mysql"}},
		{"a version that is not there", "engine_version", fields{"engine_version": "9"}},
		{"no shrinking", "storage_gb", fields{"storage_gb": 5}},
	} {
		_, err := c.Update(t.Context(), "database", d.ID(), tt.change)
		if e := wantError(t, err, http.StatusBadRequest, "InvalidParameter"); e.Field != tt.field {
			t.Errorf("%s: the error is about %q, want %q", tt.reason, e.Field, tt.field)
		}
	}
	if d = get(c.Update(t.Context(), "database", d.ID(), fields{"engine_version": "18", "storage_gb": 20})); d["engine_version"] != "18" {
		t.Errorf("after the update: %v", d)
	}
}
