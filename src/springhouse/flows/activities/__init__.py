"""What do activities do with rows? One file per kind, each an `Operator`."""
