package contain

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/hykube/hykube/internal/provider/contain/cgroup"
)

// NoCgroup is the value of the flag --provider-cgroup that turns cgroups off.
const NoCgroup = "off"

// CheckCgroup checks the value of the flag --provider-cgroup.
func CheckCgroup(place string) error {
	if place == cgroup.Auto || place == NoCgroup || filepath.IsAbs(place) {
		return nil
	}
	return fmt.Errorf("use --provider-cgroup %q: write auto, off or the absolute path of a cgroup", place)
}

// UseCgroup starts all later processes in cgroups of their own. The place is a value of the flag --provider-cgroup; ""
// means NoCgroup. With cgroup.Auto, a problem is a warning in the log, and the processes have no cgroups. The caller
// calls it before the first process.
func (p *Policy) UseCgroup(place string, logger *slog.Logger) error {
	if place == "" || place == NoCgroup || p.config.Mode == Off || !p.support.System {
		return nil
	}
	tree, err := p.openTree(place)
	switch {
	case errors.Is(err, cgroup.ErrNotDelegated):
		p.support.NoCgroup = "a cgroup v2 that is delegated to the server"
		return nil
	case err != nil && place == cgroup.Auto:
		p.support.NoCgroup = err.Error()
		logger.Warn("providers have no cgroups, because the server cannot use its delegated cgroup", "error", err)
		return nil
	case err != nil:
		return fmt.Errorf("use --provider-cgroup %q: %w", place, err)
	}
	p.tree = tree
	p.support.Cgroup, p.support.Controllers, p.support.NoControllers = true, tree.Controllers, tree.Missing
	p.config.Protected = append(p.config.Protected, tree.Root)
	logger.Info("each provider process has a cgroup", "below", tree.Root, "controllers", tree.Controllers)
	if len(tree.Missing) > 0 {
		logger.Warn("the cgroups of providers lack controllers; enable them for the server's cgroup", "missing",
			tree.Missing)
	}
	return nil
}

// openTree opens a tree in which a process can start.
func (p *Policy) openTree(place string) (*cgroup.Tree, error) {
	tree, err := cgroup.Open(place,
		cgroup.Limits{Memory: p.memory(), Processes: uint64(cmp.Or(p.config.MaxProcesses, maxProcesses))})
	if err != nil {
		return nil, err
	}
	if err := p.probe(tree); err != nil {
		tree.Close()
		return nil, err
	}
	return tree, nil
}

// Ended kills what a process left in its cgroup. The caller calls it after the end of the process. If the kernel has
// ended the process because memory ran out, Ended returns that reason; otherwise "".
func (s *Sandbox) Ended() string {
	if s.group == nil {
		return ""
	}
	s.group.Kill()
	switch s.group.Exhausted() {
	case cgroup.OwnLimit:
		return fmt.Sprintf("it needs more than %d MiB of memory; raise --provider-memory-limit of the server",
			s.policy.memory()>>20)
	case cgroup.OuterLimit:
		return "the machine, or the cgroup of the server, ran out of memory; give it more, or lower --provider-memory-limit of the server"
	default:
		return ""
	}
}
