// Package speculation plans files that are not recorded yet, and tells what recording them would do: prerequisites,
// conflicts, and the objects that --prune removes. The verbs plan, apply and verify use it.
package speculation
