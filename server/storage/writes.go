package storage

import (
	"context"

	"github.com/k3s-io/kine/pkg/server"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/hykube/hykube/internal/fair"
)

// pausing gives a caller's slot of the processors back while it waits for the database.
type pausing struct {
	server.Backend
	// local is true if the database is part of this process. It then computes a read here, so the caller keeps its
	// slot. A write waits for others.
	local bool
}

func (p pausing) Get(ctx context.Context, key string, revision int64, keysOnly bool) (int64, *server.KeyValue, error) {
	if !p.local {
		defer fair.Pause(ctx)()
	}
	return p.Backend.Get(ctx, key, revision, keysOnly)
}

func (p pausing) List(ctx context.Context, key, end string, limit, revision int64,
	keysOnly bool) (int64, []*server.KeyValue, error) {
	if !p.local {
		defer fair.Pause(ctx)()
	}
	return p.Backend.List(ctx, key, end, limit, revision, keysOnly)
}

func (p pausing) Create(ctx context.Context, key string, value []byte, lease int64) (int64, error) {
	defer fair.Pause(ctx)()
	return p.Backend.Create(ctx, key, value, lease)
}

func (p pausing) Update(ctx context.Context, key string, value []byte, revision,
	lease int64) (int64, *server.KeyValue, bool, error) {
	defer fair.Pause(ctx)()
	return p.Backend.Update(ctx, key, value, revision, lease)
}

func (p pausing) Delete(ctx context.Context, key string, revision int64) (int64, *server.KeyValue, bool, error) {
	defer fair.Pause(ctx)()
	return p.Backend.Delete(ctx, key, revision)
}

// namespaceOf returns the namespace for which the server writes: that of the plan, else that of the API request, else
// "".
func namespaceOf(ctx context.Context) string {
	if key, ok := fair.KeyOf(ctx); ok {
		return key
	}
	if info, ok := request.RequestInfoFrom(ctx); ok {
		return info.Namespace
	}
	return ""
}
