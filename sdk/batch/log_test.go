package batch

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-log/tflog"
)

// talker is a provider that logs each apply. Its other calls are nil.
type talker struct{ tfprotov6.ProviderServer }

func (talker) ApplyResourceChange(ctx context.Context, req *tfprotov6.ApplyResourceChangeRequest) (*tfprotov6.ApplyResourceChangeResponse, error) {
	tflog.Warn(ctx, "made "+string(req.PlannedPrivate))
	return &tfprotov6.ApplyResourceChangeResponse{}, nil
}

// TestTheCallsOfABatchLog lets each call of a batch log a line. Loggers write to the stderr that the process began with, so the batch
// runs in another process.
func TestTheCallsOfABatchLog(t *testing.T) {
	if os.Getenv("BATCH_LOGS") != "" {
		c := serve(t, talker{}, Limit{Method: Apply, Type: "thing", MaxCalls: 10})
		if _, err := makeBatch(t, c, Apply, encode(t, "a"), encode(t, "b")); err != nil {
			t.Fatal(err)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "BATCH_LOGS=1", "TF_LOG_PROVIDER=warn")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	type line struct {
		Message  string `json:"@message"`
		Provider string `json:"tf_provider_addr"`
		Request  string `json:"tf_req_id"`
		RPC      string `json:"tf_rpc"`
		Type     string `json:"tf_resource_type"`
	}
	made, request := map[string]bool{}, ""
	for text := range strings.Lines(stderr.String()) {
		var l line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if request == "" {
			request = l.Request
		}
		made[l.Message] = true
		l.Message = ""
		if want := (line{Provider: "registry.terraform.io/hykube/things", Request: request, RPC: "ApplyResourceChange", Type: "thing"}); l != want || request == "" {
			t.Errorf("line %+v, want %+v", l, want)
		}
	}
	if len(made) != 2 || !made["made a"] || !made["made b"] {
		t.Errorf("lines of %v, want one of each call", made)
	}
}
