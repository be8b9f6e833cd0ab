// Package imports is the verb import: it imports an existing resource into an object, or into an instance of a
// ResourceSet.
package imports
