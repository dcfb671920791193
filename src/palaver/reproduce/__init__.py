"""One file per paper: its published tables as data, and how ours are computed."""
