// Command clidocs generates the reference of the kubectl plugin from its commands, one Markdown page for each verb:
//
//	go run ./hack/clidocs docs/cli
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/hykube/hykube/internal/cli"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clidocs DIRECTORY")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// generate writes the pages. It removes the pages of verbs that no longer exist.
func generate(dir string) error {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	root := cli.NewCommand(streams)
	root.DisableAutoGenTag = true // a date would change each page on each run
	old, err := filepath.Glob(filepath.Join(dir, "kubectl_hykube*.md"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.Remove(f); err != nil {
			return fmt.Errorf("remove old page: %w", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return pages(root, dir)
}

func pages(cmd *cobra.Command, dir string) error {
	cmd.DisableAutoGenTag = true
	for _, c := range cmd.Commands() {
		if !c.IsAvailableCommand() || c.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := pages(c, dir); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	if err := doc.GenMarkdown(cmd, &b); err != nil {
		return fmt.Errorf("write page of %q: %w", cmd.CommandPath(), err)
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "_") + ".md"
	if err := os.WriteFile(filepath.Join(dir, name), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write page of %q: %w", cmd.CommandPath(), err)
	}
	return nil
}
