package session

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
)

// AnyNumber is an unlimited number of arguments.
const AnyNumber = math.MaxInt

// Completer completes an argument of a command.
type Completer = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// CompleteWith completes with the result of list, for at most the given number of arguments. After an error, it
// completes nothing.
func (s *Session) CompleteWith(most int,
	list func(ctx context.Context, args []string, begun string) ([]string, error)) Completer {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) >= most || s.Connect() != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		out, err := list(cmd.Context(), args, begun)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteObjects completes kinds of the modes, or of all without modes, and after the slash the names of that kind. It
// lists only one page of one kind, because a namespace may have very many objects.
func CompleteObjects(s *Session, most int, modes ...v1alpha1.Mode) Completer {
	offer := s.CompleteWith(most, func(ctx context.Context, _ []string, begun string) (out []string, err error) {
		kinds, err := s.ResourceKinds(ctx)
		if err != nil {
			return nil, err
		}
		word, _, named := strings.Cut(begun, "/")
		for _, k := range kinds {
			m, _ := v1alpha1.ParseKind(k.Kind)
			switch {
			case len(modes) > 0 && !slices.Contains(modes, m):
			case !named:
				out = append(out, k.Kind+"/")
			case k.Kind == word:
				l, err := s.Resource(k.GVR, s.Namespace).List(ctx, metav1.ListOptions{Limit: ListPage})
				if err != nil {
					return nil, err
				}
				for i := range l.Items {
					out = append(out, k.Kind+"/"+l.Items[i].GetName())
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

// CompleteTypes completes the resource types of all providers.
func CompleteTypes(s *Session) Completer {
	return s.CompleteWith(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		kinds, err := s.ResourceKinds(ctx)
		for _, k := range kinds {
			if m, typ := v1alpha1.ParseKind(k.Kind); m == v1alpha1.ModeManaged {
				out = append(out, typ)
			}
		}
		slices.Sort(out)
		return slices.Compact(out), err
	})
}

// CompleteProviders completes the installed providers.
func CompleteProviders(s *Session) Completer {
	return s.CompleteWith(1, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		list := &v1alpha1.ProviderList{}
		err = s.Hykube.Get().Resource("providers").Do(ctx).Into(list)
		for _, p := range list.Items {
			out = append(out, p.Name+"\t"+p.Spec.Source)
		}
		return out, err
	})
}

// CompleteNamespaces completes all namespaces.
func CompleteNamespaces(s *Session) Completer {
	return s.CompleteWith(AnyNumber, func(ctx context.Context, _ []string, _ string) (out []string, err error) {
		l, err := s.Resource(Namespaces, "").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range l.Items {
			out = append(out, l.Items[i].GetName())
		}
		return out, nil
	})
}
