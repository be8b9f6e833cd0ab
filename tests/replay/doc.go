// Package replay replays recorded histories of the workflows with the current code, because a run from before an
// upgrade must continue after it. testdata has a history of each released version of a workflow; -record adds the
// current one.
package replay
