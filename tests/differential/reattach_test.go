package differential

import (
	"encoding/json"
	"fmt"
	"os/exec"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
)

// running holds the provider processes of a story. Terraform would start each of them several times for each command.
type running struct {
	clients []*goplugin.Client
	// reattach is the value of TF_REATTACH_PROVIDERS, with which Terraform connects to these processes. It needs no init then.
	reattach string
}

// start starts a process for each of the providers.
func (f *fixture) start(providers []string) (*running, error) {
	type address struct{ Network, String string }
	type process struct {
		Protocol        string
		ProtocolVersion int
		Pid             int
		// Test is true if Terraform must not end the process.
		Test bool
		Addr address
	}
	r, processes := &running{}, map[string]process{}
	for _, name := range providers {
		client := goplugin.NewClient(&goplugin.ClientConfig{
			HandshakeConfig: goplugin.HandshakeConfig{
				MagicCookieKey: "TF_PLUGIN_MAGIC_COOKIE", MagicCookieValue: "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
			},
			VersionedPlugins: map[int]goplugin.PluginSet{5: {}, 6: {}},
			AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
			Cmd:              exec.Command(f.plugins[name].path),
			Logger:           hclog.NewNullLogger(),
		})
		r.clients = append(r.clients, client)
		at, err := client.Start()
		if err != nil {
			r.stop()
			return nil, fmt.Errorf("start provider %q: %w", name, err)
		}
		processes[f.sources[name]] = process{
			Protocol: string(goplugin.ProtocolGRPC), ProtocolVersion: client.NegotiatedVersion(), Pid: client.ReattachConfig().Pid, Test: true,
			Addr: address{at.Network(), at.String()},
		}
	}
	text, err := json.Marshal(processes)
	r.reattach = string(text)
	return r, err
}

func (r *running) stop() {
	for _, c := range r.clients {
		c.Kill()
	}
}
