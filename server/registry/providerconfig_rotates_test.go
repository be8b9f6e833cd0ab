package registry

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hykube/hykube/api/v1alpha1"
)

// TestAddressesDoNotRotate sets rotates on addresses, on what chooses an account, and on credentials.
func TestAddressesDoNotRotate(t *testing.T) {
	for argument, refused := range map[string]bool{
		"endpoint": true, "endpoints.s3": true, "proxy_url": true, "api_host": true, "project": true, "project_id": true, "tenant_id": true, "cluster.server": true,
		"account_name": true, "assume_role.0.role_arn": true, "baseurl": true, "endpoint.0": true, "api_urls": true, "kubeconfig": true, "config_path": true, "ip": true, "API_HOST": true,
		"connection_string": true, "dsn": true, "namespace": true, "cloud": true, "access_key_id": false, "role_id": false, "zip": false,
		"token.1": false, "token": false, "secret_key": false, "account_key": false, "client_id": false, "auth.password": false, "id": false, "name": false,
	} {
		refs := []v1alpha1.SecretArgument{{Argument: argument, Name: "s", Key: "k", Rotates: true}}
		if errs := validateSecretRefs(refs, nil, field.NewPath("spec")); (len(errs) > 0) != refused {
			t.Errorf("%s: %v", argument, errs)
		}
		refs[0].Rotates = false
		if errs := validateSecretRefs(refs, nil, field.NewPath("spec")); len(errs) > 0 {
			t.Errorf("%s without rotates: %v", argument, errs)
		}
	}
}
