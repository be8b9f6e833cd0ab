package kubectl

import (
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli"
)

// newCommand returns kubectl with Hykube's verbs built in. It reads os.Args.
func newCommand() *cobra.Command {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	verbs := cli.NewCommand(streams)
	options := cmd.KubectlOptions{Arguments: os.Args[1:], IOStreams: streams}
	// Other plugins work as in kubectl, but a kubectl-hykube in PATH does not replace the built-in one. kubectl rejects
	// flags before the name of a plugin, which must not affect Hykube's verbs. The handler applies only to this
	// command, since the first word after another command is not a plugin's name.
	if len(os.Args) > 2 && os.Args[1] == "kubectl" && os.Args[2] != verbs.Name() && !strings.HasPrefix(os.Args[2],
		"-") {
		options.PluginHandler = cmd.NewDefaultPluginHandler(plugin.ValidPluginFilenamePrefixes)
	}
	util.BehaviorOnFatal(func(message string, code int) {
		if message = strings.TrimSuffix(explainUnknownKind(message), "\n"); message != "" {
			fmt.Fprintln(os.Stderr, message)
		}
		os.Exit(code)
	})
	kubectl := cmd.NewDefaultKubectlCommandWithArgs(options)
	kubectl.Short = "Run the built-in kubectl"
	delete(verbs.Annotations, cobra.CommandDisplayNameAnnotation) // the name of the parent precedes it in the usage
	kubectl.AddCommand(verbs)
	return kubectl
}

var (
	unknownKind = regexp.MustCompile(`no matches for kind "[^"]*" in version "([^"/]*)[^"]*"`)
	// customKinds matches kubectl's hints about custom resources, which a Hykube server does not have.
	customKinds = regexp.MustCompile(
		`\nensure CRDs are installed first|; if you choose to ignore these errors, turn validation off with --validate=false`)
)

// explainUnknownKind adds to kubectl's error about an unknown kind that Providers serve the kinds of this server.
// kubectl passes only the text of its errors to BehaviorOnFatal.
func explainUnknownKind(message string) string {
	found := unknownKind.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	advice := "`kubectl api-resources` lists the kinds that there are"
	if name, ok := v1alpha1.ProviderOfGroup(found[1]); ok {
		advice = fmt.Sprintf("kinds of %q come with the Provider %q: `kubectl get provider %s` says whether it is ready, and `kubectl api-resources --api-group=%s` lists its kinds", found[1], name, name, found[1])
	}
	return customKinds.ReplaceAllString(strings.TrimSuffix(message, "\n"), "") + "\n" + advice
}
