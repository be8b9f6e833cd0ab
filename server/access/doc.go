// Package access is who may talk to the server and what they may do: its own certificate authorities, the serving
// certificate, the first administrator's kubeconfig, authentication, and the authorizer with the roles that a new
// server has. It imports Kubernetes' authentication and RBAC packages; it must not know how objects are stored or served.
package access
