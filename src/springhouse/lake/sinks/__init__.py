"""Where changes go to outside the warehouse: in order, by offset, as plug-ins by name."""
