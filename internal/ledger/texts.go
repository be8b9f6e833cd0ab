package ledger

import "unique"

// ShareTexts replaces the texts that many changes of a plan have by texts that all of them share.
func (c *Change) ShareTexts() {
	c.Mode, c.Type, c.Provider, c.ProviderVersion, c.ProviderConfig = shared(c.Mode), shared(c.Type),
		shared(c.Provider), shared(c.ProviderVersion), shared(c.ProviderConfig)
	o := &c.Object
	o.APIVersion, o.Kind, o.Namespace, o.Set, o.SetUID = shared(o.APIVersion), shared(o.Kind), shared(o.Namespace),
		shared(o.Set), shared(o.SetUID)
	c.Action, c.State = shared(c.Action), shared(c.State)
}

// shared returns a text that all equal ones share.
func shared[T ~string](s T) T { return unique.Make(s).Value() }
