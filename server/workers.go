package server

import (
	"context"
	"time"
)

// endWorkersEvery is the time between two looks for workers that have ended.
const endWorkersEvery = 3 * time.Second

// endWorkers ends the rights of workers whose lease has expired, until ctx ends. Temporal then gives their activities
// to others at once and not after the heartbeat timeout.
func (s *Server) endWorkers(ctx context.Context) {
	ticker := time.NewTicker(endWorkersEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		ended, err := s.config.store.EndWorkers(ctx)
		if err != nil && ctx.Err() == nil {
			s.log.Warn("cannot look for workers that have ended", "error", err)
		}
		if len(ended) > 0 {
			s.log.Info("workers have ended; others go on with their steps", "workers", len(ended))
			s.engine.FailActivities(ctx, ended)
		}
	}
}
