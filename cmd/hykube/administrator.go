package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/hykube/hykube/server"
)

// administratorOptions are the flags of commands that send an administrator's requests to a running server.
type administratorOptions struct {
	dataDir    string
	kubeconfig string
}

func (o *administratorOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.dataDir, "data-dir", "d", server.DefaultDataDir(),
		"Data directory of the server, for its admin.kubeconfig.")
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"Kubeconfig of an administrator, in place of admin.kubeconfig of the data directory.")
}

// request sends a request and decodes the JSON of the response.
func (o *administratorOptions) request(ctx context.Context, method, uri string, into any) error {
	config, err := clientConfig(o.kubeconfig, o.dataDir)
	if err != nil {
		return err
	}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return err
	}
	result := client.Verb(method).RequestURI(uri).Do(ctx)
	if err := result.Error(); err != nil { // the status in the body, which Raw does not read
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
