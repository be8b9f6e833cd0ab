package simcloud_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/hykube/hykube/tests/simcloud"
)

func newHTTPServer(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func millis(n int) simcloud.Duration { return simcloud.Duration(time.Duration(n) * time.Millisecond) }

// eventually polls until a condition holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, tt := range []struct {
		reason string
		fault  simcloud.Fault
		// want is the status of the first create; 0 means no answer.
		want int
		// made is the number of networks afterwards.
		made int
	}{
		{"a status before the effect", simcloud.Fault{Kind: "network", Op: "create", Status: 503}, 503, 0},
		{"500 when no status is named", simcloud.Fault{Op: "create"}, 500, 0},
		{"a lost answer by status", simcloud.Fault{Op: "create", When: simcloud.After, Status: 502}, 502, 1},
		{"a connection closed before", simcloud.Fault{Op: "create", Action: simcloud.ActionClose}, 0, 0},
		{"a lost answer by a closed connection", simcloud.Fault{Op: "create", When: simcloud.After, Action: simcloud.ActionClose}, 0, 1},
		{"a hang before", simcloud.Fault{Op: "create", Action: simcloud.ActionHang, Delay: millis(20)}, 0, 0},
		{"a hang after", simcloud.Fault{Op: "create", Action: simcloud.ActionHang, When: simcloud.After, Delay: millis(20)}, 0, 1},
		{"a delay", simcloud.Fault{Op: "create", Action: simcloud.ActionDelay, Delay: millis(20)}, 201, 1},
		{"a name that matches", simcloud.Fault{Name: "ma*", Status: 418}, 418, 0},
		{"a name that does not", simcloud.Fault{Name: "other-*", Status: 418}, 201, 1},
		{"another kind", simcloud.Fault{Kind: "subnet", Status: 418}, 201, 1},
		{"another operation", simcloud.Fault{Op: "delete", Status: 418}, 201, 1},
		{"calls that pass first", simcloud.Fault{Skip: 1, Status: 418}, 201, 1},
		{"a kind as Terraform names it", simcloud.Fault{Kind: "sim_network", Status: 418}, 418, 0},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			c := start(t, simcloud.Config{})
			tt.fault.Count = 1
			fault := must[simcloud.Fault](t)(c.Fault(t.Context(), tt.fault))
			_, err := c.Create(t.Context(), "network", fields{"name": "main"})
			got := 201
			if e, ok := errors.AsType[*simcloud.Error](err); ok {
				got = e.Status
			} else if err != nil {
				got = 0
			}
			if got != tt.want {
				t.Errorf("answered %d (%v), want %d", got, err, tt.want)
			}
			made := must[[]simcloud.Object](t)(c.Objects(t.Context(), "network", ""))
			if len(made) != tt.made {
				t.Errorf("%d networks exist, want %d", len(made), tt.made)
			}
			check(t, c.WaitCalls(t.Context(), simcloud.Filter{Op: "create"}, 1))
			eventually(t, "the call is done", func() bool {
				n, err := c.CountCalls(t.Context(), simcloud.Filter{Pending: true})
				return err == nil && n == 0
			})
			calls := must[[]simcloud.Call](t)(c.Calls(t.Context(), simcloud.Filter{}))
			struck := must[[]simcloud.Fault](t)(c.Faults(t.Context()))[0].Fired == 1
			want := []simcloud.Call{{ID: 1, Method: "POST", Path: "/v1/networks", Kind: "network", Op: "create", Name: "main", Status: tt.want, Effect: tt.made == 1, Done: true}}
			if struck {
				want[0].Fault = fault.ID
			}
			if tt.made == 1 {
				want[0].Object = made[0].ID()
			}
			if diff := cmp.Diff(want, calls, cmpopts.IgnoreFields(simcloud.Call{}, "Time", "Duration", "Error")); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			// Count is 1, so the fault does not affect the second create, unless the first passed.
			if struck {
				must[simcloud.Object](t)(c.Create(t.Context(), "network", fields{"name": "main"}))
			}
		})
	}
}

func TestFailedInstance(t *testing.T) {
	c := start(t, simcloud.Config{Settings: simcloud.Settings{Provisioning: map[string]simcloud.Duration{"instance": millis(30)}}})
	_, subnet, _, _ := estate(t, c)
	must[simcloud.Fault](t)(c.Fault(t.Context(), simcloud.Fault{Kind: "instance", Op: "create", Action: simcloud.ActionFail, Count: 1}))
	bad := must[simcloud.Object](t)(c.Create(t.Context(), "instance", fields{"name": "bad", "subnet_id": subnet.ID(), "image": "debian-13"}))
	if bad["status"] != "pending" {
		t.Errorf("a new instance is %v, want pending", bad["status"])
	}
	eventually(t, "the instance fails", func() bool {
		o, err := c.Read(t.Context(), "instance", bad.ID())
		return err == nil && o["status"] == "failed"
	})
}

func TestHangEndsWhenFaultIsRemoved(t *testing.T) {
	c := start(t, simcloud.Config{})
	f := must[simcloud.Fault](t)(c.Fault(t.Context(), simcloud.Fault{Action: simcloud.ActionHang, Op: "create"}))
	var wg sync.WaitGroup
	var err error
	wg.Go(func() { _, err = c.Create(t.Context(), "network", fields{"name": "x"}) })
	check(t, c.WaitCalls(t.Context(), simcloud.Filter{Pending: true}, 1))
	check(t, c.RemoveFault(t.Context(), f.ID))
	wg.Wait()
	if err == nil {
		t.Error("a call that hung was answered")
	}
}

func TestStopDoesNotWaitForHangs(t *testing.T) {
	r, err := simcloud.Start("127.0.0.1:0", simcloud.Config{})
	check(t, err)
	c := r.Client()
	defer c.Close()
	must[simcloud.Fault](t)(c.Fault(t.Context(), simcloud.Fault{Action: simcloud.ActionHang}))
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = c.Create(t.Context(), "network", fields{"name": "x"}) })
	check(t, c.WaitCalls(t.Context(), simcloud.Filter{Pending: true}, 1))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	check(t, r.Stop(ctx))
	wg.Wait()
}

func TestEventualConsistency(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	late := func(s simcloud.Consistency) {
		check(t, c.Change(t.Context(), func(x *simcloud.Settings) { x.Consistency = s }))
	}
	// The windows are so long that no slow machine sees their end. Where the test is not about the end, it then removes
	// them.
	const long = simcloud.Duration(time.Hour)

	late(simcloud.Consistency{Create: long})
	hidden := get(c.Create(t.Context(), "network", fields{"name": "hidden"}))
	_, err := c.Read(t.Context(), "network", hidden.ID())
	wantError(t, err, http.StatusNotFound, "NotFound")
	var list struct{ Items []simcloud.Object }
	check(t, c.Do(t.Context(), "GET", "/v1/networks", nil, &list))
	if len(list.Items) != 0 {
		t.Errorf("the list shows %v", list.Items)
	}
	get(c.Find(t.Context(), "network", "hidden")) // the control API is always consistent
	// Writes are consistent, so a create can refer to an object that reads do not find yet.
	get(c.Create(t.Context(), "subnet", fields{"name": "s", "network_id": hidden.ID(), "cidr": "10.0.0.0/24"}))

	late(simcloud.Consistency{Create: millis(30)})
	soon := get(c.Create(t.Context(), "network", fields{"name": "soon"}))
	eventually(t, "the new network is found", func() bool { _, err := c.Read(t.Context(), "network", soon.ID()); return err == nil })

	late(simcloud.Consistency{Update: long})
	if now := get(c.Update(t.Context(), "network", soon.ID(), fields{"name": "later"})); now.Name() != "later" {
		t.Errorf("the answer to the update tells %v", now)
	}
	if stale := get(c.Read(t.Context(), "network", soon.ID())); stale.Name() != "soon" || stale["revision"] != 1.0 {
		t.Errorf("a read within the window tells %v", stale)
	}
	late(simcloud.Consistency{Update: millis(30)})
	get(c.Update(t.Context(), "network", soon.ID(), fields{"name": "last"}))
	eventually(t, "the update is seen", func() bool {
		o, err := c.Read(t.Context(), "network", soon.ID())
		return err == nil && o.Name() == "last"
	})

	late(simcloud.Consistency{Delete: millis(50)})
	check(t, c.Delete(t.Context(), "network", soon.ID()))
	eventually(t, "the deleted network is gone", func() bool { _, err := c.Read(t.Context(), "network", soon.ID()); return err != nil })
	late(simcloud.Consistency{Delete: long})
	other := get(c.Create(t.Context(), "network", fields{"name": "other"}))
	check(t, c.Delete(t.Context(), "network", other.ID()))
	get(c.Read(t.Context(), "network", other.ID()))
	wantError(t, c.Delete(t.Context(), "network", other.ID()), http.StatusNotFound, "NotFound")
}

func TestThrottle(t *testing.T) {
	c := start(t, simcloud.Config{})
	check(t, c.Change(t.Context(), func(s *simcloud.Settings) { s.Throttle = simcloud.Throttle{RatePerSecond: 0.01, Burst: 3} }))
	for range 3 {
		check(t, c.Do(t.Context(), "GET", "/v1/networks", nil, nil))
	}
	e := wantError(t, c.Do(t.Context(), "GET", "/v1/networks", nil, nil), http.StatusTooManyRequests, "Throttled")
	if e.RetryAfter <= 0 || e.RetryAfter > 100*time.Second {
		t.Errorf("come back after %s, want within 100s", e.RetryAfter)
	}
	if n := must[int](t)(c.CountCalls(t.Context(), simcloud.Filter{Status: 429})); n != 1 {
		t.Errorf("%d calls with 429 in the log, want 1", n)
	}
}

func TestQuota(t *testing.T) {
	c := start(t, simcloud.Config{})
	check(t, c.Change(t.Context(), func(s *simcloud.Settings) { s.Quotas = map[string]int{"sim_network": 1} }))
	one := must[simcloud.Object](t)(c.Create(t.Context(), "network", fields{"name": "one"}))
	_, err := c.Create(t.Context(), "network", fields{"name": "two"})
	wantError(t, err, http.StatusForbidden, "QuotaExceeded")
	check(t, c.Delete(t.Context(), "network", one.ID()))
	must[simcloud.Object](t)(c.Create(t.Context(), "network", fields{"name": "two"}))
}

func TestLatencyTakesTheMostSpecificRule(t *testing.T) {
	c := start(t, simcloud.Config{})
	check(t, c.Change(t.Context(), func(s *simcloud.Settings) {
		s.SetLatency(simcloud.Latency{Delay: simcloud.Duration(time.Hour)})
		s.SetLatency(simcloud.Latency{Kind: "network", Delay: simcloud.Duration(time.Hour)})
		s.SetLatency(simcloud.Latency{Kind: "network", Op: "create", Delay: millis(40), Jitter: millis(1)})
	}))
	must[simcloud.Object](t)(c.Create(t.Context(), "network", fields{"name": "x"}))
	call := must[[]simcloud.Call](t)(c.Calls(t.Context(), simcloud.Filter{Op: "create"}))[0]
	if d := time.Duration(call.Duration); d < 40*time.Millisecond {
		t.Errorf("the call took %s, want at least 40ms", d)
	}
}

func TestClientToken(t *testing.T) {
	c := start(t, simcloud.Config{})
	create := func() (o simcloud.Object) {
		t.Helper()
		check(t, c.Do(t.Context(), "POST", "/v1/networks", fields{"name": "x"}, &o, simcloud.HeaderClientToken, "same"))
		return o
	}
	first := create()
	if again := create(); again.ID() != first.ID() {
		t.Errorf("a second create with the same token made %s beside %s", again.ID(), first.ID())
	}
	if n := must[int](t)(c.CountCalls(t.Context(), simcloud.Filter{Effect: true})); n != 1 {
		t.Errorf("%d calls had an effect, want 1", n)
	}
	check(t, c.Change(t.Context(), func(s *simcloud.Settings) { s.IgnoreClientTokens = true }))
	if other := create(); other.ID() == first.ID() {
		t.Error("the cloud heeds client tokens though it was told not to")
	}
}

func TestDrift(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	_, _, instance, _ := estate(t, c)
	check(t, c.ForgetCalls(t.Context()))
	// Drift accepts values that the API rejects.
	get(c.Drift(t.Context(), "sim_instance", "web", fields{"status": "stopped", "image": "windows", "tags": fields{"x": "y"}}))
	o := get(c.Read(t.Context(), "instance", instance.ID()))
	if o["status"] != "stopped" || o["image"] != "windows" {
		t.Errorf("after drift: %v", o)
	}
	_, err := c.Drift(t.Context(), "instance", "web", fields{"color": "red"})
	wantError(t, err, http.StatusBadRequest, "InvalidParameter")
	check(t, c.Destroy(t.Context(), "instance", "web")) // although a disk is attached
	_, err = c.Read(t.Context(), "instance", instance.ID())
	wantError(t, err, http.StatusNotFound, "NotFound")
	if n := must[int](t)(c.CountCalls(t.Context(), simcloud.Filter{})); n != 2 {
		t.Errorf("%d calls in the log, want the 2 reads alone", n)
	}
	get(c.Create(t.Context(), "network", fields{"name": "main"}))
	wantError(t, c.Destroy(t.Context(), "network", "main"), http.StatusConflict, "Ambiguous")
}

func TestCallLog(t *testing.T) {
	c := start(t, simcloud.Config{CallLog: 4})
	network, _, _, _ := estate(t, c)
	check(t, c.Do(t.Context(), "GET", "/v1/networks/"+network.ID(), nil, nil, simcloud.HeaderRequestID, "me"))
	for _, tt := range []struct {
		reason string
		filter simcloud.Filter
		want   int
	}{
		{"the log holds the last four", simcloud.Filter{}, 4},
		{"by operation", simcloud.Filter{Op: "create"}, 2},
		{"by kind", simcloud.Filter{Kind: "sim_disk"}, 2},
		{"by name", simcloud.Filter{Name: "da*"}, 2},
		{"by object", simcloud.Filter{Object: network.ID()}, 1},
		{"by request", simcloud.Filter{RequestID: "me"}, 1},
		{"by effect", simcloud.Filter{Effect: true}, 3},
		{"since", simcloud.Filter{Since: 5}, 1},
		{"by status", simcloud.Filter{Status: 201}, 2},
	} {
		if got := must[int](t)(c.CountCalls(t.Context(), tt.filter)); got != tt.want {
			t.Errorf("%s: %d calls, want %d", tt.reason, got, tt.want)
		}
	}
	_, err := c.CountCalls(t.Context(), simcloud.Filter{Op: "creat"})
	wantError(t, err, http.StatusBadRequest, "InvalidParameter")
	s := must[simcloud.Stats](t)(c.Stats(t.Context()))
	want := simcloud.Stats{Calls: 6, MaxInFlight: 1, Objects: map[string]int{"network": 1, "subnet": 1, "instance": 1, "disk": 1}, Counts: []simcloud.Count{
		{Kind: "disk", Op: "attach", Status: 200, Calls: 1}, {Kind: "disk", Op: "create", Status: 201, Calls: 1}, {Kind: "instance", Op: "create", Status: 201, Calls: 1},
		{Kind: "network", Op: "create", Status: 201, Calls: 1}, {Kind: "network", Op: "read", Status: 200, Calls: 1}, {Kind: "subnet", Op: "create", Status: 201, Calls: 1},
	}}
	if diff := cmp.Diff(want, s); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

func TestReset(t *testing.T) {
	c := start(t, simcloud.Config{Settings: simcloud.Settings{Quotas: map[string]int{"network": 1}}})
	network, _, _, _ := estate(t, c)
	must[simcloud.Fault](t)(c.Fault(t.Context(), simcloud.Fault{Op: "create"}))
	check(t, c.Change(t.Context(), func(s *simcloud.Settings) { s.Quotas = nil }))
	check(t, c.Reset(t.Context()))
	o := must[simcloud.Object](t)(c.Create(t.Context(), "network", fields{"name": "main"}))
	if o.ID() == network.ID() {
		t.Error("an id was given twice")
	}
	_, err := c.Create(t.Context(), "network", fields{"name": "second"})
	wantError(t, err, http.StatusForbidden, "QuotaExceeded")
}

func TestBadSettingsAreRefused(t *testing.T) {
	c := start(t, simcloud.Config{})
	for reason, edit := range map[string]func(*simcloud.Settings){
		"unknown kind":   func(s *simcloud.Settings) { s.SetLatency(simcloud.Latency{Kind: "unicorn", Delay: 1}) },
		"unknown op":     func(s *simcloud.Settings) { s.SetLatency(simcloud.Latency{Op: "creat", Delay: 1}) },
		"negative quota": func(s *simcloud.Settings) { s.Quotas = map[string]int{"network": -1} },
		"negative rate":  func(s *simcloud.Settings) { s.Throttle.RatePerSecond = -1 },
		"negative delay": func(s *simcloud.Settings) { s.Consistency.Create = -1 },
	} {
		t.Run(reason, func(t *testing.T) {
			wantError(t, c.Change(t.Context(), edit), http.StatusBadRequest, "InvalidParameter")
		})
	}
	_, err := c.Fault(t.Context(), simcloud.Fault{When: "during"})
	wantError(t, err, http.StatusBadRequest, "InvalidParameter")
}

// TestBatch sends four calls as one: two succeed, one fails, and the answer of one is lost.
func TestBatch(t *testing.T) {
	c := start(t, simcloud.Config{Token: "T"})
	must[simcloud.Fault](t)(c.Fault(t.Context(), simcloud.Fault{Kind: "network", Op: "create", Name: "lost", When: simcloud.After, Action: simcloud.ActionClose}))
	check(t, c.Change(t.Context(), func(s *simcloud.Settings) { s.Throttle = simcloud.Throttle{RatePerSecond: 0.01, Burst: 2} }))
	create := func(name string) simcloud.BatchCall {
		return simcloud.BatchCall{Method: "POST", Path: "/v1/networks", Body: []byte(`{"name":"` + name + `"}`)}
	}
	var got simcloud.BatchResponse
	check(t, c.Do(t.Context(), "POST", "/v1/batch", simcloud.BatchRequest{Calls: []simcloud.BatchCall{
		create("first"), create("lost"), {Method: "GET", Path: "/v1/networks/net-none"}, create("last"),
	}}, &got))
	var statuses []int
	for _, a := range got.Answers {
		statuses = append(statuses, a.Status)
	}
	if diff := cmp.Diff([]int{201, 0, 404, 201}, statuses); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	// The throttle counts the batch as one call, so one more call passes.
	check(t, c.Do(t.Context(), "GET", "/v1/networks?name=lost", nil, nil))
	wantError(t, c.Do(t.Context(), "POST", "/v1/batch", simcloud.BatchRequest{Calls: []simcloud.BatchCall{create("more")}}, nil), http.StatusTooManyRequests, "Throttled")
	stats := must[simcloud.Stats](t)(c.Stats(t.Context()))
	if stats.Batches != 1 || stats.Objects["network"] != 3 {
		t.Errorf("%d batches and %d networks, want 1 and 3", stats.Batches, stats.Objects["network"])
	}
	for _, call := range must[[]simcloud.Call](t)(c.Calls(t.Context(), simcloud.Filter{Kind: "network", Op: "create"})) {
		if call.Batch != 1 {
			t.Errorf("the log has %s as a call of batch %d, want 1", call.Name, call.Batch)
		}
	}
}

func TestBadBatchesAreRefused(t *testing.T) {
	c := start(t, simcloud.Config{})
	wantError(t, c.Do(t.Context(), "POST", "/v1/batch", fields{"calls": []any{}}, nil), http.StatusBadRequest, "InvalidParameter")
	wantError(t, c.Do(t.Context(), "POST", "/v1/batch", fields{"calls": 3}, nil), http.StatusBadRequest, "MalformedBody")
}
