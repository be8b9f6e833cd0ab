package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
)

// crossCompilers are the C compilers for the server on another machine, as Debian names them.
var crossCompilers = map[string]string{"amd64": "x86_64-linux-gnu-gcc", "arm64": "aarch64-linux-gnu-gcc"}

var kubernetesVersion = regexp.MustCompile(`(?m)^const kubernetesVersion = "(.*)"`)

// compile builds a target. The server needs C, for SQLite and for the sandbox of providers. The plugin does not, so that
// each machine can build it for all.
func (r *release) compile(ctx context.Context, t target, path string) error {
	flags, err := r.linkerFlags(t)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", path, "./cmd/"+t.program)
	cmd.Env = append(os.Environ(), "GOOS="+t.system, "GOARCH="+t.arch, "CGO_ENABLED=0")
	if t.program == server {
		cmd.Env = append(cmd.Env, "CGO_ENABLED=1")
		if t.system != runtime.GOOS || t.arch != runtime.GOARCH {
			compiler := crossCompilers[t.arch]
			if _, err := exec.LookPath(compiler); err != nil {
				return fmt.Errorf("there is no C compiler %s for it; on Debian, the package gcc-%s has it", compiler, map[string]string{"amd64": "x86-64-linux-gnu", "arm64": "aarch64-linux-gnu"}[t.arch])
			}
			cmd.Env = append(cmd.Env, "CC="+compiler)
		}
	}
	cmd.Stdout, cmd.Stderr = r.log, r.log
	return cmd.Run()
}

// linkerFlags returns what the Makefile passes to the linker for the same program.
func (r *release) linkerFlags(t target) (string, error) {
	flags := "-s -w -X github.com/hykube/hykube/internal/cli/version.Version=" + r.version
	if t.program != server {
		return flags, nil
	}
	source, err := os.ReadFile(filepath.Join("server", "version.go"))
	if err != nil {
		return "", err
	}
	kubernetes := kubernetesVersion.FindSubmatch(source)
	if kubernetes == nil {
		return "", errors.New("server/version.go has no kubernetesVersion")
	}
	return flags + " -X github.com/hykube/hykube/server.Version=" + r.version + " -X k8s.io/component-base/version.gitVersion=" + string(kubernetes[1]) +
		" -extldflags=-Wl,--no-export-dynamic", nil
}

// texts writes shell completions and man pages, which the server's program prints, to the directory r.work.
func (r *release) texts(ctx context.Context) error {
	host := target{server, runtime.GOOS, runtime.GOARCH}
	program := r.binary(host)
	if _, err := os.Stat(program); err != nil {
		if err := r.build(ctx, host, program); err != nil {
			return fmt.Errorf("build %s, which prints the man pages: %w", host, err)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		for name, args := range map[string][]string{server: {"completion", shell}, plugin: {"kubectl", "hykube", "completion", shell}} {
			if err := r.write(ctx, filepath.Join("completions", name+"."+shell), program, args...); err != nil {
				return err
			}
		}
	}
	if err := r.write(ctx, "kubectl_complete-hykube", program, "kubectl", "hykube", "completion", "kubectl"); err != nil {
		return err
	}
	man := filepath.Join(r.work, "man1")
	if err := os.Mkdir(man, 0o755); err != nil {
		return err
	}
	cmd := r.command(ctx, program, "man", man)
	cmd.Stdout, cmd.Stderr = r.log, r.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("write man pages: %w", err)
	}
	return nil
}

func (r *release) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()))
	return cmd
}

// write writes the output of a program to a file below r.work.
func (r *release) write(ctx context.Context, name, program string, args ...string) error {
	path := filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	cmd := r.command(ctx, program, args...)
	cmd.Stderr = r.log
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return os.WriteFile(path, out, 0o644)
}
