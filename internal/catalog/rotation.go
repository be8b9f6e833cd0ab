package catalog

import (
	"slices"
	"strings"

	"github.com/hykube/hykube/api/v1alpha1"
)

// This file tells credentials, which may rotate, from arguments that lead calls to another address or account.

// places are the last words of arguments that choose an address or an account. With "id" or "name" behind them, they do
// so, too.
var places = []string{
	"account", "addr", "address", "addresses", "arn", "base", "broker", "brokers", "cloud", "cluster", "database",
	"datacenter", "domain",
	"dsn", "endpoint", "endpoints", "environment", "gateway", "host", "hostname", "hosts", "ip", "location",
	"namespace", "node", "nodes", "org",
	"organization", "port", "project", "proxy", "realm", "region", "server", "servers", "site", "socket", "str",
	"string",
	"subdomain", "subscription", "tenant", "workspace", "zone",
}

// addressEndings end the last words of arguments that are addresses or files with them, such as "baseurl", "uris" and
// "kubeconfig".
var addressEndings = []string{"url", "urls", "uri", "uris", "kubeconfig", "path", "paths", "file", "files"}

// ChoosesAccount reports whether an argument is an address, or chooses an account, by its name. Providers do not mark
// such arguments.
func ChoosesAccount(argument string) bool {
	words := strings.FieldsFunc(strings.ToLower(argument),
		func(r rune) bool { return r == '_' || r == '-' || r == '.' })
	// The part of a nested argument may be the index of a list.
	for len(words) > 1 && strings.Trim(words[len(words)-1], "0123456789") == "" {
		words = words[:len(words)-1]
	}
	if n := len(words); n > 1 && (words[n-1] == "id" || words[n-1] == "name") {
		words = words[:n-1]
	}
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	ends := func(ending string) bool { return strings.HasSuffix(last, ending) }
	return slices.Contains(places, last) || slices.ContainsFunc(addressEndings, ends) ||
		slices.Contains(words, "endpoints")
}

// Rotatable returns the arguments of a ProviderConfig that come from Secrets, do not rotate and may: they are no
// addresses and choose no account.
func Rotatable(cfg *v1alpha1.ProviderConfig) (arguments []string) {
	if cfg == nil {
		return nil
	}
	for _, ref := range cfg.Spec.SecretRefs {
		if !ref.Rotates && !ChoosesAccount(ref.Argument) {
			arguments = append(arguments, ref.Argument)
		}
	}
	return arguments
}
