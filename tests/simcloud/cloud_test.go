package simcloud_test

import (
	"context"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hykube/hykube/tests/harness"
	"github.com/hykube/hykube/tests/simcloud"
)

// start serves a cloud until the test ends.
func start(t *testing.T, c simcloud.Config) *simcloud.Client {
	t.Helper()
	return harness.NewCloud(t, c).Client
}

type fields = map[string]any

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks the status and the code of an error.
func wantError(t *testing.T, err error, status int, code string) *simcloud.Error {
	t.Helper()
	e, ok := errors.AsType[*simcloud.Error](err)
	if !ok || e.Status != status || e.Code != code {
		t.Fatalf("got %v, want HTTP %d %s", err, status, code)
	}
	return e
}

// estate creates a network, a subnet, an instance and an attached disk.
func estate(t *testing.T, c *simcloud.Client) (network, subnet, instance, disk simcloud.Object) {
	t.Helper()
	get := must[simcloud.Object](t)
	network = get(c.Create(t.Context(), "network", fields{"name": "main"}))
	subnet = get(c.Create(t.Context(), "subnet", fields{"name": "front", "network_id": network.ID(), "cidr": "10.0.1.0/24"}))
	instance = get(c.Create(t.Context(), "instance", fields{"name": "web", "subnet_id": subnet.ID(), "image": "debian-13"}))
	disk = get(c.Create(t.Context(), "disk", fields{"name": "data", "size_gb": 10}))
	check(t, c.Do(t.Context(), "POST", "/v1/disks/"+disk.ID()+"/attach", fields{"instance_id": instance.ID()}, nil))
	return network, subnet, instance, disk
}

func TestObjectsAreCreatedUpdatedAndDeleted(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	network, subnet, instance, disk := estate(t, c)
	got := fields{"cidr": network["cidr"], "status": instance["status"], "size": instance["size"], "zone": subnet["zone"]}
	if diff := cmp.Diff(fields{"cidr": "10.0.0.0/16", "status": "running", "size": "small", "zone": "zone-c"}, got); diff != "" {
		t.Errorf("what the cloud fills in (-want +got):\n%s", diff)
	}
	if ip, _ := instance["private_ip"].(string); !strings.HasPrefix(ip, "10.0.1.") {
		t.Errorf("private address %q lies outside the subnet", ip)
	}
	updated := get(c.Update(t.Context(), "instance", instance.ID(), fields{"size": "large", "public": true}))
	if updated["size"] != "large" || updated["public_ip"] == nil || updated["revision"] != 2.0 {
		t.Errorf("after update: %v", updated)
	}
	private := get(c.Update(t.Context(), "instance", instance.ID(), fields{"public": false}))
	if private["public_ip"] != nil {
		t.Errorf("a private instance keeps its public address: %v", private)
	}

	// The cloud does not delete an object that is in use.
	for kind, id := range map[string]string{"network": network.ID(), "subnet": subnet.ID()} {
		wantError(t, c.Delete(t.Context(), kind, id), http.StatusConflict, "DependencyViolation")
	}
	// A deleted instance detaches its disks.
	check(t, c.Delete(t.Context(), "instance", instance.ID()))
	if o := get(c.Read(t.Context(), "disk", disk.ID())); o["instance_id"] != nil {
		t.Errorf("the disk is attached to an instance that is gone: %v", o)
	}
	check(t, c.Delete(t.Context(), "disk", disk.ID()))
	check(t, c.Delete(t.Context(), "subnet", subnet.ID()))
	check(t, c.Delete(t.Context(), "network", network.ID()))
	wantError(t, c.Delete(t.Context(), "network", network.ID()), http.StatusNotFound, "NotFound")
	if s := must[simcloud.Stats](t)(c.Stats(t.Context())); len(s.Objects) != 0 {
		t.Errorf("objects are left: %v", s.Objects)
	}
}

func TestRefusals(t *testing.T) {
	c := start(t, simcloud.Config{})
	network, subnet, instance, disk := estate(t, c)
	must[simcloud.Object](t)(c.Create(t.Context(), "dns-record", fields{"name": "www", "type": "A", "values": []string{"10.0.0.1"}}))
	create := func(kind string, f fields) func() error {
		return func() error { _, err := c.Create(t.Context(), kind, f); return err }
	}
	update := func(kind, id string, f fields) func() error {
		return func() error { _, err := c.Update(t.Context(), kind, id, f); return err }
	}
	for _, tt := range []struct {
		reason string
		call   func() error
		status int
		code   string
		field  string
	}{
		{"a subnet needs a network", create("subnet", fields{"name": "x", "network_id": "net-ffffffff", "cidr": "10.0.9.0/24"}), 400, "ReferenceNotFound", "network_id"},
		{"an id of another kind is no network", create("subnet", fields{"name": "x", "network_id": subnet.ID(), "cidr": "10.0.9.0/24"}), 400, "ReferenceNotFound", "network_id"},
		{"a subnet lies within its network", create("subnet", fields{"name": "x", "network_id": network.ID(), "cidr": "10.9.0.0/24"}), 400, "InvalidParameter", "cidr"},
		{"a block has no host bits", create("network", fields{"name": "x", "cidr": "10.0.0.1/16"}), 400, "InvalidParameter", "cidr"},
		{"a name is required", create("network", fields{}), 400, "InvalidParameter", "name"},
		{"an unknown field is told", create("network", fields{"name": "x", "color": "red"}), 400, "InvalidParameter", "color"},
		{"a number is no string", create("network", fields{"name": 7}), 400, "InvalidParameter", "name"},
		{"an id is the cloud's", create("network", fields{"name": "x", "id": "net-1"}), 400, "InvalidParameter", "id"},
		{"an image must exist", create("instance", fields{"name": "x", "subnet_id": subnet.ID(), "image": "templeos"}), 400, "InvalidParameter", "image"},
		{"a computed field can't be sent", update("instance", instance.ID(), fields{"status": "stopped"}), 400, "InvalidParameter", "status"},
		{"an immutable field stays", update("network", network.ID(), fields{"cidr": "10.1.0.0/16"}), 400, "InvalidParameter", "cidr"},
		{"a disk can't shrink", update("disk", disk.ID(), fields{"size_gb": 5}), 400, "InvalidParameter", "size_gb"},
		{"a record is unique", create("dns-record", fields{"name": "www", "type": "A", "values": []string{"10.0.0.2"}}), 409, "AlreadyExists", ""},
		{"a record of another type is another one", create("dns-record", fields{"name": "www", "type": "TXT", "values": []string{"x"}}), 0, "", ""},
		{"what is not there can't be updated", update("network", "net-ffffffff", fields{"name": "x"}), 404, "NotFound", ""},
		{"a collection that is none", create("unicorn", fields{"name": "x"}), 404, "UnknownCollection", ""},
		{"images can't be made", create("images", fields{"name": "x"}), 405, "ReadOnly", ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			err := tt.call()
			if tt.status == 0 {
				check(t, err)
				return
			}
			if e := wantError(t, err, tt.status, tt.code); e.Field != tt.field {
				t.Errorf("field %q, want %q", e.Field, tt.field)
			}
		})
	}
}

func TestTokenIsRequired(t *testing.T) {
	r, err := simcloud.Start("127.0.0.1:0", simcloud.Config{Token: "right"})
	check(t, err)
	t.Cleanup(func() { _ = r.Stop(context.Background()) })
	for _, tt := range []struct{ path, token, reason string }{
		{"/v1/account", "wrong", "the API"}, {"/v1/account", "", "the API without a token"}, {"/_sim/settings", "wrong", "the control API"},
	} {
		c := simcloud.NewClient(r.Address, tt.token)
		defer c.Close()
		wantError(t, c.Do(t.Context(), "GET", tt.path, nil, nil), http.StatusUnauthorized, "Unauthorized")
	}
	c := r.Client()
	defer c.Close()
	check(t, c.Do(t.Context(), "GET", "/v1/account", nil, nil))
}

func TestOnlyTheCreateReturnsASecret(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	made := get(c.Create(t.Context(), "token", fields{"name": "ci"}))
	if s, _ := made["secret"].(string); len(s) < 32 {
		t.Fatalf("the answer to the create has no secret: %v", made)
	}
	for what, o := range map[string]simcloud.Object{
		"read": get(c.Read(t.Context(), "token", made.ID())), "update": get(c.Update(t.Context(), "token", made.ID(), fields{"scopes": []string{"x"}})),
		"control": get(c.Find(t.Context(), "token", "ci")),
	} {
		if o["secret"] != nil {
			t.Errorf("%s returns the secret again", what)
		}
	}
}

func TestListPagesInOrderOfCreation(t *testing.T) {
	c, get := start(t, simcloud.Config{}), must[simcloud.Object](t)
	var want []string
	for range 7 {
		want = append(want, get(c.Create(t.Context(), "network", fields{"name": "same"})).ID())
	}
	check(t, c.Delete(t.Context(), "network", want[3]))
	want = append(want[:3], want[4:]...)
	for _, query := range []string{"", "&name=same"} {
		var got []string
		for after := ""; ; {
			var page struct {
				Items []simcloud.Object
				Next  string
			}
			check(t, c.Do(t.Context(), "GET", "/v1/networks?limit=2&after="+after+query, nil, &page))
			for _, o := range page.Items {
				got = append(got, o.ID())
			}
			if after = page.Next; after == "" {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("list%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestStateFileSurvivesKill(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	first, err := simcloud.New(simcloud.Config{StateFile: path})
	check(t, err)
	a := serve(t, first)
	network, subnet, instance, disk := estate(t, a)
	gone := must[simcloud.Object](t)(a.Create(t.Context(), "network", fields{"name": "gone"}))
	check(t, a.Delete(t.Context(), "network", gone.ID()))
	var once simcloud.Object
	check(t, a.Do(t.Context(), "POST", "/v1/networks", fields{"name": "once"}, &once, simcloud.HeaderClientToken, "T"))
	// The first cloud is not closed. The second one reads the state file, as after a kill.
	second, err := simcloud.New(simcloud.Config{StateFile: path})
	check(t, err)
	t.Cleanup(func() { _ = second.Close(); _ = first.Close() })
	b := serve(t, second)
	for _, kind := range simcloud.KindNames() {
		want, got := must[[]simcloud.Object](t)(a.Objects(t.Context(), kind, "")), must[[]simcloud.Object](t)(b.Objects(t.Context(), kind, ""))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-before +after):\n%s", kind, diff)
		}
	}
	for kind, id := range map[string]string{"network": network.ID(), "subnet": subnet.ID()} {
		wantError(t, b.Delete(t.Context(), kind, id), http.StatusConflict, "DependencyViolation")
	}
	check(t, b.Delete(t.Context(), "instance", instance.ID()))
	if o := must[simcloud.Object](t)(b.Find(t.Context(), "disk", disk.ID())); o["instance_id"] != nil {
		t.Errorf("the disk is attached to an instance that is gone: %v", o)
	}
	var again simcloud.Object
	check(t, b.Do(t.Context(), "POST", "/v1/networks", fields{"name": "once"}, &again, simcloud.HeaderClientToken, "T"))
	if again.ID() != once.ID() {
		t.Errorf("the client token was forgotten: %s, want %s", again.ID(), once.ID())
	}
	if next := must[simcloud.Object](t)(b.Create(t.Context(), "network", fields{"name": "next"})); next.ID() <= once.ID() {
		t.Errorf("id %s was given again after %s", next.ID(), once.ID())
	}
}

// serve serves a cloud that the test closes itself.
func serve(t *testing.T, s *simcloud.Server) *simcloud.Client {
	t.Helper()
	srv := newHTTPServer(t, s)
	c := simcloud.NewClient(srv, "")
	t.Cleanup(c.Close)
	return c
}
