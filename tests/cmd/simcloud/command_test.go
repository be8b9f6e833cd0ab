package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hykube/hykube/tests/simcloud"
)

// run runs a command line in this process.
func run(ctx context.Context, env map[string]string, args ...string) (string, error) {
	var out bytes.Buffer
	c := newCommand(func(k string) string { return env[k] }, &out, io.Discard)
	c.SetArgs(args)
	err := c.ExecuteContext(ctx)
	return out.String(), err
}

func TestVerbs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "address")
	ctx, stop := context.WithCancel(t.Context())
	var served sync.WaitGroup
	served.Go(func() {
		if _, err := run(ctx, map[string]string{"SIMCLOUD_TOKEN": "secret"}, "serve", "--address-file", file); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	defer served.Wait()
	defer stop()
	var address string
	for end := time.Now().Add(5 * time.Second); address == ""; time.Sleep(time.Millisecond) {
		b, _ := os.ReadFile(file)
		if address = strings.TrimSpace(string(b)); address == "" && time.Now().After(end) {
			t.Fatal("no address was written")
		}
	}
	env := map[string]string{"SIMCLOUD_ADDRESS": address, "SIMCLOUD_TOKEN": "secret"}
	client := simcloud.NewClient(address, "secret")
	defer client.Close()
	if _, err := client.Create(ctx, "network", map[string]any{"name": "main", "tags": map[string]any{"a": "1"}}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want string // part of the output, or of the error
		fail bool
	}{
		{"drift network main tags.b=2", `network/main tags: {"a":"1"} -> {"a":"1","b":2}`, false},
		{"drift sim_network main tags.a- name=other", `name: main -> other`, false},
		{"drift network other color=red", "no such field", true},
		{"drift network other color", "neither FIELD=VALUE nor FIELD-", true},
		{"drift network nobody name=x", `network "nobody" does not exist`, true},
		{"drift unicorn main name=x", "there is no kind", true},
		{"fault --kind network --op create --status 503", "fault/1 created", false},
		{"fault --op creat", "no operation", true},
		{"fault --list", `"status": 503`, false},
		{"fault --clear", "", false},
		{"latency 1ms --op read", `"delay": "1ms"`, false},
		{"latency soon", "read delay", true},
		{"set --rate 1000 --burst 100 --quota network=5 --late-create 1ms", `"network": 5`, false},
		{"calls --kind network", "create", false},
		{"calls --op create --count", "1\n", false},
		{"create subnet name=sub cidr=10.0.1.0/24", "network_id: is required", true},
		{"create subnet name=sub cidr=10.0.1.0/24 network_id=net-00000001", "sub-00000002\n", false},
		{"create unicorn name=x", "UnknownCollection", true},
		{"delete subnet sub", "subnet/sub deleted", false},
		{"list network", "net-00000001   other", false},
		{"list -o json", `"subnet": null`, false},
		{"stats", `"calls": 1`, false},
		{"calls -o yaml", `no output "yaml"`, true},
		{"delete network other", "network/other deleted", false},
		{"reset", "", false},
	} {
		out, err := run(ctx, env, strings.Fields(tt.args)...)
		if err != nil {
			out = err.Error()
		}
		if tt.fail != (err != nil) || !strings.Contains(out, tt.want) {
			t.Errorf("simcloud %s: %q, %v; want %q", tt.args, out, err, tt.want)
		}
	}
	if _, err := run(ctx, nil, "list"); err == nil || !strings.Contains(err.Error(), "SIMCLOUD_ADDRESS") {
		t.Errorf("without an address: %v", err)
	}
	env["SIMCLOUD_TOKEN"] = "wrong"
	if _, err := run(ctx, env, "list"); err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("with a wrong token: %v", err)
	}
}

func TestFields(t *testing.T) {
	got, err := fields([]string{"size=large", "cpu=4", "public=true", "image-", "tags.x=1", "tags.y-", `values=["a"]`}, map[string]any{
		"tags": map[string]any{"y": "gone", "z": "kept"},
	})
	want := map[string]any{
		"size": "large", "cpu": 4.0, "public": true, "image": nil, "tags": map[string]any{"x": 1.0, "z": "kept"}, "values": []any{"a"},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("error %v (-want +got):\n%s", err, diff)
	}
}
