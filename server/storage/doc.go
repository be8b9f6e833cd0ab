// Package storage is where the server's objects and the ledger are kept: kine, embedded in this process and spoken to
// without a network, over SQLite or a database that the user names. It gives one etcd client to every store, and encrypts
// what may hold secrets before it reaches the disk.
// It imports k8s.io/apiserver's storage, kine and internal/ledger; it must not know any kind or any request.
package storage
