"""What would happen? The same decisions as in a House, in a pretend world with a pretend clock."""
