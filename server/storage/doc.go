// Package storage stores the server's objects and the ledger in kine. kine runs in this process without a network, on
// SQLite or on the user's database. The package gives every store the same etcd client, and encrypts data that may
// contain secrets. It imports k8s.io/apiserver's storage, kine and internal/ledger. It must not know any kind or any
// request.
package storage
