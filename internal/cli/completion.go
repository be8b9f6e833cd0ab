package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hykube/hykube/api/v1alpha1"
)

// kubectlCompletion is what kubectl runs to complete the arguments of a plugin:
// https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/#tab-completion-for-plugins
const kubectlCompletion = `#!/bin/sh
# kubectl runs this to complete "kubectl hykube ...". Put it on the PATH as kubectl_complete-hykube.
exec kubectl-hykube __complete "$@"
`

func newCompletion(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "completion (kubectl | bash | zsh | fish | powershell)",
		Short: "Print a completion script",
		Long: `Print a completion script.

kubectl completes the arguments of a plugin by running a program named kubectl_complete-PLUGIN. "completion kubectl"
prints it; the other shells' scripts complete "kubectl-hykube" when it is run under that name.`,
		Example: `  # for "kubectl hykube <TAB>", once kubectl's own completion works
  kubectl hykube completion kubectl > ~/.local/bin/kubectl_complete-hykube
  chmod +x ~/.local/bin/kubectl_complete-hykube

  # for "kubectl-hykube <TAB>"
  source <(kubectl hykube completion bash)`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"kubectl", "bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			// The scripts complete the plugin's own binary, also where this command hangs below another root.
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

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completePlans offers the plans of the namespace with their state: all, or those that keep is true of.
func completePlans(s *session, keep func(*v1alpha1.Plan) bool) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || s.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		plans, err := s.listPlans(cmd.Context(), s.namespace)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, p := range plans {
			if keep == nil || keep(&p) {
				out = append(out, p.Name+"\t"+planState(&p))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeObjects offers kinds of the modes, or all, and after the slash the names of one kind. A namespace may hold
// more objects than anybody wants to be offered, so it lists one kind, and one page of it.
func completeObjects(s *session, modes ...v1alpha1.Mode) completer {
	return func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		if s.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		kinds, err := s.resourceKinds(cmd.Context())
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word, _, named := strings.Cut(begun, "/")
		var out []string
		for _, k := range kinds {
			m, _ := v1alpha1.ParseKind(k.kind)
			switch {
			case len(modes) > 0 && !slices.Contains(modes, m):
			case !named:
				out = append(out, k.kind+"/")
			case k.kind == word:
				l, err := s.resource(k.gvr, s.namespace).List(cmd.Context(), metav1.ListOptions{Limit: listPage})
				if err != nil {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				for i := range l.Items {
					out = append(out, k.kind+"/"+l.Items[i].GetName())
				}
			}
		}
		slices.Sort(out)
		if !named {
			return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeProviders offers the installed providers.
func completeProviders(s *session) completer {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		list := &v1alpha1.ProviderList{}
		if len(args) > 0 || s.connect() != nil || s.hykube.Get().Resource("providers").Do(cmd.Context()).Into(list) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, p := range list.Items {
			out = append(out, p.Name+"\t"+p.Spec.Source)
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func completeNamespaces(s *session) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		if s.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		l, err := s.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).List(cmd.Context(), metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []string
		for _, n := range l.Items {
			out = append(out, n.GetName())
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
