// Package registry serves the fixed kinds (Provider, ProviderConfig, Plan and others) with their subresources: it has
// their defaults, validation, storage, tables and the decisions about plans. It may import api, internal packages and
// server/kinds; the rest of the server passes the functions that it needs, such as the one that finds an object's
// users.
package registry
