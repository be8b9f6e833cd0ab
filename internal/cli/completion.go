package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// kubectlCompletion is the script that kubectl runs to complete the arguments of a plugin:
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

// anyNumber is an unlimited number of arguments.
const anyNumber = math.MaxInt

type completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// complete completes with the result of list, for at most the given number of arguments. After an error, it completes
// nothing.
func (s *session) complete(most int, list func(ctx context.Context, args []string, begun string) ([]string, error)) completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most || s.connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out, err := list(cmd.Context(), args, begun)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePlans completes plans of the namespace with their state. A nil keep permits all.
func completePlans(s *session, keep func(*v1alpha1.Plan) bool) completer {
	return s.complete(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		plans, err := s.listPlans(ctx, s.namespace)
		for _, p := range plans {
			if keep == nil || keep(&p) {
				out = append(out, p.Name+"\t"+planState(&p))
			}
		}
		return out, err
	})
}

// completeObjects completes kinds of the modes, or of all without modes, and after the slash the names of that kind. It
// lists only one page of one kind, because a namespace may have very many objects.
func completeObjects(s *session, most int, modes ...v1alpha1.Mode) completer {
	offer := s.complete(most, func(ctx context.Context, _ []string, begun string) (out []string, err error) {
		kinds, err := s.resourceKinds(ctx)
		if err != nil {
			return nil, err
		}
		word, _, named := strings.Cut(begun, "/")
		for _, k := range kinds {
			m, _ := v1alpha1.ParseKind(k.kind)
			switch {
			case len(modes) > 0 && !slices.Contains(modes, m):
			case !named:
				out = append(out, k.kind+"/")
			case k.kind == word:
				l, err := s.resource(k.gvr, s.namespace).List(ctx, metav1.ListOptions{Limit: listPage})
				if err != nil {
					return nil, err
				}
				for i := range l.Items {
					out = append(out, k.kind+"/"+l.Items[i].GetName())
				}
			}
		}
		slices.Sort(out)
		return out, nil
	})
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		out, directive := offer(cmd, args, begun)
		if len(out) > 0 && !strings.Contains(begun, "/") {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return out, directive
	}
}

// completeTypes completes the resource types of all providers.
func completeTypes(s *session) completer {
	return s.complete(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		kinds, err := s.resourceKinds(ctx)
		for _, k := range kinds {
			if m, typ := v1alpha1.ParseKind(k.kind); m == v1alpha1.ModeManaged {
				out = append(out, typ)
			}
		}
		slices.Sort(out)
		return slices.Compact(out), err
	})
}

// completeProviders completes the installed providers.
func completeProviders(s *session) completer {
	return s.complete(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		list := &v1alpha1.ProviderList{}
		err = s.hykube.Get().Resource("providers").Do(ctx).Into(list)
		for _, p := range list.Items {
			out = append(out, p.Name+"\t"+p.Spec.Source)
		}
		return out, err
	})
}

// completeNamespaces completes all namespaces.
func completeNamespaces(s *session) completer {
	return s.complete(anyNumber, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		l, err := s.resource(namespaces, "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range l.Items {
			out = append(out, l.Items[i].GetName())
		}
		return out, nil
	})
}

// completeChanges completes plans, and then the addresses in the named plan.
func completeChanges(s *session) completer {
	plans := completePlans(s, nil)
	addresses := s.complete(anyNumber, func(ctx context.Context, args []string, _ string) (out []string, err error) {
		p, err := s.getPlan(ctx, s.namespace, args[0])
		if err != nil {
			return nil, err
		}
		for c, err := range s.changes(ctx, p) {
			if err != nil || len(out) == 1000 {
				break
			}
			out = append(out, addressOfChange(c)+"\t"+string(c.Action))
		}
		return out, nil
	})
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return plans(cmd, args, begun)
		}
		return addresses(cmd, args, begun)
	}
}
