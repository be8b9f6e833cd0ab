package index

// HasAccount reports whether a record of a namespace has an account; see ledger.AccountOf. It does not refresh the index.
func (x *Index) HasAccount(namespace, account string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	ns := x.namespaces[namespace]
	return account != "" && ns != nil && ns.accounts[account] > 0
}
