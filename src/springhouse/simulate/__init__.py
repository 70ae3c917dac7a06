"""What would happen? The same decisions as in a warehouse, with a pretend clock."""
