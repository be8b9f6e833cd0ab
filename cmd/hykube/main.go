// Command hykube is the main binary of Hykube: the server, and kubectl with the plugin built in. It only wires the
// packages that it imports. It exits with 0 after success, with 1 after an error, and with the codes that a verb of
// kubectl documents.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/kubectl"
)

func main() { os.Exit(kubectl.Run(newCommand())) }

func newCommand() *cobra.Command {
	root := kubectl.NewRoot()
	root.AddCommand(newServerCommand(), newWorkerCommand(), newKubeconfigCommand(), newRotateKeysCommand(),
		newRebuildIndexCommand(), newBackupCommand(), newRestoreCommand(), newMigrateCommand(), newVersionCommand(),
		newProviderExecCommand(), newAuditCommand(),
		newProbeCommand(), newManCommand())
	return root
}
