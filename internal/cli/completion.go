package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/hykube/hykube/internal/cli/session"
)

// kubectlCompletion is the script that kubectl runs to complete the arguments of a plugin:
// https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/#tab-completion-for-plugins
const kubectlCompletion = `#!/bin/sh
# kubectl runs this to complete "kubectl hykube ...". Put it on the PATH as kubectl_complete-hykube.
exec kubectl-hykube __complete "$@"
`

func newCompletion(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:   "completion (kubectl | bash | zsh | fish | powershell)",
		Short: "Print a completion script",
		Long: `Print a completion script.

kubectl completes the arguments of a plugin with a program named kubectl_complete-PLUGIN. "completion kubectl"
prints that program. The scripts of the other shells complete the command "kubectl-hykube".`,
		Example: `  # for "kubectl hykube <TAB>", once kubectl's own completion works
  kubectl hykube completion kubectl > ~/.local/bin/kubectl_complete-hykube
  chmod +x ~/.local/bin/kubectl_complete-hykube

  # for "kubectl-hykube <TAB>"
  source <(kubectl hykube completion bash)`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"kubectl", "bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			// The scripts complete the plugin's own binary, even if this command is below another root.
			root := &cobra.Command{Use: "kubectl-hykube"}
			switch args[0] {
			case "kubectl":
				_, err := fmt.Fprint(s.Out, kubectlCompletion)
				return err
			case "bash":
				return root.GenBashCompletionV2(s.Out, true)
			case "zsh":
				return root.GenZshCompletion(s.Out)
			case "fish":
				return root.GenFishCompletion(s.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(s.Out)
			}
			return fmt.Errorf("no completion for %q: there are kubectl, bash, zsh, fish and powershell", args[0])
		},
	}
}
