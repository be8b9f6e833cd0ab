# The folders of the Go modules: the product's, and those that users import. Sourced by other scripts.
modules=(. api sdk/batch sdk/steps)
