// Package registry serves the fixed kinds (Provider, ProviderConfig, Plan and others) with their subresources. It has
// their defaults, validation, storage and tables, and it approves, discards and cancels plans. It may import api,
// internal packages and server/kinds. The rest of the server passes the functions that it needs, such as the one that
// finds the resources that use an object.
package registry
