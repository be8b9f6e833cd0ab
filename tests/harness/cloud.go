package harness

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hykube/hykube/tests/simcloud"
)

// cloudStopLimit is long because the server waits five seconds for a connection that was never used.
const cloudStopLimit = 30 * time.Second

// Cloud is a simulated cloud in this process. Its client counts calls, injects faults and changes objects.
type Cloud struct {
	*simcloud.Client
	// Address is the value for SIMCLOUD_ADDRESS, or for the argument "endpoint" of the provider "sim".
	Address string
	running *simcloud.Running
}

// StartCloud starts a cloud on a free port.
func StartCloud(c simcloud.Config) (*Cloud, error) {
	r, err := simcloud.Start("127.0.0.1:0", c)
	if err != nil {
		return nil, err
	}
	return &Cloud{Client: r.Client(), Address: r.Address, running: r}, nil
}

// Stop lets calls finish, and then closes the cloud.
func (c *Cloud) Stop() error {
	c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), cloudStopLimit)
	defer cancel()
	if err := c.running.Stop(ctx); err != nil {
		return fmt.Errorf("stop the simulated cloud: %w", err)
	}
	return nil
}

// NewCloud starts a cloud that stops with the test.
func NewCloud(t testing.TB, config simcloud.Config) *Cloud {
	t.Helper()
	c, err := StartCloud(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}
