// Package registry serves the fixed kinds (Provider, ProviderConfig, Plan and others) with their subresources. It has
// their defaults, validation, storage and tables, and it approves, discards and cancels plans. It may import api,
// internal packages and server/kinds. The server passes the functions that it needs from elsewhere, such as the one
// that counts the users of an object.
package registry
