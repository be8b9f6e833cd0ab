// Package access authenticates and authorizes users. It has the server's certificate authorities, the serving
// certificate, the first administrator's kubeconfig, and the authorizer with the predefined roles. It imports
// Kubernetes' authentication and RBAC packages. It must not know how objects are stored or served.
package access
