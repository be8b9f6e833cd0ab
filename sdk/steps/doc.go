// Package steps provides the steps of Hykube for Temporal workflows of users: Record, Plan, AwaitApproval, Apply,
// AwaitReady, Drift, Outputs and Discard. A workflow calls the function of a step. A worker registers the activities
// behind them with New and Register.
//
// The activities act through the API with the credentials of the worker, so approvals, policies and rights apply as for
// kubectl. Each may run twice: a step that runs again after a crash adopts the plan that it made before. Steps that
// wait send heartbeats and may wait for weeks. An error is a *temporal.ApplicationError whose type is a constant of
// this package.
//
// The package imports the API types, client-go and the SDK of Temporal. It has no server code.
package steps
