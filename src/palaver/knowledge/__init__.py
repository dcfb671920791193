"""Knowledge for grounded conversation: what a speaker had read, and which sentence a turn should use."""
