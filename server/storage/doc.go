// Package storage stores the server's objects and the ledger in kine. kine is embedded in this process and called
// without a network, on SQLite or a database that the user names. The package gives every store the same etcd client,
// and encrypts data that may contain secrets. It imports k8s.io/apiserver's storage, kine and internal/ledger. It must
// not know any kind or any request.
package storage
